//! The numbered properties of the hook protocol.

use ollm_protocol::dialect::{AGENT, DIALECTS, GATE, OLLM, RPC, all};
use ollm_protocol::{Dialect, DialectError, End, Event, EventKind, Flow, Request, Verdict};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};
use testkit::{complete_event, event, json_object, text};

use crate::{HOOK, cases, json, said, said_at};

/// The names that mean something on some wire; data of an earlier hook may use any of them.
const WIRE_NAMES: &[&str] = &[
    "sessionId",
    "tool",
    "tool_input",
    "tool_args",
    "tool_use_id",
    "tool_response",
    "last_assistant_message",
    "notification_type",
    "compact_summary",
    "file_path",
    "file",
    "fileDetails",
    "changeInfo",
    "changes",
    "diff",
    "event",
    "hook_event_name",
    "stop_hook_active",
    "context",
    "metadata",
    "version",
    "params",
    "toolName",
    "arguments",
    "type",
];

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn property_06_hook_protocol_round_trip(event in event(), seen in text(), returned in "y_[a-z]{1,8}") {
        for dialect in all() {
            let request = dialect.read_event(&dialect.write_event(&event, &HOOK)).unwrap();
            prop_assert_eq!(request.event.kind, event.kind);
            for (name, value) in event.data.iter().filter(|(name, _)| name.starts_with("x_")) {
                prop_assert_eq!(request.event.data.get(name), Some(value), "{} in {}", name, dialect.name());
            }
        }
        // The dialects whose answers carry data hand it on to the next hook of the event.
        for dialect in [OLLM, RPC] {
            let data = Map::from_iter([(returned.clone(), Value::from(seen.clone()))]);
            let request = Request { id: 1.into(), ..Request::new(event.clone()) };
            let reply = dialect.write_verdict(&request, &Verdict { data, ..Verdict::default() });
            let answer = said_at(dialect, event.kind, End::Exited(0), &reply.stdout, b"");
            let next = event.clone().with_extra(&answer.verdict.data);
            for dialect in all() {
                let read = dialect.read_event(&dialect.write_event(&next, &HOOK)).unwrap().event;
                prop_assert_eq!(read.text(&returned), Some(seen.as_str()));
            }
        }
    }

    #[test]
    fn property_07_output_validation(go_on: bool, message in text(), data in json_object(), others in json_object()) {
        let mut wire = others.clone();
        wire.extend([("systemMessage".to_owned(), message.clone().into()), ("data".to_owned(), data.clone().into())]);
        wire.remove("error");
        wire.remove("continue");
        let without = said(OLLM, &Value::from(wire.clone()).to_string());
        prop_assert_eq!(without.failure.as_deref(), Some("the answer has no `continue`"));
        prop_assert_eq!(without.verdict.flow, Flow::NoOpinion);

        wire.insert("continue".to_owned(), go_on.into());
        let answer = said(OLLM, &Value::from(wire).to_string());
        let texts: Vec<String> = if message.is_empty() { vec![] } else { vec![message] };
        let reasons = if go_on { vec![] } else { texts.clone() };
        let flow = if go_on { Flow::NoOpinion } else { Flow::Block };
        prop_assert_eq!(answer.failure, None);
        prop_assert_eq!(answer.verdict, Verdict { flow, reasons, system_messages: texts, data, ..Verdict::default() });
    }

    #[test]
    fn property_08_malformed_output_is_a_failure_and_never_an_approval(words in "[^{]{1,40}") {
        prop_assume!(!words.trim_start_matches('\u{feff}').trim().is_empty());
        for dialect in [OLLM, GATE, RPC] {
            let answer = said(dialect, &words);
            prop_assert!(answer.failure.is_some(), "{}", dialect.name());
            prop_assert_eq!(answer.verdict, Verdict::default());
        }
        for dialect in all() {
            let answer = said(dialect, &format!("{{\"continue\":{words}"));
            prop_assert!(answer.failure.is_some(), "{}", dialect.name());
            prop_assert_ne!(answer.verdict.flow, Flow::Allow);
        }
    }
}

