//! Answers that are cut, empty, thoughts only, or calls written as text.

use ollm_agent::TurnEnd;
use ollm_protocol::EventKind;
use serde_json::json;
use testkit::model_shapes::python_empty;
use testkit::{ModelReply, ModelReplyEnd, answer_events};

use super::{chat_server, chats, openai, says, world};
use crate::support::{World, calls, text};

#[test]
fn an_answer_that_ran_out_of_tokens_is_told_and_no_success() {
    let mut events = answer_events("half a sent", &[], 50);
    for event in &mut events {
        if event["choices"][0]["finish_reason"] == "stop" {
            event["choices"][0]["finish_reason"] = json!("length");
        }
    }
    let server = chat_server(vec![ModelReply::stream(&events, 50)]);
    let mut world = world(openai(&server));
    let turns = world.start().say("hi", None);
    assert!(matches!(&turns[0].end, TurnEnd::Bounded(why) if why.contains("limit of tokens")), "{:?}", turns[0].end);
    assert!(turns[0].truncated && turns[0].response == "half a sent");
    assert_eq!(world.shown("error").len(), 1);
}

#[test]
fn a_call_that_was_cut_goes_back_to_the_model_as_cut() {
    let mut cut = calls(&[("write_file", json!("{\"path\": \"a\", \"content\": \"x"))]);
    cut["finish"] = json!("length");
    let mut world = World::new(&[cut, text("ok")]);
    let mut session = world.start();
    assert_eq!(session.say("hi", None)[0].end, TurnEnd::Done);
    let told = session.messages().iter().find(|message| message.role() == "tool").unwrap().content().to_owned();
    assert!(told.contains("limit of tokens"), "{told}");
}

#[test]
fn a_call_that_the_model_wrote_as_text_is_made() {
    let call = "```json\n{\"name\": \"shell\", \"arguments\": {\"command\": \"echo seen\"}}\n```";
    let mut world = World::new(&[text(call), text("done")]);
    let mut session = world.start();
    assert_eq!(session.say("hi", None)[0].response, "done");
    assert!(session.messages().iter().any(|message| message.role() == "tool" && message.content() == "seen"));
    session.end();
    assert_eq!(world.shown("text"), ["text done"], "a call is no answer");
    assert_eq!(world.data(EventKind::BeforeTool).len(), 1, "hooks have their say");
    let mut world = World::new(&[text(&format!("You could write this:\n{call}"))]);
    assert_eq!(world.start().say("hi", None)[0].end, TurnEnd::Done);
    assert_eq!(world.data(EventKind::BeforeTool).len(), 0);
    assert_eq!(world.shown("status"), ["status the answer holds a call of shell among other words; it was not made"]);
}

#[test]
fn thoughts_are_shown_and_are_no_answer() {
    let thinks = |words: &str| json!({"reasoning": "let me think", "content": words});
    let mut world = World::new(&[thinks("42"), thinks("")]);
    let mut session = world.start();
    assert_eq!(session.say("hi", None)[0].response, "42");
    let turns = session.say("hi", None);
    assert!(matches!(&turns[0].end, TurnEnd::Failed { message, .. } if message.contains("only thought")));
    assert!(!session.messages().iter().any(|message| message.content().contains("let me think")));
    assert_eq!(world.shown("thought").len(), 2);
}

#[test]
fn a_model_that_says_nothing_in_a_short_conversation_does_not_make_its_window_smaller() {
    let server = chat_server(vec![says("one"), says("two"), python_empty(), says("three")]);
    let mut world = world(openai(&server));
    let mut session = world.start();
    let ends: Vec<TurnEnd> =
        (0..4).map(|turn| session.say(&format!("{turn} {}", "word ".repeat(100)), None)[0].end.clone()).collect();
    assert!(matches!(&ends[2], TurnEnd::Failed { code: "empty", .. }), "{ends:?}");
    assert_eq!([&ends[0], &ends[1], &ends[3]], [&TurnEnd::Done; 3]);
    session.end();
    assert!(world.data(EventKind::PreCompress).is_empty());
    assert_eq!(chats(&server).len(), 4);
}

#[test]
fn a_page_in_place_of_a_stream_is_told() {
    for (body, told) in [("<html><body>Log in first</body></html>", "a web page: Log in first"), ("teapot", "teapot")] {
        let server = chat_server(vec![ModelReply::bytes(body.as_bytes(), 9, ModelReplyEnd::Whole)]);
        let turns = world(openai(&server)).start().say("hi", None);
        let TurnEnd::Failed { message, .. } = &turns[0].end else { panic!("{:?}", turns[0].end) };
        assert!(message.ends_with(&format!("it holds no events, but {told}")), "{message}");
    }
}

#[test]
fn an_empty_answer_to_a_long_prompt_says_that_it_may_be_too_long() {
    let server = chat_server(vec![python_empty()]);
    let mut world = world(openai(&server));
    let turns = world.start().say(&"word ".repeat(20_000), None);
    let TurnEnd::Failed { code: "empty", message } = &turns[0].end else { panic!("{:?}", turns[0].end) };
    assert!(message.contains("tokens may be too much for it: ask with less"), "{message}");
}
