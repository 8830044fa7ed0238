//! The JSON Schema of a manifest, for editors.

use serde_json::{Map, Value, json};

use super::Extensions;
use super::manifest::{KEYS, VERSION};
use super::name::reserved;
use super::setting::{LONGEST_PATTERN, SettingKind, TAKEN, TAKEN_PREFIXES, schema as of_settings};
use crate::config::schema as config_schema;
use crate::entry::by_event;
use crate::mcp::{self, or_null};

/// A semantic version.
const VERSION_TEXT: &str =
    r"^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}(-PART(\.PART)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$";
/// A part of what follows a version after a hyphen.
const PART: &str = "(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)";
/// Versions with what they are compared by, with commas or blanks between.
const RANGE: &str = r"^\s*ONE((\s*,\s*|\s+)ONE)*\s*$";
const ONE: &str = r"(=|>=?|<=?|~|\^)?\s*NUMBER(\.NUMBER){0,2}([-+][0-9A-Za-z.+-]+)?";
const NUMBER: &str = "(0|[1-9][0-9]*|[xX*])";

/// The JSON Schema of `manifest.json`.
pub fn manifest_schema() -> Value {
    let version = VERSION_TEXT.replace("PART", PART);
    let properties = [
        ("$schema", json!({"description": "Where this schema is."})),
        ("manifestVersion", json!({"type": "integer", "minimum": 1, "maximum": VERSION, "default": 1})),
        ("name", name()),
        ("version", json!({"type": "string", "description": "A semantic version.", "pattern": version})),
        ("description", words("What the extension is for.")),
        ("author", or_null(about(&["name", "email", "url"]))),
        ("license", or_null(words("The licence, as an SPDX expression."))),
        ("repository", or_null(about(&["url", "type", "directory"]))),
        ("homepage", or_null(words("Where it is described."))),
        ("keywords", or_null(texts())),
        ("mcpServers", or_null(servers())),
        ("hooks", or_null(by_event())),
        ("settings", or_null(json!({"type": "array", "items": setting()}))),
        ("skills", or_null(json!({"type": "array", "items": skill()}))),
        ("dependencies", or_null(dependencies())),
        ("permissions", or_null(permissions())),
    ];
    debug_assert_eq!(properties.len(), KEYS.len());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "manifest.json of an ollm extension",
        "type": "object",
        "required": ["name", "version", "description"],
        "additionalProperties": {"type": "null"},
        "properties": Map::from_iter(properties.map(|(key, value)| (key.to_owned(), value))),
    })
}

fn words(about: &str) -> Value {
    json!({"type": "string", "pattern": r"\S", "description": about})
}

fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

/// The name of a setting, a skill or a server.
fn plain() -> Value {
    json!({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"})
}

/// The name of an extension.
fn name() -> Value {
    json!({"type": "string", "pattern": name_pattern()})
}

fn name_pattern() -> String {
    format!("^(?!({})$)[a-z0-9]([a-z0-9-]{{0,62}}[a-z0-9])?$", reserved().join("|"))
}

/// Text, or a map with these keys among others.
fn about(keys: &[&str]) -> Value {
    let text = json!({"type": "string", "pattern": r"\S"});
    let keys: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), text.clone())).collect();
    json!({"anyOf": [text, {"type": "object", "properties": keys}]})
}

fn servers() -> Value {
    json!({"type": "object", "propertyNames": plain(), "additionalProperties": mcp::schema()})
}

fn setting() -> Value {
    let kinds: Vec<&str> = SettingKind::NAMES.iter().map(|(_, name)| *name).collect();
    let scalar = json!({"type": ["string", "number", "boolean"]});
    let taken = json!({"anyOf": [{"enum": TAKEN}, {"pattern": format!("^({})", TAKEN_PREFIXES.join("|"))}]});
    let variable = json!({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "not": taken});
    json!({
        "type": "object",
        "required": ["name", "description"],
        "additionalProperties": {"type": "null"},
        "properties": {
            "name": plain(),
            "description": words("What it is for."),
            "type": or_null(json!({"enum": kinds})),
            "envVar": or_null(variable),
            "sensitive": or_null(json!({"type": "boolean"})),
            "required": or_null(json!({"type": "boolean"})),
            "default": or_null(scalar.clone()),
            "enum": or_null(json!({"type": "array", "minItems": 1, "items": scalar})),
            "pattern": or_null(
                json!({"type": "string", "format": "regex", "pattern": r"\S", "maxLength": LONGEST_PATTERN})
            ),
        },
    })
}

fn skill() -> Value {
    json!({
        "type": "object",
        "required": ["name", "description", "prompt"],
        "additionalProperties": {"type": "null"},
        "properties": {
            "name": plain(),
            "description": words("What it is for."),
            "prompt": words("The prompt, with {{placeholders}}."),
        },
    })
}

fn dependencies() -> Value {
    let range = json!({"type": "string", "pattern": RANGE.replace("ONE", ONE).replace("NUMBER", NUMBER)});
    json!({
        "type": "object",
        "patternProperties": {name_pattern(): or_null(range)},
        "additionalProperties": {"type": "null"},
    })
}

fn permissions() -> Value {
    let flag = || or_null(json!({"type": "boolean"}));
    let list = || or_null(texts());
    json!({
        "type": "object",
        "additionalProperties": {"type": "null"},
        "properties": {"filesystem": list(), "network": list(), "env": list(), "shell": flag(), "mcp": flag()},
    })
}

/// The JSON Schema of `config.yaml` with the settings of these extensions in it.
pub fn settings_schema(extensions: &Extensions) -> Value {
    let mut schema = config_schema();
    let settings = schema.pointer_mut("/properties/extensions/properties/settings").and_then(Value::as_object_mut);
    if let Some(settings) = settings {
        let declared = extensions.iter().filter(|extension| !extension.manifest.settings.is_empty());
        let own = declared.map(|extension| (extension.name.clone(), of_settings(&extension.manifest.settings)));
        settings.insert("properties".to_owned(), Value::Object(own.collect()));
    }
    schema
}
