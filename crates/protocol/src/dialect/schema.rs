//! JSON Schemas of the wire formats.
//!
//! No event's schema is written by hand. An event with blank fields is written in the dialect, and the result shows the
//! place of each field. Values that are not blank come from the dialect itself.

use serde_json::{Map, Value, json};

use super::{Addressee, Dialect};
use crate::event::{Event, EventKind, Shape};

const SCHEMA: &str = "https://json-schema.org/draft/2020-12/schema";
/// Any timestamp; it differs from the blank values.
const MOMENT: &str = "2001-02-03T04:05:06Z";

/// The schema of the event that a hook of this dialect reads.
pub(super) fn event(dialect: &dyn Dialect, kind: EventKind) -> Value {
    let fields = kind.fields().map(|(name, shape)| (name, blank(name, shape)));
    let full = written(dialect, &Event::unchecked(kind, fields));
    let empty = written(dialect, &Event::unchecked(kind, []));
    let title = format!("{} as a {} hook reads it", dialect.spell(kind), dialect.name());
    titled(title, described(&full, &empty))
}

/// The schema of an answer in this dialect, with these fields of its own.
pub(super) fn answer(dialect: &dyn Dialect, kind: EventKind, body: Value) -> Value {
    titled(format!("What a {} hook answers to {}", dialect.name(), dialect.spell(kind)), body)
}

/// The schema of an object with these fields of an answer.
pub(super) fn fields(names: &[&str], required: &[&str]) -> Value {
    let properties: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), field(name))).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// The schema of one field of an answer. The same name means the same in every dialect.
fn field(name: &str) -> Value {
    match name {
        "continue" | "allow" => json!({"type": "boolean"}),
        "decision" => json!({"enum": ["approve", "allow", "block", "deny", "ask", "modify"]}),
        "action" => json!({"const": "askAgent"}),
        "data" | "metadata" | "modified_args" => json!({"type": ["object", "null"]}),
        "hookSpecificOutput" => json!({
            "type": "object",
            "properties": {
                "hookEventName": {"type": "string"},
                "permissionDecision": field("decision"),
                "permissionDecisionReason": {"type": "string"},
                "additionalContext": {"type": "string"},
                "updatedInput": {"type": "object"},
                "updatedToolOutput": {},
            },
        }),
        _ => json!({"type": ["string", "null"]}),
    }
}

fn titled(title: String, body: Value) -> Value {
    let mut schema = Map::from_iter([("$schema".to_owned(), SCHEMA.into()), ("title".to_owned(), title.into())]);
    if let Value::Object(body) = body {
        schema.extend(body);
    }
    schema.into()
}

fn blank(name: &str, shape: Shape) -> Value {
    match shape {
        Shape::Text if name == "timestamp" => MOMENT.into(),
        Shape::Text => "".into(),
        Shape::Number => 0.into(),
        Shape::Object => json!({}),
        Shape::List => json!([]),
        Shape::Any => Value::Null,
    }
}

fn written(dialect: &dyn Dialect, event: &Event) -> Value {
    let bytes = dialect.write_event(event, &Addressee::new("", ""));
    // A dialect always writes one JSON object, which the tests of the dialects check.
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// The schema of a value. The fields of `always` exist for every event.
fn described(value: &Value, always: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(number) if number.as_u64() == Some(1) => json!({"const": 1}),
        Value::Number(_) => json!({"type": "number"}),
        Value::String(text) if text == MOMENT => json!({"type": "string", "format": "date-time"}),
        Value::String(text) if text.is_empty() => json!({"type": "string"}),
        // An event's name may depend on its data.
        Value::String(text) if always.as_str().is_some_and(|other| other != text) => json!({"enum": [text, always]}),
        Value::String(text) => json!({"const": text}),
        Value::Array(_) => json!({"type": "array"}),
        Value::Object(map) => {
            let inner = |name: &str| always.get(name).unwrap_or(&Value::Null);
            let properties = map.iter().map(|(name, value)| (name.clone(), described(value, inner(name))));
            let properties: Map<String, Value> = properties.collect();
            let required: Vec<&String> = map.keys().filter(|name| always.get(name.as_str()).is_some()).collect();
            match (properties.is_empty(), required.is_empty()) {
                (true, _) => json!({"type": "object"}),
                (false, true) => json!({"type": "object", "properties": properties}),
                (false, false) => json!({"type": "object", "properties": properties, "required": required}),
            }
        }
    }
}
