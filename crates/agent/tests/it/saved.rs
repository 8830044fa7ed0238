//! Sessions are saved as they happen, and go on where they ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use ollm_agent::{Decision, Header, Message, Transcript, TurnEnd, load};
use ollm_protocol::EventKind;
use serde_json::json;

use crate::support::{World, calls, expecting, replay, text};

fn folder(world: &World) -> PathBuf {
    world.folder.path().join("sessions")
}

fn save(world: &mut World) {
    let header = Header { id: "s1".into(), started: "t".into(), cwd: "/w".into(), model: "m".into() };
    world.transcript = Some(Transcript::create(&folder(world), &header, Arc::default()).unwrap());
}

#[test]
fn a_session_goes_on_where_it_ended() {
    let mut world = World::new(&[calls(&[("todo", json!({"items": []}))]), text("hello")]);
    save(&mut world);
    let mut session = world.start();
    session.say("hi", None);
    let messages = session.messages().to_vec();
    session.end();
    let (transcript, saved) = Transcript::resume(&folder(&world), "s1", Arc::default()).unwrap();
    assert_eq!((saved.messages.clone(), saved.notes), (messages, Vec::new()));
    world.transcript = Some(transcript);
    world.messages = saved.messages;
    world.model =
        Some(Box::new(replay(&[expecting(text("again"), json!({"contains": ["hi", "hello"], "last": "more"}))])));
    let mut session = world.start();
    assert_eq!(session.say("more", None)[0].end, TurnEnd::Done);
    let messages = session.messages().to_vec();
    session.end();
    assert_eq!(load(&folder(&world), "s1").unwrap().messages, messages);
}

#[test]
fn what_hooks_say_after_the_last_answer_is_read_when_a_conversation_goes_on() {
    let note = Decision { system_messages: vec!["the tests fail".to_owned()], ..Decision::default() };
    let mut world = World::new(&[text("done")]).on(EventKind::AfterAgent, note);
    save(&mut world);
    let mut session = world.start();
    session.say("hi", None);
    session.end();
    let saved = load(&folder(&world), "s1").unwrap();
    assert_eq!(saved.messages.last(), Some(&Message::System("the tests fail".to_owned())));
    let mut world = World::new(&[expecting(text("ok"), json!({"contains": "the tests fail", "last": "more"}))]);
    world.messages = saved.messages;
    assert_eq!(world.start().say("more", None)[0].end, TurnEnd::Done);
}

#[test]
fn everything_is_on_disk_before_the_next_event() {
    let mut world = World::new(&[calls(&[("shell", json!({"command": "true"}))]), text("done")]);
    save(&mut world);
    let sessions = folder(&world);
    world = world.hooks(move |event| {
        if event.kind == EventKind::AfterAgent {
            let saved = load(&sessions, "s1").unwrap();
            let roles: Vec<&str> = saved.messages.iter().map(Message::role).collect();
            assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant"]);
        }
        Decision::default()
    });
    let mut session = world.start();
    session.say("go", None);
    session.end();
    assert_eq!(world.data(EventKind::AfterAgent).len(), 1);
}

#[test]
fn refusals_errors_and_ends_are_saved_as_well() {
    let mut world = World::new(&[text("ok")]).on(EventKind::BeforeAgent, Decision::block("guard", "no"));
    save(&mut world);
    let mut session = world.start();
    session.say("go", None);
    session.end();
    let entries = load(&folder(&world), "s1").unwrap().entries;
    let kinds: Vec<&String> = entries.iter().map(|entry| entry.as_object().unwrap().keys().next().unwrap()).collect();
    assert_eq!(kinds, ["message", "refused", "turn", "end"]);
    let expected = json!({"event": "before_agent", "tool": null, "hook": "guard", "reason": "no", "flow": "block"});
    assert_eq!(entries[1]["refused"], expected);
    assert!(entries.iter().all(|entry| entry["at"].is_string()));
}

/// What the file of a session looks like; other programs may read it.
const GOLDEN: &str = r#"{"version":1,"session":"s1","startTime":"t","cwd":"/w","model":"m"}
{"message":{"role":"system","content":"be good"},"at":"2026-01-16T10:05:30.000Z"}
{"message":{"role":"user","content":"go"},"at":"2026-01-16T10:05:30.000Z"}
{"message":{"role":"assistant","content":"","tool_calls":[{"id":"1","name":"todo","arguments":{"items":["a"]}},{"id":"2","name":"todo","arguments":"{"}]},"at":"2026-01-16T10:05:30.000Z"}
{"refused":{"event":"before_tool","tool":"todo","hook":"guard","reason":"no lists","flow":"block"},"at":"2026-01-16T10:05:30.000Z"}
{"message":{"role":"tool","content":"Tool execution blocked by hook: no lists","tool_call_id":"1","name":"todo"},"at":"2026-01-16T10:05:30.000Z"}
{"error":{"operation":"tool","code":"tool","message":"the call of todo is impossible: the arguments are no JSON object: {"},"at":"2026-01-16T10:05:30.000Z"}
{"message":{"role":"tool","content":"error: the arguments are no JSON object: {","tool_call_id":"2","name":"todo"},"at":"2026-01-16T10:05:30.000Z"}
{"message":{"role":"assistant","content":"done"},"at":"2026-01-16T10:05:30.000Z"}
{"turn":"done","at":"2026-01-16T10:05:30.000Z"}
{"end":"2026-01-16T10:05:30.000Z","at":"2026-01-16T10:05:30.000Z"}
"#;

