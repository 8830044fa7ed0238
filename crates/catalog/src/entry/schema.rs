//! JSON Schemas of hook files, for editors: one for each form, and one for all.

use ollm_protocol::dialect::DIALECTS;
use ollm_protocol::hook::action::ActionType;
use ollm_protocol::hook::key::{HOOK_KEYS, HookKey, KeyKind, TextForm};
use ollm_protocol::{EventKind, units};
use serde_json::{Map, Value, json};

use super::HTTP;
use crate::format::{Form, agent, events};
use crate::mcp::or_null;

const SCHEMA: &str = "https://json-schema.org/draft/2020-12/schema";
const TIME: &str = units::DURATION_PATTERN;
const POSITIVE_TIME: &str = units::POSITIVE_DURATION_PATTERN;
const SIZE: &str = units::SIZE_PATTERN;
const SERVICE: &str = r"^(\[[^\s/]+\]|[^:/\s]+):0*(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})$";
const HEADER: &str = r"^[^\x00-\x08\x0a-\x1f\x7f]*$";
const ANY: &str = "";
/// A pattern for non-empty text.
const WORD: &str = r"\S";

/// The JSON Schema of a hook file of this form.
pub fn hook_schema(form: Form) -> Value {
    let (title, body) = match form {
        Form::Events => ("Hooks by event", events_form()),
        Form::Modern => ("One hook, with eventType and action", modern()),
        Form::WhenThen => ("One hook, with when and then", when_then()),
        Form::Agent => ("Hooks of an agent's settings", agent_form()),
    };
    titled(title, body)
}

/// The JSON Schema of a hook file of any form.
pub fn hook_file_schema() -> Value {
    let forms = [events_form(), modern(), when_then(), agent_form()];
    titled("A hook file", json!({"type": "object", "anyOf": forms}))
}

fn titled(title: &str, body: Value) -> Value {
    let mut schema = Map::from_iter([("$schema".to_owned(), SCHEMA.into()), ("title".to_owned(), title.into())]);
    if let Value::Object(body) = body {
        schema.extend(body);
    }
    schema.into()
}

fn events_form() -> Value {
    let text = json!({"type": "string"});
    let beside =
        events::BESIDE.iter().map(|key| ((*key).to_owned(), if *key == "hooks" { by_event() } else { text.clone() }));
    let beside: Map<String, Value> = beside.collect();
    json!({"type": "object", "properties": beside, "required": ["hooks"], "additionalProperties": false})
}

/// Events with their hooks, as in our hook files and in manifests.
pub(crate) fn by_event() -> Value {
    let mut hook = entry(&[], &[]);
    if let Some(hook) = hook.as_object_mut() {
        // An entry has either a program or another action.
        let program =
            json!({"required": ["command"], "properties": {"command": {"type": "string"}, "action": {"type": "null"}}});
        let action =
            json!({"required": ["action"], "properties": {"action": {"type": "object"}, "command": {"type": "null"}}});
        let no_args = json!({"properties": {"args": {"maxItems": 0}}});
        hook.insert("oneOf".to_owned(), json!([program, {"allOf": [action, no_args]}]));
    }
    json!({
        "type": "object",
        "description": "Events, in any dialect's spelling, with their hooks.",
        "propertyNames": event(),
        "additionalProperties": {"type": "array", "items": hook},
    })
}

fn modern() -> Value {
    let own = [("eventType", one_or_more(&event())), ("$schema", json!({"type": "string"}))];
    let mut schema = entry(&own, &["type"]);
    require(&mut schema, &["name", "eventType"]);
    schema
}

fn when_then() -> Value {
    let when = json!({
        "type": "object",
        "properties": {"type": one_or_more(&event()), "patterns": HookKey::find("filePatterns").and_then(holds)},
        "required": ["type"],
        "additionalProperties": false,
    });
    let own = [("when", when), ("then", action()), ("$schema", json!({"type": "string"}))];
    let mut schema = entry(&own, &["type", "action", "command", "args", "filePatterns"]);
    require(&mut schema, &["name", "when", "then"]);
    schema
}

fn agent_form() -> Value {
    let line = entry(&[("type", json!({"const": "command"}))], agent::MEANINGLESS);
    let http = ActionType::of_files().find(|kind| kind.name == HTTP).map(typed).unwrap_or_default();
    let keys = http.get("properties").and_then(Value::as_object).into_iter().flatten();
    let own: Vec<(&str, Value)> = keys.map(|(key, value)| (key.as_str(), value.clone())).collect();
    let mut post = entry(&own, &[agent::MEANINGLESS, &["command"]].concat());
    require(&mut post, &["type", "url"]);
    let entry = json!({"anyOf": [line, post]});
    let group = json!({
        "type": "object",
        "properties": {"matcher": {"type": "string"}, "hooks": {"type": "array", "items": entry}},
        "required": ["hooks"],
        "additionalProperties": false,
    });
    let groups = json!({"type": "array", "items": group});
    let hooks = json!({"type": "object", "propertyNames": event(), "additionalProperties": groups});
    // The agent's other settings are beside its hooks.
    json!({"type": "object", "properties": {"hooks": hooks}, "required": ["hooks"]})
}

