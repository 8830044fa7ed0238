//! What an extension lets a person set, and which values are right.

use ollm_protocol::{Remedy, nearest};
use regex_lite::Regex;
use serde_json::{Map, Value, json};

use super::check::Check;
use super::name::{PLAIN, is_plain, upper_snake};
use crate::config::Item;
use crate::file::{Finding, HIDDEN, parse_yaml};
use crate::node::{Cursor, Node};
use crate::value;

pub(super) const KEYS: &[&str] =
    &["name", "description", "type", "envVar", "sensitive", "required", "default", "enum", "pattern"];

/// Longer patterns are not compiled.
pub(super) const LONGEST_PATTERN: usize = 1000;

/// Variables that decide how programs run, and so are no place for a setting.
pub(super) const TAKEN: &[&str] =
    &["PATH", "HOME", "USER", "SHELL", "IFS", "ENV", "BASH_ENV", "PYTHONPATH", "NODE_OPTIONS"];
pub(super) const TAKEN_PREFIXES: &[&str] = &["LD_", "DYLD_", "OLLM_", "EXTENSION_"];

/// One setting, as declared.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingSpec {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What its values are.
    pub kind: SettingKind,
    /// The variable that sets it, and in which its hooks get it.
    pub env_var: Option<String>,
    /// Whether its value must never be shown.
    pub sensitive: bool,
    /// Whether the extension cannot do without it.
    pub required: bool,
    /// What applies where nobody says anything.
    pub default: Option<Value>,
    /// The values it may have; any without them.
    pub choices: Vec<Value>,
    /// What its text must match somewhere.
    pub pattern: Option<String>,
}

/// What the values of a setting are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of JSON Schema")]
pub enum SettingKind {
    #[default]
    Text,
    Number,
    Integer,
    Boolean,
}

impl SettingKind {
    /// Every kind, with its name in a manifest.
    pub const NAMES: &[(SettingKind, &str)] = &[
        (SettingKind::Text, "string"),
        (SettingKind::Number, "number"),
        (SettingKind::Integer, "integer"),
        (SettingKind::Boolean, "boolean"),
    ];

    /// Its name in a manifest.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(kind, _)| *kind == self).map_or("string", |(_, name)| name)
    }

    fn of(default: &Value) -> SettingKind {
        match default {
            Value::Bool(_) => SettingKind::Boolean,
            Value::Number(_) => SettingKind::Number,
            _ => SettingKind::Text,
        }
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            SettingKind::Text => value.is_string(),
            SettingKind::Number => value.is_number(),
            SettingKind::Integer => value.is_i64() || value.is_u64(),
            SettingKind::Boolean => value.is_boolean(),
        }
    }

    /// The value that a text means.
    fn read(self, text: &str) -> Option<Value> {
        match self {
            SettingKind::Text => Some(text.into()),
            SettingKind::Boolean => value::flag_word(text).map(Value::from),
            SettingKind::Number | SettingKind::Integer => {
                serde_json::from_str::<Value>(text.trim()).ok().filter(|value| self.fits(value))
            }
        }
    }

    /// The number that a text means where YAML is written, such as `0x1F`.
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
        }
    }
}

