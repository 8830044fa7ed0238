//! What hooks print: good answers, half-wrong ones, and noise.

use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::text::{json_object, json_value, text};

/// Every field of an answer in any dialect.
const FIELDS: &[&str] = &[
    "continue",
    "allow",
    "decision",
    "reason",
    "stopReason",
    "message",
    "systemMessage",
    "error",
    "data",
    "metadata",
    "modified_args",
    "hookSpecificOutput",
    "action",
    "prompt",
    "result",
    "version",
    "jsonrpc",
    "id",
];

/// An answer with some fields of any dialect, each of its right type.
pub fn answer_object() -> impl Strategy<Value = Map<String, Value>> {
    let field = prop::sample::select(FIELDS).prop_flat_map(|name| (Just(name.to_owned()), fitting(name)));
    prop::collection::vec(field, 0..6).prop_map(Map::from_iter)
}

/// What a hook may leave on its standard output: valid, half-wrong, malformed and noisy answers.
pub fn hook_answer_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => answer_object().prop_map(|answer| line(&answer)),
        4 => half_wrong().prop_map(|answer| line(&answer)),
        2 => (answer_object(), any::<prop::sample::Index>()).prop_map(|(answer, at)| {
            let mut bytes = line(&answer);
            bytes.truncate(at.index(bytes.len()));
            bytes
        }),
        2 => (answer_object(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(answer, at, byte)| {
            let mut bytes = line(&answer);
            let at = at.index(bytes.len());
            bytes.splice(at..=at, [byte]);
            bytes
        }),
        2 => (text(), answer_object(), text()).prop_map(|(before, answer, after)| {
            [before.as_bytes(), b"\n", &line(&answer), after.as_bytes()].concat()
        }),
        1 => (answer_object(), half_wrong()).prop_map(|(one, other)| [line(&one), line(&other)].concat()),
        1 => text().prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..64),
    ]
}

/// The names of known fields with any values.
fn half_wrong() -> impl Strategy<Value = Map<String, Value>> {
    let field = (prop::sample::select(FIELDS).prop_map(str::to_owned), json_value());
    prop::collection::vec(field, 0..6).prop_map(Map::from_iter)
}

fn fitting(field: &str) -> BoxedStrategy<Value> {
    match field {
        "continue" | "allow" => any::<bool>().prop_map(Value::from).boxed(),
        "decision" => decision().prop_map(Value::from).boxed(),
        "data" | "metadata" | "modified_args" => json_object().prop_map(Value::from).boxed(),
        "hookSpecificOutput" => (decision(), text())
            .prop_map(|(decision, reason)| {
                serde_json::json!({"permissionDecision": decision, "permissionDecisionReason": reason})
            })
            .boxed(),
        "action" => prop::sample::select(&["askAgent", "runCommand"][..]).prop_map(Value::from).boxed(),
        "result" => any::<bool>().prop_map(|go_on| serde_json::json!({"continue": go_on})).boxed(),
        "version" => prop::sample::select(&["1.0.0", "1.7", "2.0.0"][..]).prop_map(Value::from).boxed(),
        "jsonrpc" => Just("2.0".into()).boxed(),
        "id" => Just(1.into()).boxed(),
        _ => text().prop_map(Value::from).boxed(),
    }
}

fn decision() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["approve", "allow", "block", "deny", "ask", "modify", "Deny", "ALLOW", "maybe"][..])
}

fn line(answer: &Map<String, Value>) -> Vec<u8> {
    let mut bytes = Value::from(answer.clone()).to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}
