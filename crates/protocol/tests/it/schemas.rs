//! The schemas of a dialect describe all that it writes.

use ollm_protocol::dialect::{all, event_schema};
use ollm_protocol::{Dialect, Event, EventKind, Request};
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::{event, kind, verdict};

use crate::{HOOK, cases};

fn complaints(schema: &Value, bytes: &[u8]) -> Vec<String> {
    let value: Value = serde_json::from_slice(bytes).unwrap();
    let validator = jsonschema::validator_for(schema).unwrap();
    validator.iter_errors(&value).map(|error| format!("{}: {error} in {value}", error.instance_path())).collect()
}

fn answer(dialect: &dyn Dialect, kind: EventKind, text: &str) -> bool {
    complaints(&dialect.answer_schema(kind), text.as_bytes()).is_empty()
}

#[test]
fn every_schema_is_a_schema() {
    for dialect in all() {
        for kind in EventKind::all() {
            for schema in [event_schema(dialect, kind), dialect.answer_schema(kind)] {
                jsonschema::meta::validate(&schema).unwrap();
            }
        }
    }
}

#[test]
fn a_schema_names_the_fields_where_the_dialect_puts_them() {
    let gate = event_schema(ollm_protocol::dialect::GATE, EventKind::BeforeTool);
    assert_eq!(gate["properties"]["event"], json!({"const": "pre-tool-call"}));
    assert_eq!(gate["properties"]["context"]["properties"]["tool"], json!({"type": "string"}));
    assert_eq!(gate["required"], json!(["version", "event", "context", "metadata"]));
    let rpc = event_schema(ollm_protocol::dialect::RPC, EventKind::BeforeAgent);
    let event = &rpc["properties"]["params"]["properties"]["event"]["properties"];
    assert_eq!((&event["type"], &event["timestamp"]), (&json!({"const": "promptSubmit"}), &json!({"type": "number"})));
}

#[test]
fn an_answer_without_its_decisive_field_or_with_a_wrong_one_is_not_described() {
    use ollm_protocol::dialect::{AGENT, GATE, OLLM, RPC};
    let kind = EventKind::BeforeTool;
    for (dialect, text, valid) in [
        (OLLM, r#"{"continue": true, "systemMessage": null}"#, true),
        (OLLM, r#"{"continue": "yes"}"#, false),
        (OLLM, "{}", false),
        (GATE, r#"{"allow": false, "message": "no"}"#, true),
        (GATE, r#"{"continue": false}"#, false),
        (RPC, r#"{"jsonrpc": "2.0", "id": 1, "result": {"action": "askAgent", "prompt": "look"}}"#, true),
        (RPC, r#"{"jsonrpc": "2.0", "id": 1, "result": {"action": "askAgent"}}"#, false),
        (RPC, r#"{"jsonrpc": "2.0", "id": 1, "result": {"action": "runCommand", "prompt": "x"}}"#, false),
        (RPC, r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}}"#, true),
        (AGENT, r#"{"decision": "modify", "modified_args": {}}"#, true),
        (AGENT, r#"{"decision": "Deny"}"#, false),
    ] {
        assert_eq!(answer(dialect, kind, text), valid, "{} {text}", dialect.name());
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_written_event_fits_its_schema(event in event()) {
        for dialect in all() {
            let bytes = dialect.write_event(&event, &HOOK);
            prop_assert_eq!(complaints(&event_schema(dialect, event.kind), &bytes), Vec::<String>::new());
        }
    }

    #[test]
    fn every_written_answer_fits_its_schema(kind in kind(), verdict in verdict()) {
        let request = Request { id: 1.into(), ..Request::new(Event::unchecked(kind, [])) };
        for dialect in all() {
            let reply = dialect.write_verdict(&request, &verdict);
            // Some agents are told things in plain text.
            let is_json = serde_json::from_slice::<Value>(&reply.stdout).is_ok_and(|answer| answer.is_object());
            prop_assert!(is_json || reply.stdout.is_empty() || ["kiro", "windsurf"].contains(&dialect.name()));
            if is_json && !["kiro", "windsurf"].contains(&dialect.name()) {
                prop_assert_eq!(complaints(&dialect.answer_schema(kind), &reply.stdout), Vec::<String>::new());
            }
        }
    }
}
