//! JSON Schemas of hook files, for editors: one for each form, and one for all.

use ollm_protocol::dialect::DIALECTS;
use ollm_protocol::{EventKind, OnFailure, Priority, Reach};
use serde_json::{Map, Value, json};

use super::{KEYS, LIMITS};
use crate::format::Form;

const SCHEMA: &str = "https://json-schema.org/draft/2020-12/schema";

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
    let entries = json!({"type": "array", "items": entry(&[], &["type"])});
    let hooks = json!({"type": "object", "propertyNames": event(), "additionalProperties": entries});
    let beside = json!({"hooks": hooks, "$schema": text, "name": text, "version": text, "description": text});
    json!({"type": "object", "properties": beside, "required": ["hooks"], "additionalProperties": false})
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
        "properties": {"type": one_or_more(&event()), "patterns": texts()},
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
    let usual = KEYS.iter().filter(|key| !without.contains(key)).map(|key| ((*key).to_owned(), value(key)));
    let mut properties: Map<String, Value> = usual.collect();
    properties.extend(own.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    json!({"type": "object", "properties": properties, "additionalProperties": false})
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
    let flag = || json!({"type": "boolean"});
    match key {
        "name" => ("Its name, which is a part of its id", text()),
        "description" => ("What it does, for people", text()),
        "command" => ("The program: absolute, relative to this file's folder, or an interpreter", text()),
        "args" => {
            ("Its arguments; a relative script is found beside this file", json!({"type": "array", "items": text()}))
        }
        "action" => ("What it does, where that is not starting a program", action()),
        "dialect" => ("The protocol it speaks", names(DIALECTS.iter().map(|dialect| dialect.name()))),
        "matcher" => {
            ("Which tools it is for: names, prefixes with a star, a list with bars, or re: and an expression", text())
        }
        "filePatterns" => ("The files it is for", texts()),
        "if" => ("The condition under which it runs, in CEL", text()),
        "timeout" => ("How long it may take", time()),
        "onFailure" => ("What its failure means", names(OnFailure::NAMES.iter().map(|(_, name)| *name))),
        "priority" => ("How urgent it is among its neighbours", names(Priority::NAMES.iter().map(|(_, name)| *name))),
        "parallel" => ("Whether it may run at the same time as its neighbours", flag()),
        "persistent" => ("Whether it may be kept between events: a line for each line, until its input ends", flag()),
        "async" => ("Whether nobody waits for it; it decides nothing then", flag()),
        "rateLimit" => ("How often it may run", rate()),
        "requires" => ("What must be there for it to run", requires()),
        "scope" => ("For which agents of a session it runs", names(Reach::NAMES.iter().map(|(_, name)| *name))),
        "env" => (
            "Variables for it",
            json!({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}),
        ),
        "passEnv" => ("Variables of yours that it gets", texts()),
        "cwd" => ("The folder it runs in; without it, that of the event", text()),
        "inputs" => ("Further files that its script needs; they are part of what is approved", texts()),
        "limits" => ("What it may use", limits()),
        "id" => ("Its id, where the one made from its file, event and name will not do", text()),
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
    let text = json!({"type": "string"});
    let typed = |name: &str, mut properties: Map<String, Value>, required: &[&str]| {
        let required: Vec<&str> = std::iter::once("type").chain(required.iter().copied()).collect();
        properties.insert("type".to_owned(), json!({"const": name}));
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    };
    let fields =
        |fields: &[(&str, Value)]| fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let args = json!({"type": "array", "items": text});
    let headers = json!({"type": "object", "additionalProperties": text});
    json!({"oneOf": [
        typed("command", fields(&[("command", text.clone()), ("args", args)]), &["command"]),
        typed("shell", fields(&[("command", text.clone())]), &["command"]),
        typed("askAgent", fields(&[("prompt", text.clone())]), &["prompt"]),
        typed("runCommand", fields(&[("command", text.clone())]), &["command"]),
        typed("http", fields(&[("url", text.clone()), ("headers", headers)]), &["url"]),
        typed("mcp", fields(&[("server", text.clone()), ("tool", text.clone()), ("args", json!({"type": "object"}))]), &["server", "tool"]),
    ]})
}

fn rate() -> Value {
    let properties = json!({
        "perMinute": {"type": "integer", "minimum": 1, "description": "At most so often in any sixty seconds"},
        "cooldownMs": {"type": "number", "minimum": 0, "description": "At least so many milliseconds between two runs"},
        "cooldown": time(),
    });
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn requires() -> Value {
    let properties = json!({
        "commands": {"description": "Programs on the search path", "type": "array", "items": {"type": "string"}},
        "files": {"description": "Files, from the project's root", "type": "array", "items": {"type": "string"}},
        "services": {"description": "Services that answer, as host:port", "type": "array", "items": {"type": "string"}},
    });
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn limits() -> Value {
    let limit = |name: &&str| {
        let value = match *name {
            "time" | "cpu" => time(),
            "processes" | "files" => json!({"type": "integer", "minimum": 1}),
            _ => json!({"type": ["integer", "string"], "description": "A number of bytes, or text such as \"256MiB\""}),
        };
        ((*name).to_owned(), value)
    };
    let properties: Map<String, Value> = LIMITS.iter().map(limit).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn time() -> Value {
    json!({"type": ["number", "string"], "description": "A number in the dialect's unit, or text such as \"5s\""})
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
