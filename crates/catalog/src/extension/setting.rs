//! The settings that an extension declares, and their valid values.

use ollm_protocol::Remedy;
use ollm_shell::PROGRAM_VARIABLES;
use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::name::upper_snake;
use crate::file::parse_yaml;
use crate::node::Node;
use crate::value;

mod read;

pub(super) use read::{SETTING, hide_whole, read};

/// The longest pattern that is compiled.
const LONGEST_PATTERN: usize = 1000;

/// Names of variables with another meaning, which settings may not use.
fn taken_names() -> impl Iterator<Item = &'static str> {
    std::iter::once("USER").chain(PROGRAM_VARIABLES.iter().map(|variable| variable.name))
}

/// Prefixes of further such names.
const TAKEN_PREFIXES: &[&str] = &["LD_", "DYLD_", "OLLM_", "EXTENSION_"];

/// One setting, as declared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SettingSpec {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The kind of its values.
    pub kind: SettingKind,
    /// The variable that sets it, and that holds it for its hooks.
    pub env_var: Option<String>,
    /// Whether its value is a secret.
    pub sensitive: bool,
    /// Whether the extension requires it.
    pub required: bool,
    /// The default value.
    pub default: Option<Value>,
    /// The valid values; empty if any are valid.
    pub choices: Vec<Value>,
    /// A pattern that its text must contain a match of.
    pub pattern: Option<String>,
}

/// The kind of a setting's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of JSON Schema")]
pub enum SettingKind {
    #[default]
    Text,
    Number,
    Integer,
    Boolean,
    Array,
    Object,
}

impl SettingKind {
    /// Every kind, with its name in a manifest.
    pub const NAMES: &[(SettingKind, &str)] = &[
        (SettingKind::Text, "string"),
        (SettingKind::Number, "number"),
        (SettingKind::Integer, "integer"),
        (SettingKind::Boolean, "boolean"),
        (SettingKind::Array, "array"),
        (SettingKind::Object, "object"),
    ];

    /// Its name in a manifest.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("string", |(_, name)| name)
    }

    /// The kind of a default value.
    fn of(default: &Value) -> SettingKind {
        match default {
            Value::Bool(_) => SettingKind::Boolean,
            Value::Number(_) => SettingKind::Number,
            Value::Array(_) => SettingKind::Array,
            Value::Object(_) => SettingKind::Object,
            _ => SettingKind::Text,
        }
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            SettingKind::Text => value.is_string(),
            SettingKind::Number => value.is_number(),
            SettingKind::Integer => value.is_i64() || value.is_u64(),
            SettingKind::Boolean => value.is_boolean(),
            SettingKind::Array => value.is_array(),
            SettingKind::Object => value.is_object(),
        }
    }

    /// The value of a text.
    fn read(self, text: &str) -> Option<Value> {
        match self {
            SettingKind::Text => Some(text.into()),
            SettingKind::Boolean => value::flag_word(text).map(Value::from),
            SettingKind::Number | SettingKind::Integer | SettingKind::Array | SettingKind::Object => {
                serde_json::from_str::<Value>(text.trim()).ok().filter(|value| self.fits(value))
            }
        }
    }

    /// The number in a text in YAML notation, such as `0x1F`.
    fn read_yaml(self, text: &str) -> Option<Value> {
        let is_number = |node: &Node| matches!(node, Node::Whole(_) | Node::Fraction(_));
        parse_yaml(text).ok().filter(is_number).map(|node| node.to_json()).filter(|value| self.fits(value))
    }

    fn expected(self) -> &'static str {
        match self {
            SettingKind::Text => "text",
            SettingKind::Number => "a number",
            SettingKind::Integer => "a whole number",
            SettingKind::Boolean => "true or false",
            SettingKind::Array => "a list, in JSON",
            SettingKind::Object => "an object, in JSON",
        }
    }
}

impl SettingSpec {
    /// Reads a value from text. The error says why it is invalid, without showing a secret.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        match self.kind.read(text) {
            Some(value) => self.check(value),
            None => Err(self.wrong(self.kind.expected(), &text.into())),
        }
    }

    /// Reads a value from a configuration. The error says why it is invalid.
    pub fn check(&self, value: Value) -> Result<Value, String> {
        if !self.kind.fits(&value) {
            // `on` in YAML, and a number in quotes, are read as their text.
            let meant = plain(&value).and_then(|text| self.kind.read(&text).or_else(|| self.kind.read_yaml(&text)));
            return match meant {
                Some(meant) if self.kind.fits(&meant) => self.check(meant),
                _ => Err(self.wrong(self.kind.expected(), &value)),
            };
        }
        if self.required && value == "" {
            return Err(format!("setting `{}` is required and must not be empty", self.name));
        }
        if value.as_str().is_some_and(|text| text.contains('\0')) {
            return Err(self.wrong("text that a variable can hold, without a zero byte", &value));
        }
        if !self.choices.is_empty() && !self.choices.contains(&value) {
            let choices: Vec<String> = self.choices.iter().map(text_of).collect();
            return Err(self.wrong(&format!("one of {}", choices.join(", ")), &value));
        }
        if let Some(pattern) = &self.pattern
            && !Regex::new(pattern).is_ok_and(|regex| regex.is_match(&text_of(&value)))
        {
            return Err(self.wrong(&format!("text that matches {pattern}"), &value));
        }
        Ok(value)
    }

    /// Our variable that holds it for hooks.
    pub fn variable(&self, extension: &str) -> String {
        format!("EXTENSION_{}_{}", upper_snake(extension), upper_snake(&self.name))
    }

    /// The remedy that sets it.
    pub fn remedy(&self, extension: &str) -> Remedy {
        let (extension, setting, sensitive) = (extension.to_owned(), self.name.clone(), self.sensitive);
        Remedy::SetSetting { extension, setting, sensitive }
    }

    /// The JSON Schema of its values.
    pub fn schema(&self) -> Value {
        let mut schema = Map::new();
        schema.insert("description".into(), self.description.as_str().into());
        schema.insert("type".into(), self.kind.name().into());
        if !self.choices.is_empty() {
            schema.insert("enum".into(), self.choices.clone().into());
        }
        if self.required && self.kind == SettingKind::Text {
            schema.insert("minLength".into(), 1.into());
        }
        schema.extend(self.pattern.as_deref().map(|pattern| ("pattern".to_owned(), pattern.into())));
        schema.extend(self.default.clone().map(|default| ("default".to_owned(), default)));
        schema.into()
    }

    fn wrong(&self, expected: &str, value: &Value) -> String {
        let not = if self.sensitive { String::new() } else { format!(", not `{}`", text_of(value)) };
        format!("setting `{}` must be {expected}{not}", self.name)
    }
}

/// The text of a value for a variable.
pub(super) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn plain(value: &Value) -> Option<String> {
    matches!(value, Value::String(_) | Value::Bool(_) | Value::Number(_)).then(|| text_of(value))
}

/// The settings of an extension as a part of the schema of `config.yaml`.
pub(super) fn schema(settings: &[SettingSpec]) -> Value {
    let properties: Map<String, Value> =
        settings.iter().map(|setting| (setting.name.clone(), setting.schema())).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}