#[test]
fn property_27_event_data_completeness() {
    for kind in EventKind::all() {
        let mut runner = TestRunner::new(cases(256));
        let outcome = runner.run(&complete_event(kind), |event| {
            for dialect in DIALECTS {
                let wire = json(&dialect.write_event(&event, &HOOK));
                check_complete(*dialect, &event, &wire)?;
            }
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{}: {failure}", kind.name()));
    }
}

#[test]
fn data_of_an_earlier_hook_never_replaces_a_field_of_the_event() {
    for kind in EventKind::all() {
        let names = prop::sample::subsequence(WIRE_NAMES, 0..WIRE_NAMES.len());
        let mut runner = TestRunner::new(cases(32));
        let outcome = runner.run(&(complete_event(kind), names), |(event, names)| {
            let extra = names.into_iter().map(|name| (name.to_owned(), Value::from("forged"))).collect();
            let next = event.clone().with_extra(&extra);
            for dialect in DIALECTS {
                let bytes = dialect.write_event(&next, &HOOK);
                check_complete(*dialect, &event, &json(&bytes))?;
                // Read back, a forged field beside the true one is refused, and never taken.
                match dialect.read_event(&bytes) {
                    Ok(request) => prop_assert_eq!(request.event.kind, kind, "{}", dialect.name()),
                    Err(DialectError::Contradiction { .. }) => prop_assert!(kind.is_tool_call()),
                    Err(error) => prop_assert!(false, "{}: {}", dialect.name(), error),
                }
            }
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{}: {failure}", kind.name()));
    }
}

fn check_complete(dialect: &dyn Dialect, event: &Event, wire: &Value) -> Result<(), TestCaseError> {
    for (field, _) in event.kind.fields() {
        for place in places(dialect, event.kind, field) {
            let expected = match (dialect.name(), field) {
                ("rpc", "timestamp") => milliseconds(&event.data[field]),
                _ => event.data[field].clone(),
            };
            let found = wire.pointer(&place);
            prop_assert_eq!(found, Some(&expected), "{} of {} in {}", field, event.kind.name(), dialect.name());
        }
    }
    prop_assert_eq!(wire.pointer(name_place(dialect)).and_then(Value::as_str), Some(dialect.spell(event.kind)));
    Ok(())
}

fn milliseconds(timestamp: &Value) -> Value {
    timestamp.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond().into()
}

fn name_place(dialect: &dyn Dialect) -> &'static str {
    match dialect.name() {
        "rpc" => "/params/event/type",
        "agent" => "/hook_event_name",
        _ => "/event",
    }
}

/// Where a canonical field stands on a dialect's wire.
fn places(dialect: &dyn Dialect, kind: EventKind, field: &str) -> Vec<String> {
    let all = |places: &[&str]| places.iter().map(|&place| place.to_owned()).collect();
    let tool = matches!(kind, EventKind::BeforeTool | EventKind::AfterTool);
    match (dialect.name(), field) {
        ("ollm", "session_id") => all(&["/data/session_id", "/data/sessionId"]),
        ("ollm", _) => vec![format!("/data/{field}")],
        ("gate", "timestamp") => all(&["/metadata/timestamp"]),
        ("gate", "session_id") => all(&["/metadata/sessionId"]),
        ("gate", "tool_name") if tool => all(&["/context/tool"]),
        ("gate", "path") if kind.is_file() => all(&["/context/file"]),
        ("gate", "file") if kind.is_file() => all(&["/context/fileDetails"]),
        ("gate", "size" | "maxSize" | "utilization") if kind == EventKind::ContextOverflow => {
            vec![format!("/context/context/{field}")]
        }
        ("gate", _) => vec![format!("/context/{field}")],
        ("rpc", "timestamp") => all(&["/params/event/timestamp"]),
        ("rpc", "agent" | "user" | "file") => vec![format!("/params/context/{field}")],
        ("rpc", "changes") if kind.is_file() => all(&["/params/event/data/changeInfo"]),
        ("rpc", "diff") if kind.is_file() => all(&["/params/event/data/changes"]),
        ("rpc", _) => vec![format!("/params/event/data/{field}")],
        ("agent", "args") if tool => all(&["/tool_input", "/tool_args"]),
        ("agent", "call_id") if tool => all(&["/tool_use_id"]),
        ("agent", "result") if tool => all(&["/tool_response", "/result"]),
        ("agent", "response") if kind == EventKind::AfterAgent => all(&["/last_assistant_message"]),
        ("agent", "event_type") => all(&["/notification_type", "/event_type"]),
        ("agent", "summary") => all(&["/compact_summary"]),
        ("agent", "path") if kind.is_file() => all(&["/file_path"]),
        ("agent", _) => vec![format!("/{field}")],
        (other, _) => panic!("no places are known for {other}"),
    }
}

#[test]
fn the_agent_learns_how_often_it_was_refused_and_what_happened_to_the_file() {
    let stop = Event::unchecked(EventKind::AfterAgent, [("attempt", 2.into())]);
    assert_eq!(json(&AGENT.write_event(&stop, &HOOK))["stop_hook_active"], json!(true));
    for (kind, word) in
        [(EventKind::FileCreated, "add"), (EventKind::FileEdited, "change"), (EventKind::FileDeleted, "unlink")]
    {
        let wire = json(&AGENT.write_event(&Event::unchecked(kind, []), &HOOK));
        assert_eq!((&wire["hook_event_name"], &wire["event"]), (&json!("FileChanged"), &json!(word)));
    }
}