/// An entry: its usual keys except `without`, and the form's own.
fn entry(own: &[(&str, Value)], without: &[&str]) -> Value {
    let mut properties = spelled(HOOK_KEYS.iter().filter(|row| !without.contains(&row.name)));
    // The key is read without effect: a file cannot approve itself.
    properties.insert("trusted".to_owned(), json!({"type": ["boolean", "null"], "deprecated": true}));
    properties.insert("$schema".to_owned(), json!({}));
    properties.extend(own.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    object(&properties)
}

/// A map in which only these keys may have a value.
fn object(properties: &Map<String, Value>) -> Value {
    json!({"type": "object", "properties": properties, "additionalProperties": {"type": "null"}})
}

/// Keys in all their spellings. Only required keys must have a value.
fn spelled(keys: impl Iterator<Item = &'static HookKey>) -> Map<String, Value> {
    let each = |row: &'static HookKey| {
        let value = value(row).map(|value| if row.required { value } else { or_null(value) });
        let names = std::iter::once(row.name).chain(row.aliases.iter().copied());
        let names = names.flat_map(|name| [name.to_owned(), snake(name)]);
        value.into_iter().flat_map(move |value| names.clone().map(move |name| (name, value.clone())))
    };
    keys.flat_map(each).collect()
}

/// A key's snake_case spelling, which is also read.
pub(crate) fn snake(key: &str) -> String {
    key.chars().fold(String::with_capacity(key.len() + 2), |mut snake, letter| {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        snake
    })
}

fn require(schema: &mut Value, keys: &[&str]) {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("required".to_owned(), keys.into());
    }
}

/// The schema of a key's value, with its description; `None` if entries do not have the key.
fn value(row: &HookKey) -> Option<Value> {
    let mut schema = holds(row)?;
    describe(&mut schema, row.about);
    Some(schema)
}

fn describe(schema: &mut Value, about: &str) {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), about.into());
    }
}

fn holds(row: &HookKey) -> Option<Value> {
    let word = || json!({"type": "string", "pattern": WORD});
    let or_text = |number: Value, form: &str| json!({"anyOf": [number, {"type": "string", "pattern": form}]});
    Some(match row.kind {
        KeyKind::Place => return None,
        KeyKind::Action => action(),
        KeyKind::CommandType => json!({"const": "command"}),
        KeyKind::Line(_) => word(),
        KeyKind::Object(_) => json!({"type": "object"}),
        KeyKind::Headers(_) => pairs(HEADER),
        KeyKind::Text(text, _) => match text.form {
            TextForm::Word | TextForm::Expression => word(),
            TextForm::Any | TextForm::Plain => json!({"type": "string"}),
            TextForm::OneOf(names) => json!({"enum": names()}),
        },
        KeyKind::Flag(_) => json!({"type": "boolean"}),
        KeyKind::Services(_) => json!({"type": "array", "items": {"type": "string", "pattern": SERVICE}}),
        KeyKind::Texts(..) | KeyKind::Files(_) => texts(),
        KeyKind::Patterns(_) => json!({"type": "array", "items": word(), "minItems": 1}),
        KeyKind::Variables(_) => pairs(ANY),
        KeyKind::Time(_) => or_text(json!({"type": "number", "exclusiveMinimum": 0}), POSITIVE_TIME),
        KeyKind::Pause(_) => or_text(json!({"type": "number", "minimum": 0}), TIME),
        KeyKind::Span(_) => json!({"type": "string", "pattern": POSITIVE_TIME}),
        KeyKind::Size(_) => or_text(json!({"type": "integer", "minimum": 0}), SIZE),
        KeyKind::Count(_) => json!({"type": "integer", "minimum": 0}),
        KeyKind::Positive(_) => json!({"type": "integer", "minimum": 1, "maximum": u32::MAX}),
        KeyKind::Choice(names, _) => json!({"enum": names()}),
        KeyKind::Section(keys) => object(&spelled(keys.iter())),
    })
}

fn event() -> Value {
    let aliases = DIALECTS.iter().flat_map(|dialect| dialect.names()).map(|(_, name)| *name);
    let mut all: Vec<&str> = EventKind::all().map(EventKind::name).chain(aliases).collect();
    all.sort_unstable();
    all.dedup();
    json!({"anyOf": [{"enum": all}, {"type": "string", "pattern": "^custom:."}]})
}

fn action() -> Value {
    json!({"oneOf": ActionType::of_files().map(typed).collect::<Vec<_>>()})
}

/// An action of one type.
fn typed(kind: &'static ActionType) -> Value {
    let needed: Vec<&str> = kind.keys.iter().filter(|row| row.required).map(|row| row.name).collect();
    let mut properties = spelled(kind.keys.iter());
    let (usual, other) = (kind.name.to_owned(), snake(kind.name));
    let mut spellings = if usual == other { json!({"const": usual}) } else { json!({"enum": [usual, other]}) };
    describe(&mut spellings, kind.about);
    properties.insert("type".to_owned(), spellings);
    let mut action = object(&properties);
    require(&mut action, &[&["type"], needed.as_slice()].concat());
    action
}

/// Names with texts of this form.
fn pairs(form: &str) -> Value {
    let text = json!({"type": "string", "pattern": form});
    json!({"type": "object", "propertyNames": {"pattern": r"^[^=\x00]+$"}, "additionalProperties": text})
}

fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

fn one_or_more(item: &Value) -> Value {
    json!({"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]})
}
