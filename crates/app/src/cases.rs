//! Golden cases: events that stand beside a hook, and what it must make of them.
//!
//! A case is a JSON file below `cases/NAME/`, beside the file that declares the hook NAME. It holds an event as
//! the dialect `ollm` spells it, and `expect`: the fields of the answer that matter. A text is expected somewhere in the
//! actual text, an object as a part of the actual object, everything else as it is.

use std::fs;
use std::path::{Path, PathBuf};

use ollm_catalog::{TrailingCommas, json_value};
use ollm_engine::Outcome;
use ollm_protocol::dialect::OLLM;
use ollm_protocol::{Event, Hook, joined};
use serde_json::{Map, Value, json};

use crate::outcome;

/// Larger files are no cases.
const LARGEST_CASE: u64 = 1 << 20;

/// What a case may expect something of.
const FIELDS: &[&str] = &[
    "flow",
    "continue",
    "reason",
    "systemMessage",
    "message",
    "context",
    "data",
    "modifiedArgs",
    "result",
    "tools",
    "askAgent",
    "status",
    "error",
    "skipped",
];

/// The JSON Schema of a golden case.
pub fn schema() -> Value {
    let anything: Map<String, Value> = FIELDS.iter().map(|field| ((*field).to_owned(), json!({}))).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A golden case of a hook",
        "type": "object",
        "properties": {
            "event": {"type": "string", "description": "The event, in any dialect's spelling"},
            "data": {"type": "object", "description": "What is known about it"},
            "settings": {
                "type": "object",
                "description": "The settings of the extension; those that are not here have their defaults",
                "additionalProperties": {"type": ["string", "number", "boolean"]},
            },
            "expect": {
                "type": "object",
                "description": "The fields of the answer that matter: texts and objects in part, everything else as it is",
                "properties": anything,
                "additionalProperties": false,
            },
        },
        "required": ["event", "expect"],
    })
}

/// One golden case.
#[derive(Debug)]
pub struct Case {
    /// Its name, that of its file.
    pub name: String,
    /// The event that the hook is tried on.
    pub event: Event,
    /// The settings of the extension that the hook came with.
    pub settings: Map<String, Value>,
    expect: Map<String, Value>,
}

/// A case that could be read, or the name of one and why it could not.
pub type Found = Result<Case, (String, String)>;

/// The cases of a hook, by name.
pub fn of_hook(hook: &Hook) -> Vec<Found> {
    let Some(folder) = hook.spec.origin.file.parent() else { return Vec::new() };
    let Ok(entries) = fs::read_dir(folder.join("cases").join(&hook.spec.name)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Found {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    parse(path, &name).map_err(|why| (name, format!("{}: {why}", path.display())))
}

fn parse(path: &Path, name: &str) -> Result<Case, String> {
    let bytes = ollm_store::read_bounded(path, LARGEST_CASE)
        .map_err(|error| error.to_string())?
        .ok_or_else(|| "it is gone".to_owned())?;
    let value = json_value(&String::from_utf8_lossy(&bytes), TrailingCommas::Refused)
        .map_err(|error| format!("it is not valid JSON: {error}"))?;
    let Some(Value::Object(expect)) = value.get("expect").cloned() else {
        return Err("`expect` must be an object with what the answer should hold".to_owned());
    };
    if let Some(unknown) = expect.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        return Err(format!("`expect` knows no `{unknown}`; it knows {}", FIELDS.join(", ")));
    }
    let settings = match value.get("settings").cloned() {
        None => Map::new(),
        Some(Value::Object(settings)) => settings,
        Some(_) => return Err("`settings` must be an object with settings of the extension".to_owned()),
    };
    let request = OLLM.read_event(value.to_string().as_bytes()).map_err(|error| error.to_string())?;
    Ok(Case { name: name.to_owned(), event: request.event, settings, expect })
}

impl Case {
    /// What differs from what was expected, one line each.
    pub fn differences(&self, outcome: &Outcome) -> Vec<String> {
        let actual = actual(outcome);
        let skip = outcome.skipped.first().filter(|_| outcome.reports.is_empty());
        if let Some(skip) = skip.filter(|_| !["skipped", "status"].iter().any(|field| self.expect.contains_key(*field)))
        {
            return vec![format!("it did not run: {}: {}", skip.reason.name(), skip.detail)];
        }
        let wrong = self.expect.iter().filter(|(field, expected)| !fits(expected, actual.get(*field)));
        wrong
            .map(|(field, expected)| {
                format!("{field}: expected {expected}, got {}", actual.get(field).unwrap_or(&Value::Null))
            })
            .collect()
    }
}

/// What one hook made of an event, in the words of a case.
pub fn actual(outcome: &Outcome) -> Value {
    let report = outcome.reports.first();
    let answer = outcome::to_json(outcome);
    let word = |field: &str| match field {
        "message" => json!(joined(&outcome.verdict.messages)),
        "askAgent" => json!(joined(&outcome.verdict.prompts)),
        "status" => json!(report.map(|report| report.status.name())),
        "error" => json!(report.and_then(|report| report.error.clone())),
        "skipped" => json!(outcome.skipped.first().map(|skip| skip.reason.name())),
        same => answer.get(same).cloned().unwrap_or_default(),
    };
    FIELDS.iter().map(|field| ((*field).to_owned(), word(field))).collect()
}

fn fits(expected: &Value, actual: Option<&Value>) -> bool {
    match (expected, actual.unwrap_or(&Value::Null)) {
        (Value::String(part), Value::String(whole)) => whole.contains(part.as_str()),
        (Value::Object(part), Value::Object(whole)) => part.iter().all(|(key, value)| fits(value, whole.get(key))),
        (expected, actual) => expected == actual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_expected_in_part_objects_too_and_all_else_exactly() {
        for (expected, actual, fit) in [
            (json!("push"), json!("no forced push"), true),
            (json!("pull"), json!("no forced push"), false),
            (json!({"a": {"b": 1}}), json!({"a": {"b": 1, "c": 2}, "d": 3}), true),
            (json!({"a": 2}), json!({"a": 1}), false),
            (json!({"a": null}), json!({}), true),
            (json!([1]), json!([1, 2]), false),
            (json!(null), json!("something"), false),
            (json!(true), json!(true), true),
        ] {
            assert_eq!(fits(&expected, Some(&actual)), fit, "{expected} in {actual}");
        }
    }
}
