//! JSON Schemas of hook files, for editors: one for each form, and one for all.

use ollm_protocol::dialect::{self, DIALECTS};
use ollm_protocol::{Dialect, EventKind, OnFailure, Priority, Reach};
use serde_json::{Map, Value, json};

use super::action::{TYPES, is_needed};
use super::{KEYS, LIMITS, RATE, REQUIRES};
use crate::format::Form;
use crate::mcp::or_null;

const SCHEMA: &str = "https://json-schema.org/draft/2020-12/schema";
const TIME: &str = r"^\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(ms|s|m|h|d)\s*$";
const SIZE: &str = r"^\s*[0-9]+\s*(KiB|MiB|GiB|kB|KB|MB|GB|B)\s*$";
const SERVICE: &str = r"^(\[[^\s/]+\]|[^:/\s]+):0*[1-9][0-9]{0,4}$";
const HEADER: &str = r"^[^\x00-\x08\x0a-\x1f\x7f]*$";
const ANY: &str = "";
/// Text with something in it.
const WORD: &str = r"\S";

/// The JSON Schema of a hook file of this form.
pub fn hook_schema(form: Form) -> Value {
    let (title, body) = match form {
        Form::Events => ("Hooks by event", events()),
        Form::Modern => ("One hook, with eventType and action", modern()),
        Form::WhenThen => ("One hook, with when and then", when_then()),
        Form::Agent => ("Hooks of an agent's settings", agent()),
    };
    titled(title, body)
}

/// The JSON Schema of a hook file of any form.
pub fn hook_file_schema() -> Value {
    let forms = [events(), modern(), when_then(), agent()];
    titled("A hook file", json!({"type": "object", "anyOf": forms}))
}

fn titled(title: &str, body: Value) -> Value {
    let mut schema = Map::from_iter([("$schema".to_owned(), SCHEMA.into()), ("title".to_owned(), title.into())]);
    if let Value::Object(body) = body {
        schema.extend(body);
    }
    schema.into()
}

fn events() -> Value {
    let text = json!({"type": "string"});
    let beside = json!({"hooks": by_event(), "$schema": text, "name": text, "version": text, "description": text});
    json!({"type": "object", "properties": beside, "required": ["hooks"], "additionalProperties": false})
}

/// Events with their hooks, as in a hook file of ours and in a manifest.
pub(crate) fn by_event() -> Value {
    let mut hook = entry(&[], &[]);
    if let Some(hook) = hook.as_object_mut() {
        // Either a program or another action.
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
        "properties": {"type": one_or_more(&event()), "patterns": described("filePatterns").1},
        "required": ["type"],
        "additionalProperties": false,
    });
    let own = [("when", when), ("then", action()), ("$schema", json!({"type": "string"}))];
    let mut schema = entry(&own, &["type", "action", "command", "args", "filePatterns"]);
    require(&mut schema, &["name", "when", "then"]);
    schema
}

fn agent() -> Value {
    let entry = entry(&[("type", json!({"const": "command"}))], &["args", "action", "dialect", "matcher"]);
    let group = json!({
        "type": "object",
        "properties": {"matcher": {"type": "string"}, "hooks": {"type": "array", "items": entry}},
        "required": ["hooks"],
        "additionalProperties": false,
    });
    let groups = json!({"type": "array", "items": group});
    let hooks = json!({"type": "object", "propertyNames": event(), "additionalProperties": groups});
    // Other settings of the agent stand beside its hooks.
    json!({"type": "object", "properties": {"hooks": hooks}, "required": ["hooks"]})
}

/// An entry: its usual keys without some, and those of the form.
fn entry(own: &[(&str, Value)], without: &[&str]) -> Value {
    let usual = KEYS.iter().filter(|key| !without.contains(key)).map(|key| (*key, value(key)));
    let mut properties = spelled(usual);
    // It is read, and means nothing: a file cannot vouch for itself.
    properties.insert("trusted".to_owned(), json!({"type": ["boolean", "null"], "deprecated": true}));
    properties.insert("$schema".to_owned(), json!({}));
    properties.extend(own.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    object(&properties)
}

/// A map with these keys and no others that have a value.
fn object(properties: &Map<String, Value>) -> Value {
    json!({"type": "object", "properties": properties, "additionalProperties": {"type": "null"}})
}

/// Keys in all their spellings; none of them has to have a value.
fn spelled<'a>(keys: impl Iterator<Item = (&'a str, Value)>) -> Map<String, Value> {
    let each = |(key, value): (&str, Value)| {
        let value = or_null(value);
        let mut names = vec![key.to_owned(), snake(key)];
        if key == "cwd" {
            names.extend(["working_directory", "workingDirectory"].map(str::to_owned));
        }
        names.into_iter().map(move |name| (name, value.clone())).collect::<Vec<_>>()
    };
    keys.flat_map(each).collect()
}

/// A key in snake case, which is read as well.
fn snake(key: &str) -> String {
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

/// What a key of an entry holds, and what it is for.
fn value(key: &str) -> Value {
    let (about, mut schema) = described(key);
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), about.into());
    }
    schema
}

