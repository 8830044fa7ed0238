//! How long a server is waited for, and what it is told of us.

use std::time::Duration;

use ollm_agent::{Cancel, Connection, Model, OpenAi, Patience, Piece, Question, TurnEnd};
use testkit::model_shapes::{llama_loading, llama_template};
use testkit::{ModelReply, ModelServer};

use super::{chat_server, chats, connection, openai, patience, says, world};

#[test]
fn a_server_that_loads_its_model_is_waited_for_and_what_cannot_succeed_is_not_tried_again() {
    let mut replies: Vec<ModelReply> = (0..20).map(|_| llama_loading()).collect();
    replies.push(says("ok"));
    let server = chat_server(replies);
    let mut waiting = world(OpenAi::new(Connection {
        patience: Patience { longest_pause: Duration::from_millis(1), ..patience() },
        ..connection(&server)
    }));
    assert_eq!(waiting.start().say("hi", None)[0].end, TurnEnd::Done);
    assert_eq!(waiting.shown("status").len(), 1, "it is told once");
    let server = chat_server(vec![llama_template("Unexpected message role."), says("never")]);
    let turns = world(openai(&server)).start().say("hi", None);
    assert!(matches!(&turns[0].end, TurnEnd::Failed { message, .. } if message.contains("Unexpected message role")));
    assert_eq!(chats(&server).len(), 1);
    // One that takes the same conversation without a system message is asked once more.
    let server = chat_server(vec![llama_template("Conversation roles must alternate"), says("ok")]);
    assert_eq!(world(openai(&server)).start().say("hi", None)[0].end, TurnEnd::Done);
    assert_eq!(chats(&server).len(), 2);
}

#[test]
fn a_server_that_loads_for_ever_is_given_up() {
    let server = ModelServer::answering(|_| Some(llama_loading())).unwrap();
    let patience = Patience { loading: Duration::from_millis(30), retries: 1, ..patience() };
    let turns = world(OpenAi::new(Connection { patience, ..connection(&server) })).start().say("hi", None);
    assert!(matches!(&turns[0].end, TurnEnd::Failed { message, .. } if message.contains("Loading model")));
}

#[test]
fn connections_are_kept_and_we_say_who_we_are() {
    let server = chat_server((0..5).map(|_| says("ok")).collect());
    let mut world = world(openai(&server));
    let mut session = world.start();
    for _ in 0..5 {
        assert_eq!(session.say("hi", None)[0].end, TurnEnd::Done);
    }
    let asked = chats(&server);
    assert!(asked.iter().all(|one| one.connection == asked[0].connection), "{asked:?}");
    let agent = &asked[0].headers.iter().find(|(name, _)| name == "user-agent").unwrap().1;
    assert!(agent.starts_with("ollm/"), "{agent}");
}

#[test]
fn a_kept_connection_that_the_server_closed_is_opened_again() {
    let server = chat_server(vec![says("one"), ModelReply::Nothing, says("two")]);
    let mut world = world(openai(&server));
    let mut session = world.start();
    assert_eq!(session.say("hi", None)[0].response, "one");
    assert_eq!(session.say("hi", None)[0].response, "two");
}

#[test]
fn a_silent_model_gives_signs_of_life() {
    // The head comes late, so the first wait is long; nothing here depends on how long exactly.
    let server = chat_server(vec![says("ok")]);
    let question = Question { messages: &[], tools: &[], most: 100, cancel: &Cancel::default() };
    let mut waits = 0;
    openai(&server).answer(&question, &mut |piece| waits += usize::from(matches!(piece, Piece::Waiting(_)))).unwrap();
    assert_eq!(waits, 0, "a quick answer is no wait");
}