impl SettingSpec {
    /// The value that a text means, if it is a right one; otherwise why not. A secret is not repeated.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        match self.kind.read(text) {
            Some(value) => self.check(value),
            None => Err(self.wrong(self.kind.expected(), &text.into())),
        }
    }

    /// A value as it stands in a configuration, if it is a right one; otherwise why not.
    pub fn check(&self, value: Value) -> Result<Value, String> {
        if !self.kind.fits(&value) {
            // `on` in YAML, and a number in quotes, are what they look like.
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

    /// The variable of ours in which hooks get it.
    pub fn variable(&self, extension: &str) -> String {
        format!("EXTENSION_{}_{}", upper_snake(extension), upper_snake(&self.name))
    }

    /// How a person gives it a value.
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

/// A value as a variable holds it.
pub(super) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn plain(value: &Value) -> Option<String> {
    matches!(value, Value::String(_) | Value::Bool(_) | Value::Number(_)).then(|| text_of(value))
}

/// The settings of a manifest.
pub(super) fn read(check: &mut Check<'_>, at: &Cursor<'_>) -> Vec<SettingSpec> {
    let mut settings: Vec<SettingSpec> = Vec::new();
    check.list(at, |check, item| {
        let Some(setting) = read_one(check, item) else { return };
        let upper = upper_snake(&setting.name);
        let clash = settings.iter().any(|known| {
            upper_snake(&known.name) == upper || (known.env_var.is_some() && known.env_var == setting.env_var)
        });
        if clash {
            let message = format!("setting `{}` has the name or the variable of another one", setting.name);
            return check.refuse(item, message, Some("rename one of them"));
        }
        settings.push(setting);
    });
    settings
}

fn read_one(check: &mut Check<'_>, at: &Cursor<'_>) -> Option<SettingSpec> {
    let (mut name, mut description, mut kind) = (None, None, None);
    let (mut env_var, mut default, mut pattern, mut choices) = (None, None, None, Vec::new());
    let (mut sensitive, mut required) = (false, false);
    let before = check.findings.len();
    check.map(at, "a setting", r#"{"name": "token", "description": "…"}"#, |check, key, value| match key {
        "name" => name = read_name(check, value),
        "description" => description = check.words(value),
        "type" => kind = read_kind(check, value),
        "envVar" => env_var = read_variable(check, value),
        "sensitive" => sensitive = check.flag(value),
        "required" => required = check.flag(value),
        "default" => default = read_scalar(check, value),
        "enum" => choices = read_choices(check, value),
        "pattern" => pattern = read_pattern(check, value),
        _ => check.unknown(value, KEYS),
    });
    check.demand(at, "the setting", "name", name.is_some());
    check.demand(at, "the setting", "description", description.is_some());
    hide_default(check, at, before);
    let guess = default.as_ref().or(choices.first()).map(SettingKind::of).unwrap_or_default();
    let kind = kind.unwrap_or(guess);
    let setting = SettingSpec {
        name: name?,
        description: description?,
        kind,
        env_var,
        sensitive,
        required,
        default,
        choices,
        pattern,
    };
    consistent(check, at, &setting);
    hide_default(check, at, before);
    let refused = check.findings.get(before..).unwrap_or_default();
    (!refused.iter().any(|finding| finding.severity <= crate::problem::Severity::Error)).then_some(setting)
}

/// Repeats nothing of a setting that may give a secret away.
fn hide_default(check: &mut Check<'_>, at: &Cursor<'_>, before: usize) {
    if may_betray(at) {
        check.findings.iter_mut().skip(before).for_each(hide);
    }
}

/// Repeats nothing of what has the settings in it, if one of them may give a secret away.
pub(super) fn hide_whole(root: &Cursor<'_>, findings: &mut [Finding]) {
    let betrays = |(key, at): (&str, Cursor<'_>)| {
        key == "settings"
            && match at.node {
                Node::List(_) => at.items().any(|item| may_betray(&item)),
                other => !matches!(other, Node::Null),
            }
    };
    if !root.entries().any(betrays) {
        return;
    }
    let whole = |finding: &&mut Finding| finding.spot.as_ref().is_some_and(|at| ["", "settings"].contains(&&*at.field));
    findings.iter_mut().filter(whole).for_each(hide);
}

/// Whether a setting has a secret in it, or is none, so that nobody can tell.
fn may_betray(at: &Cursor<'_>) -> bool {
    let is_secret = || at.get("sensitive").is_some_and(|at| !matches!(at.node, Node::Bool(false)));
    !matches!(at.node, Node::Map(_)) || (is_secret() && at.get("default").is_some())
}

fn hide(finding: &mut Finding) {
    finding.value = Some(HIDDEN.to_owned());
}

/// Whether what a setting says about itself fits together.
fn consistent(check: &mut Check<'_>, at: &Cursor<'_>, setting: &SettingSpec) {
    let place = |key: &str| at.get(key);
    if let (Some(choice), Some(at)) = (setting.choices.iter().find(|choice| !setting.kind.fits(choice)), place("enum"))
    {
        let message = format!("`{}` in `enum` is not {}", text_of(choice), setting.kind.expected());
        check.refuse(&at, message, None);
    }
    if let (Some(at), false) = (place("pattern"), setting.kind == SettingKind::Text) {
        check.refuse(&at, "`pattern` is for settings of type \"string\"", Some("remove it"));
    }
    if let (Some(default), Some(at)) = (&setting.default, place("default")) {
        match setting.kind.fits(default).then(|| setting.check(default.clone())) {
            Some(Ok(_)) => {}
            Some(Err(why)) => check.refuse(&at, format!("the default does not fit: {why}"), None),
            None => check.refuse(&at, format!("the default must be {}", setting.kind.expected()), None),
        }
    }
    if let (true, Some(at)) = (setting.sensitive, place("default")) {
        check.refuse(&at, "a sensitive setting cannot have a default, which everybody can read", Some("remove it"));
    }
}

fn read_name(check: &mut Check<'_>, at: &Cursor<'_>) -> Option<String> {
    let name = check.words(at)?;
    if !is_plain(&name) {
        check.refuse(at, format!("`{name}` cannot be the name of a setting"), Some(PLAIN));
        return None;
    }
    Some(name)
}

fn read_kind(check: &mut Check<'_>, at: &Cursor<'_>) -> Option<SettingKind> {
    let written = check.words(at)?;
    let kind = SettingKind::NAMES.iter().find(|(_, name)| *name == written).map(|(kind, _)| *kind);
    if kind.is_none() {
        let names: Vec<&str> = SettingKind::NAMES.iter().map(|(_, name)| *name).collect();
        let near = nearest(&written, names.iter().copied()).map(|near| format!("did you mean \"{near}\"?"));
        check.refuse(at, format!("`type` must be one of {}", names.join(", ")), near.as_deref());
    }
    kind
}

fn read_variable(check: &mut Check<'_>, at: &Cursor<'_>) -> Option<String> {
    let name = check.words(at)?;
    if !Item::Variable.fits(&name) {
        check.refuse(at, format!("`{name}` cannot be the name of a variable"), Some("write one such as GITHUB_TOKEN"));
        return None;
    }
    if TAKEN.contains(&name.as_str()) || TAKEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        check.refuse(at, format!("`{name}` already means something else"), Some("choose a name of your own"));
        return None;
    }
    Some(name)
}

