//! What chat templates and servers take, and how a question is shaped for them.

use ollm_agent::{Decision, TurnEnd};
use ollm_protocol::EventKind;
use serde_json::json;
use testkit::model_shapes::{llama_template, ollama_error, python_extra_field};
use testkit::{ModelReply, ModelReplyEnd, answer_events};

use super::{chat_server, chats, openai, roles, says, world};
use crate::support::{World, text};

#[test]
fn what_hooks_say_never_makes_a_second_system_message_and_prompts_never_stand_side_by_side() {
    let command = json!({"command": "true"}).to_string();
    let server = chat_server(vec![
        ModelReply::bytes(b"data: {\"error\": \"out of memory\"}\n\n", 64, ModelReplyEnd::Whole),
        ModelReply::stream(&answer_events("", &[("c1", "shell", &command)], 9), 99),
        says("ok"),
    ]);
    let note = Decision { system_messages: vec!["mind the gap".into()], ..Decision::default() };
    let mut world = world(openai(&server)).hooks(move |event| match event.kind {
        EventKind::Notification => Decision::default(),
        _ => note.clone(),
    });
    let mut session = world.start();
    assert!(matches!(session.say("one", None)[0].end, TurnEnd::Failed { .. }));
    assert_eq!(session.say("two", None)[0].end, TurnEnd::Done);
    let asked = chats(&server);
    assert_eq!(roles(&asked[1]), ["system", "user"]);
    assert_eq!(roles(&asked[2]), ["system", "user", "assistant", "tool"]);
    let prompt = asked[1].body["messages"][1]["content"].as_str().unwrap();
    assert!(prompt.starts_with("one") && prompt.contains("two") && prompt.contains("[system note] mind the gap"));
}

#[test]
fn a_model_without_tools_goes_on_without_them_and_says_so_once() {
    for refusal in
        [ollama_error(400, "m does not support tools"), ollama_error(500, "tools param requires --jinja flag")]
    {
        let server = chat_server(vec![refusal, says("hello"), says("again")]);
        let mut world = world(openai(&server));
        let mut session = world.start();
        assert_eq!(session.say("hi", None)[0].response, "hello");
        assert_eq!(session.say("hi", None)[0].response, "again");
        let asked = chats(&server);
        let offered: Vec<bool> = asked.iter().map(|asked| asked.body.get("tools").is_some()).collect();
        assert_eq!(offered, [true, false, false]);
        assert_eq!(world.shown("status"), ["status m cannot call tools; it goes on without them"]);
    }
}

#[test]
fn a_template_without_a_system_message_gets_it_with_the_first_prompt() {
    let server = chat_server(vec![llama_template("System role not supported"), says("ok")]);
    assert_eq!(world(openai(&server)).start().say("hi", None)[0].end, TurnEnd::Done);
    let asked = chats(&server);
    assert_eq!(roles(&asked[1]), ["user"]);
    assert_eq!(asked[1].body["messages"][0]["content"], "be good\n\nhi");
}

#[test]
fn a_field_that_a_server_does_not_know_is_left_out() {
    let server = chat_server(vec![python_extra_field("stream_options"), says("ok"), says("ok")]);
    let mut world = world(openai(&server));
    let mut session = world.start();
    session.say("hi", None);
    session.say("hi", None);
    let sent: Vec<bool> = chats(&server).iter().map(|asked| asked.body.get("stream_options").is_some()).collect();
    assert_eq!(sent, [true, false, false]);
}

#[test]
fn what_hooks_say_at_the_beginning_is_not_said_again_when_a_conversation_goes_on() {
    let mut messages = Vec::new();
    for _ in 0..3 {
        let context = Decision { context: vec!["mind the gap".into()], ..Decision::default() };
        let mut world = World::new(&[text("ok")]).on(EventKind::SessionStart, context);
        world.messages = messages;
        let mut session = world.start();
        assert_eq!(session.say("hi", None)[0].end, TurnEnd::Done);
        messages = session.messages().to_vec();
    }
    assert_eq!(messages.iter().filter(|message| message.content() == "mind the gap").count(), 1);
}

#[test]
fn a_template_that_refuses_everything_is_told_with_a_way_out() {
    let server = chat_server(vec![llama_template("raise_exception(\"no such conversation\")")]);
    let mut world = world(openai(&server));
    let turns = world.start().say("go", None);
    let TurnEnd::Failed { message, .. } = &turns[0].end else { panic!("{:?}", turns[0].end) };
    assert!(message.contains("the model's chat template refuses this conversation: begin another one"), "{message}");
}
