//! The JSON Schema of a manifest, for editors.

use serde_json::{Value, json};

use super::Extensions;
use super::key::plain;
use super::manifest::MANIFEST;
use super::name::reserved;
use super::setting::{SETTING, schema as of_settings};
use super::skill::SKILL;
use crate::config::schema as config_schema;
use crate::mcp::{self, or_null};

/// A semantic version.
const VERSION_TEXT: &str =
    r"^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}(-PART(\.PART)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$";
/// A part of a pre-release version, after the hyphen.
const PART: &str = "(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)";
/// Versions with comparison operators, separated by commas or spaces.
const RANGE: &str = r"^\s*ONE((\s*,\s*|\s+)ONE)*\s*$";
const ONE: &str = r"(=|>=?|<=?|~|\^)?\s*NUMBER(\.NUMBER){0,2}([-+][0-9A-Za-z.+-]+)?";
const NUMBER: &str = "(0|[1-9][0-9]*|[xX*])";

/// The JSON Schema of `manifest.json`.
pub fn manifest_schema() -> Value {
    let mut schema = MANIFEST.schema();
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
        schema.insert("title".to_owned(), "manifest.json of an ollm extension".into());
    }
    schema
}

/// The name of an extension.
pub(super) fn name() -> Value {
    json!({"type": "string", "pattern": name_pattern()})
}

fn name_pattern() -> String {
    format!("^(?!({})$)[a-z0-9]([a-z0-9-]{{0,62}}[a-z0-9])?$", reserved().join("|"))
}

pub(super) fn version() -> Value {
    json!({"type": "string", "pattern": VERSION_TEXT.replace("PART", PART)})
}

pub(super) fn servers() -> Value {
    json!({"type": "object", "propertyNames": plain(), "additionalProperties": mcp::schema()})
}

pub(super) fn settings() -> Value {
    json!({"type": "array", "items": SETTING.schema()})
}

pub(super) fn skills() -> Value {
    json!({"type": "array", "items": SKILL.schema()})
}

pub(super) fn dependencies() -> Value {
    let range = json!({"type": "string", "pattern": RANGE.replace("ONE", ONE).replace("NUMBER", NUMBER)});
    json!({
        "type": "object",
        "patternProperties": {name_pattern(): or_null(range)},
        "additionalProperties": {"type": "null"},
    })
}

/// The JSON Schema of `config.yaml` that includes the settings of these extensions.
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