fn read_scalar(check: &mut Check<'_>, at: &Cursor<'_>) -> Option<Value> {
    match at.node {
        Node::Null | Node::List(_) | Node::Map(_) => {
            check.refuse(at, format!("a value is text, a number, true or false, not {}", at.node.kind()), None);
            None
        }
        scalar => Some(scalar.to_json()),
    }
}

fn read_choices(check: &mut Check<'_>, at: &Cursor<'_>) -> Vec<Value> {
    let mut choices = Vec::new();
    check.list(at, |check, item| choices.extend(read_scalar(check, item)));
    if matches!(at.node, Node::List(items) if items.is_empty()) {
        check.refuse(at, "`enum` is empty: no value would fit", Some("list the values that fit, or leave it out"));
    }
    choices
}

fn read_pattern(check: &mut Check<'_>, at: &Cursor<'_>) -> Option<String> {
    let pattern = check.words(at)?;
    if pattern.len() > LONGEST_PATTERN {
        check.refuse(at, format!("`pattern` has more than {LONGEST_PATTERN} characters"), None);
        return None;
    }
    if let Err(error) = Regex::new(&pattern) {
        check.refuse(at, format!("`pattern` is no regular expression: {error}"), None);
        return None;
    }
    Some(pattern)
}

/// The settings of an extension as a part of the schema of `config.yaml`.
pub(super) fn schema(settings: &[SettingSpec]) -> Value {
    let properties: Map<String, Value> =
        settings.iter().map(|setting| (setting.name.clone(), setting.schema())).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}