#[test]
fn a_transcript_is_what_it_is_documented_to_be() {
    let answers = [calls(&[("todo", json!({"items": ["a"]})), ("todo", json!("{"))]), text("done")];
    let mut world = World::new(&answers).on(EventKind::BeforeTool, Decision::block("guard", "no lists"));
    world.clock = || UNIX_EPOCH + Duration::from_secs(1_768_557_930);
    save(&mut world);
    let mut session = world.start();
    session.say("go", None);
    session.end();
    let written = std::fs::read_to_string(folder(&world).join("s1.jsonl")).unwrap();
    assert_eq!(written, GOLDEN);
}

/// What a session leaves in which hooks and the model do as they like.
const LIVELY: &str = r#"{"version":1,"session":"s1","startTime":"t","cwd":"/w","model":"m"}
{"message":{"role":"system","content":"be good"},"at":"2026-01-16T10:05:30.000Z"}
{"message":{"role":"system","content":"mind the step"},"at":"2026-01-16T10:05:30.000Z"}
{"message":{"role":"system","content":"it is Friday"},"at":"2026-01-16T10:05:30.000Z"}
{"message":{"role":"user","content":"go\n\npiped in"},"at":"2026-01-16T10:05:30.000Z"}
{"message":{"role":"assistant","content":"","tool_calls":[{"id":"1","name":"todo","arguments":{"items":["a"]}}]},"at":"2026-01-16T10:05:30.000Z"}
{"message":{"role":"tool","content":"something else","tool_call_id":"1","name":"todo"},"at":"2026-01-16T10:05:30.000Z"}
{"message":{"role":"assistant","content":"done"},"at":"2026-01-16T10:05:30.000Z"}
{"turn":"done","at":"2026-01-16T10:05:30.000Z"}
{"message":{"role":"user","content":"and then?"},"at":"2026-01-16T10:05:30.000Z"}
{"message":{"role":"assistant","content":"asked and answered"},"at":"2026-01-16T10:05:30.000Z"}
{"turn":"done","at":"2026-01-16T10:05:30.000Z"}
{"refused":{"event":"before_agent","tool":null,"hook":"gate","reason":"closed","flow":"block"},"at":"2026-01-16T10:05:30.000Z"}
{"turn":"refused","at":"2026-01-16T10:05:30.000Z"}
{"message":{"role":"user","content":"once more\n\npiped in"},"at":"2026-01-16T10:05:30.000Z"}
{"error":{"operation":"model","code":"dropped","message":"the answer of replay:talk.jsonl broke off: the line broke; ask again"},"at":"2026-01-16T10:05:30.000Z"}
{"turn":"failed","at":"2026-01-16T10:05:30.000Z"}
{"end":"2026-01-16T10:05:30.000Z","at":"2026-01-16T10:05:30.000Z"}
"#;

#[test]
fn a_lively_session_leaves_what_it_is_documented_to_leave() {
    let answers = [
        calls(&[("todo", json!({"items": ["a"]}))]),
        text("done"),
        text("asked and answered"),
        json!({"error": "the line broke"}),
    ];
    let mut world = World::new(&answers).hooks(|event| match (event.kind, event.text("prompt")) {
        (EventKind::BeforeAgent, Some("refused")) => Decision::block("gate", "closed"),
        (EventKind::BeforeAgent, Some("go")) => Decision {
            system_messages: vec!["mind the step".into()],
            context: vec!["it is Friday".into()],
            ..Decision::default()
        },
        (EventKind::AfterTool, _) => Decision {
            result: Some(json!("something else")),
            prompts: vec![crate::support::said("and then?")],
            ..Decision::default()
        },
        _ => Decision::default(),
    });
    world.clock = || UNIX_EPOCH + Duration::from_secs(1_768_557_930);
    save(&mut world);
    let mut session = world.start();
    for prompt in ["go", "refused", "once more"] {
        session.say(prompt, Some("piped in"));
    }
    session.end();
    let written = std::fs::read_to_string(folder(&world).join("s1.jsonl")).unwrap();
    assert_eq!(written, LIVELY);
}
