//! Reads the settings in a manifest: checks their keys one by one and together.

use ollm_protocol::did_you_mean;
use regex_lite::Regex;
use serde_json::{Value, json};

use super::{LONGEST_PATTERN, SettingKind, SettingSpec, TAKEN_PREFIXES, taken_names, text_of};
use crate::config::Item;
use crate::extension::check::Check;
use crate::extension::key::{ManifestPart, RowKind, optional, required};
use crate::extension::name::upper_snake;
use crate::file::{Finding, HIDDEN};
use crate::node::{Cursor, Node};
use crate::problem::Severity;

/// A setting whose kind is not known yet.
#[derive(Debug, Default)]
pub(in crate::extension) struct SettingDraft {
    spec: SettingSpec,
    kind: Option<SettingKind>,
}

/// A setting of a manifest.
pub(in crate::extension) const SETTING: ManifestPart<SettingDraft> = ManifestPart {
    name: "settings",
    what: "a setting",
    example: r#"{"name": "token", "description": "…"}"#,
    refusal: None,
    promise: Some("sensitive"),
    rows: &[
        required("name", "What it is called.", RowKind::Name(|draft, name| draft.spec.name = name)),
        required("description", "What it is for.", RowKind::Words(|draft, text| draft.spec.description = text)),
        optional(
            "type",
            "`string`, `number`, `integer`, `boolean`, `array` or `object`. Hooks get a list or an object as JSON.",
            "that of `default`, else `string`",
            RowKind::Own(
                |check, at, draft| draft.kind = read_kind(check, at),
                || json!({"enum": SettingKind::NAMES.iter().map(|(_, name)| *name).collect::<Vec<_>>()}),
            ),
        ),
        optional(
            "envVar",
            "A variable that sets it, and in which the hooks get it.",
            "none",
            RowKind::Own(|check, at, draft| draft.spec.env_var = read_variable(check, at), variable),
        ),
        optional(
            "sensitive",
            "Whether it is never shown, kept apart, and hidden wherever hooks and servers print it and in what is written down; what \
             is set for an extension that is not there, or whose manifest cannot be read, is not shown either. Values of fewer \
             than 6 bytes are not hidden, because they occur by chance.",
            "false",
            RowKind::Flag(|draft, flag| draft.spec.sensitive = flag),
        ),
        optional(
            "required",
            "Whether the extension is not loaded without a value, or with an empty one; the message names the command that mends it.",
            "false",
            RowKind::Flag(|draft, flag| draft.spec.required = flag),
        ),
        optional(
            "default",
            "The value where none is set.",
            "none",
            RowKind::Own(
                |check, at, draft| draft.spec.default = read_default(check, at),
                || json!({"type": ["string", "number", "boolean", "array", "object"]}),
            ),
        ),
        optional(
            "enum",
            "The values it may have.",
            "any",
            RowKind::Own(
                |check, at, draft| draft.spec.choices = read_choices(check, at),
                || json!({"type": "array", "minItems": 1, "items": scalar()}),
            ),
        ),
        optional(
            "pattern",
            "What its text must match somewhere.",
            "any",
            RowKind::Own(
                |check, at, draft| draft.spec.pattern = read_pattern(check, at),
                || json!({"type": "string", "format": "regex", "pattern": r"\S", "maxLength": LONGEST_PATTERN}),
            ),
        ),
    ],
};

fn scalar() -> Value {
    json!({"type": ["string", "number", "boolean"]})
}

/// The schema of a variable's name without another meaning.
fn variable() -> Value {
    let names: Vec<&str> = taken_names().collect();
    let taken = json!({"anyOf": [{"enum": names}, {"pattern": format!("^({})", TAKEN_PREFIXES.join("|"))}]});
    json!({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$", "not": taken})
}

/// The settings of a manifest.
pub(in crate::extension) fn read(check: &mut Check<'_>, at: &Cursor<'_>) -> Vec<SettingSpec> {
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
    let before = check.findings.len();
    let mut draft = SettingDraft::default();
    SETTING.read(check, at, &mut draft);
    hide_default(check, at, before);
    let SettingDraft { mut spec, kind } = draft;
    let guess = spec.default.as_ref().or(spec.choices.first()).map(SettingKind::of).unwrap_or_default();
    spec.kind = kind.unwrap_or(guess);
    if spec.name.is_empty() || spec.description.is_empty() {
        return None;
    }
    consistent(check, at, &spec);
    hide_default(check, at, before);
    let refused = check.findings.get(before..).unwrap_or_default();
    (!refused.iter().any(|finding| finding.severity <= Severity::Error)).then_some(spec)
}

/// Removes values from the findings of a setting that may be secret.
fn hide_default(check: &mut Check<'_>, at: &Cursor<'_>, before: usize) {
    if may_betray(at) {
        check.findings.iter_mut().skip(before).for_each(hide);
    }
}

/// Removes values from findings about the whole of the settings, if one of them may be secret.
pub(in crate::extension) fn hide_whole(root: &Cursor<'_>, findings: &mut [Finding]) {
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

/// Whether a setting may be secret. If it is not a map, that is unknown, so it may.
fn may_betray(at: &Cursor<'_>) -> bool {
    let is_secret = || at.get("sensitive").is_some_and(|at| !matches!(at.node, Node::Bool(false)));
    !matches!(at.node, Node::Map(_)) || (is_secret() && at.get("default").is_some())
}

fn hide(finding: &mut Finding) {
    finding.value = Some(HIDDEN.to_owned());
}

/// Checks that the keys of a setting are consistent.
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

fn read_kind(check: &mut Check<'_>, at: &Cursor<'_>) -> Option<SettingKind> {
    let written = check.words(at)?;
    let kind = SettingKind::NAMES.iter().find(|(_, name)| *name == written).map(|(kind, _)| *kind);
    if kind.is_none() {
        let names: Vec<&str> = SettingKind::NAMES.iter().map(|(_, name)| *name).collect();
        let near = did_you_mean(&written, names.iter().copied());
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
    if taken_names().any(|taken| taken == name) || TAKEN_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
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

fn read_default(check: &mut Check<'_>, at: &Cursor<'_>) -> Option<Value> {
    match at.node {
        Node::List(_) | Node::Map(_) => Some(at.node.to_json()),
        _ => read_scalar(check, at),
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