fn described(key: &str) -> (&'static str, Value) {
    let text = || json!({"type": "string"});
    let word = || json!({"type": "string", "pattern": WORD});
    let flag = || json!({"type": "boolean"});
    match key {
        "name" => ("Its name, which is a part of its id", word()),
        "description" => ("What it does, for people", text()),
        "command" => ("The program: absolute, relative to this file's folder, or an interpreter", word()),
        "args" => ("Its arguments; a relative script is found beside this file", texts()),
        "action" => ("What it does, where that is not starting a program", action()),
        "dialect" => ("The protocol it speaks", names(dialect::all().map(Dialect::name))),
        "matcher" => {
            ("Which tools it is for: names, prefixes with a star, a list with bars, or re: and an expression", text())
        }
        "filePatterns" => ("The files it is for", json!({"type": "array", "items": word(), "minItems": 1})),
        "if" => ("The condition under which it runs, in CEL", word()),
        "timeout" => ("How long it may take", time()),
        "onFailure" => ("What its failure means", names(OnFailure::NAMES.iter().map(|(_, name)| *name))),
        "priority" => ("How urgent it is among its neighbours", names(Priority::NAMES.iter().map(|(_, name)| *name))),
        "parallel" => ("Whether it may run at the same time as its neighbours", flag()),
        "persistent" => ("Whether it may be kept between events: a line for each line, until its input ends", flag()),
        "async" => ("Whether nobody waits for it; it decides nothing then", flag()),
        "rateLimit" => ("How often it may run", rate()),
        "requires" => ("What must be there for it to run", requires()),
        "scope" => ("For which agents of a session it runs", names(Reach::NAMES.iter().map(|(_, name)| *name))),
        "env" => ("Variables for it", pairs(ANY)),
        "passEnv" => ("Variables of yours that it gets", texts()),
        "cwd" => ("The folder it runs in; without it, that of the event", word()),
        "inputs" => ("Further files that its script needs; they are part of what is approved", texts()),
        "limits" => ("What it may use", limits()),
        "id" => ("Its id, where the one made from its file, event and name will not do", word()),
        "version" => ("Its version", text()),
        "enabled" => ("Whether it is on", flag()),
        "type" => ("What kind of hook it is", json!({"const": "command"})),
        _ => ("", json!({})),
    }
}

fn event() -> Value {
    let aliases = DIALECTS.iter().flat_map(|dialect| dialect.names()).map(|(_, name)| *name);
    let mut all: Vec<&str> = EventKind::all().map(EventKind::name).chain(aliases).collect();
    all.sort_unstable();
    all.dedup();
    json!({"anyOf": [{"enum": all}, {"type": "string", "pattern": "^custom:."}]})
}

fn action() -> Value {
    json!({"oneOf": TYPES.iter().map(|(name, keys)| typed(name, keys)).collect::<Vec<_>>()})
}

/// An action of one type.
fn typed(name: &str, keys: &[&str]) -> Value {
    let needed: Vec<&str> = keys.iter().copied().filter(|key| is_needed(key)).collect();
    let part = |key: &&str| {
        let value = match *key {
            "args" if name == "mcp" => or_null(json!({"type": "object"})),
            "args" => or_null(texts()),
            "headers" => or_null(pairs(HEADER)),
            _ => json!({"type": "string", "pattern": WORD}),
        };
        ((*key).to_owned(), value)
    };
    let mut properties: Map<String, Value> = keys.iter().map(part).collect();
    let (usual, other) = (name.to_owned(), snake(name));
    let spellings = if usual == other { json!({"const": usual}) } else { json!({"enum": [usual, other]}) };
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

fn rate() -> Value {
    let described = |key: &&'static str| {
        let value = match *key {
            "perMinute" => {
                json!({"type": "integer", "minimum": 1, "maximum": u32::MAX, "description": "At most so often in any sixty seconds"})
            }
            _ => pause(),
        };
        (*key, value)
    };
    object(&spelled(RATE.iter().map(described)))
}

fn requires() -> Value {
    let described = |key: &&'static str| {
        let (about, item) = match *key {
            "commands" => ("Programs on the search path", json!({"type": "string"})),
            "files" => ("Files, from the project's root", json!({"type": "string"})),
            _ => ("Services that answer, as host:port", json!({"type": "string", "pattern": SERVICE})),
        };
        (*key, json!({"description": about, "type": "array", "items": item}))
    };
    object(&spelled(REQUIRES.iter().map(described)))
}

fn limits() -> Value {
    let limit = |name: &&'static str| {
        let value = match *name {
            "time" => time(),
            "cpu" => json!({"type": "string", "pattern": TIME, "description": "Text such as \"5s\""}),
            "processes" | "files" => json!({"type": "integer", "minimum": 0}),
            _ => json!({
                "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": SIZE}],
                "description": "A number of bytes, or text such as \"256MiB\"",
            }),
        };
        (*name, value)
    };
    object(&spelled(LIMITS.iter().map(limit)))
}

fn time() -> Value {
    json!({
        "anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": TIME}],
        "description": "A number in the dialect's unit, or text such as \"5s\"",
    })
}

/// A time that may be none.
fn pause() -> Value {
    json!({
        "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": TIME}],
        "description": "At least so long between two runs: a number of milliseconds, or text such as \"5s\"",
    })
}

fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

fn one_or_more(item: &Value) -> Value {
    json!({"anyOf": [item, {"type": "array", "items": item, "minItems": 1}]})
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> Value {
    json!({"enum": names.collect::<Vec<_>>()})
}
