//! Summaries that make a conversation shorter.

use ollm_agent::{Cancel, Decision, TurnEnd};
use ollm_protocol::EventKind;
use serde_json::json;
use testkit::model_shapes::{llama_loading, llama_too_long};
use testkit::{ModelReply, ModelReplyEnd, ModelServer, answer_events};

use super::{chat_server, narrow, openai, says, world};
use crate::support::{World, text};

#[test]
fn a_refusal_to_compress_is_obeyed() {
    let (server, _) = narrow(3000, llama_too_long);
    let mut world = world(openai(&server)).on(EventKind::PreCompress, Decision::block("keeper", "keep all"));
    let mut session = world.start();
    let before = "x".repeat(5500);
    assert_eq!(session.say(&before, None)[0].end, TurnEnd::Done);
    let turns = session.say(&before, None);
    assert!(matches!(&turns[0].end, TurnEnd::Failed { code: "too_long", .. }), "{:?}", turns[0].end);
    assert!(session.messages().iter().filter(|message| message.content() == before).count() == 2, "all of it is there");
    session.end();
    assert_eq!(world.data(EventKind::PostCompress).len(), 0);
}

#[test]
fn the_person_can_have_the_conversation_made_shorter() {
    let answers = [text("one"), text("two"), text("three"), json!({"content": "a short story"}), text("go on")];
    let mut world = World::new(&answers);
    let mut session = world.start();
    for prompt in ["first", "second", "third"] {
        session.say(&format!("{prompt} {}", "x".repeat(200)), None);
    }
    assert_eq!(session.compress(), Ok("a short story".to_owned()));
    assert!(
        session.messages().iter().any(|message| message.content() == "[Summary of earlier messages] a short story")
    );
    assert_eq!(session.say("fourth", None)[0].response, "go on");
    session.end();
    assert_eq!(world.data(EventKind::PreCompress)[0]["trigger"], "manual");
    assert_eq!(world.data(EventKind::ContextOverflow).len(), 0);
    let mut world = World::new(&[]);
    assert_eq!(world.start().compress(), Err("nothing of it can go".to_owned()));
}

/// A server whose summaries are these; everything else it answers with `ok`.
fn summing_up(summary: impl Fn() -> ModelReply + Send + Sync + 'static) -> ModelServer {
    ModelServer::answering(move |asked| {
        if !asked.path.ends_with("/chat/completions") {
            return Some(ModelReply::json(404, &json!({})));
        }
        let summing = asked.body["messages"][0]["content"].as_str().unwrap_or_default().starts_with("You sum up");
        Some(if summing { summary() } else { says("ok") })
    })
    .unwrap()
}

#[test]
fn a_server_that_keeps_a_summary_waiting_is_told_of() {
    let server = chat_server(vec![says("one"), says("two"), llama_loading(), says("in short")]);
    let mut world = world(openai(&server));
    let mut session = world.start();
    for prompt in ["first", "second"] {
        session.say(&format!("{prompt} {}", "x".repeat(900)), None);
    }
    assert_eq!(session.compress(), Ok("in short".to_owned()));
    session.end();
    assert!(world.shown("status").iter().any(|told| told.contains("is loading the model")), "{:?}", world.shown(""));
}

#[test]
fn a_summary_is_shorter_than_what_it_stands_for_and_it_is_told_where_it_is_cut() {
    let mut ran_out = answer_events("It began with", &[], 50);
    for event in &mut ran_out {
        if event["choices"][0]["finish_reason"] == "stop" {
            event["choices"][0]["finish_reason"] = json!("length");
        }
    }
    for summary in [says(&"long summary ".repeat(600)), ModelReply::stream(&ran_out, 99)] {
        let server = summing_up(move || summary.clone());
        let mut world = world(openai(&server));
        let mut session = world.start();
        for prompt in ["first", "second", "third"] {
            session.say(&format!("{prompt} {}", "x".repeat(400)), None);
        }
        assert!(session.compress().is_ok());
        session.end();
        let size = |kind| world.data(kind)[0]["size"].as_u64().unwrap();
        assert!(size(EventKind::PostCompress) < size(EventKind::PreCompress));
        assert_eq!(world.shown("status the summary of the conversation was too long and is cut").len(), 1);
    }
}

#[test]
fn an_interruption_while_the_model_sums_up_leaves_the_conversation_as_it_was() {
    let cancel = Cancel::default();
    let (interrupt, half) = (cancel.clone(), ModelReply::bytes(b": wait\n\n", 9, ModelReplyEnd::Hanging));
    let server = summing_up(move || {
        interrupt.interrupt();
        half.clone()
    });
    let mut world = world(openai(&server));
    world.cancel = cancel;
    let mut session = world.start();
    for prompt in ["first", "second", "third"] {
        session.say(&format!("{prompt} {}", "x".repeat(400)), None);
    }
    let before = session.messages().to_vec();
    assert_eq!(session.compress(), Err("interrupted".to_owned()));
    assert_eq!(session.messages(), before);
    session.end();
    assert_eq!(world.data(EventKind::PostCompress)[0]["summary"], "interrupted");
}
