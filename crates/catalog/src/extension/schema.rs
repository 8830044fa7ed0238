//! The JSON Schema of a manifest, for editors.

use serde_json::{Map, Value, json};

use super::Extensions;
use super::manifest::{KEYS, VERSION};
use super::setting::{SettingKind, schema as of_settings};
use crate::config::schema as config_schema;

/// The JSON Schema of `manifest.json`.
pub fn manifest_schema() -> Value {
    let text = |about: &str| json!({"type": "string", "minLength": 1, "description": about});
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let plain = json!({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"});
    let kinds: Vec<&str> = SettingKind::NAMES.iter().map(|(_, name)| *name).collect();
    let scalar = json!({"type": ["string", "number", "boolean"]});
    let person = |main: &str| json!({"anyOf": [{"type": "string"}, {"type": "object", "required": [main]}]});
    let properties = [
        ("$schema", json!({"type": "string"})),
        ("manifestVersion", json!({"type": "integer", "minimum": 1, "maximum": VERSION, "default": 1})),
        ("name", json!({"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$"})),
        (
            "version",
            json!({"type": "string", "description": "A semantic version.", "pattern": r"^\d+\.\d+\.\d+([-+].+)?$"}),
        ),
        ("description", text("What the extension is for.")),
        ("author", person("name")),
        ("license", text("The licence, as an SPDX expression.")),
        ("repository", person("url")),
        ("homepage", text("Where it is described.")),
        ("keywords", texts.clone()),
        ("mcpServers", json!({"type": "object", "additionalProperties": {"type": "object"}})),
        (
            "hooks",
            json!({
                "type": "object",
                "description": "Events, in any dialect's spelling, with their hooks.",
                "additionalProperties": {"type": "array", "items": hook()},
            }),
        ),
        (
            "settings",
            json!({"type": "array", "items": {
                "type": "object",
                "required": ["name", "description"],
                "additionalProperties": false,
                "properties": {
                    "name": plain,
                    "description": text("What it is for."),
                    "type": {"enum": kinds},
                    "envVar": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
                    "sensitive": {"type": "boolean"},
                    "required": {"type": "boolean"},
                    "default": scalar,
                    "enum": {"type": "array", "items": scalar},
                    "pattern": {"type": "string", "format": "regex"},
                },
            }}),
        ),
        (
            "skills",
            json!({"type": "array", "items": {
                "type": "object",
                "required": ["name", "description", "prompt"],
                "additionalProperties": false,
                "properties": {"name": plain, "description": text("What it is for."), "prompt": text("The prompt, with {{placeholders}}.")},
            }}),
        ),
        ("dependencies", json!({"type": "object", "additionalProperties": {"type": "string"}})),
        (
            "permissions",
            json!({
                "type": "object",
                "additionalProperties": false,
                "properties": {"filesystem": texts, "network": texts, "env": texts, "shell": {"type": "boolean"}, "mcp": {"type": "boolean"}},
            }),
        ),
    ];
    debug_assert_eq!(properties.len(), KEYS.len());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "manifest.json of an ollm extension",
        "type": "object",
        "required": ["name", "version", "description"],
        "properties": Map::from_iter(properties.map(|(key, value)| (key.to_owned(), value))),
    })
}

/// What every hook has; its other keys are those of a hook file.
fn hook() -> Value {
    json!({
        "type": "object",
        "anyOf": [{"required": ["command"]}, {"required": ["action"]}],
        "properties": {
            "name": {"type": "string"},
            "command": {"type": "string"},
            "args": {"type": "array", "items": {"type": "string"}},
            "action": {"type": "object", "required": ["type"]},
        },
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
