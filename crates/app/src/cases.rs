//! Golden cases: sample events of a hook, each with the expected answer.
//!
//! A case is a JSON file below `cases/NAME/`, beside the file that declares the hook NAME. It holds an event as the
//! dialect `ollm` spells it, and `expect`: the fields of the answer that matter. An expected text is looked for in the
//! actual text, an expected object in the actual object. Every other value must be equal.

use std::fs;
use std::path::{Path, PathBuf};

use ollm_catalog::{Problem, Severity, TrailingCommas, read_json};
use ollm_engine::Outcome;
use ollm_protocol::dialect::OLLM;
use ollm_protocol::{Code, Event, Hook, joined};
use serde_json::{Map, Value, json};

use crate::outcome;

/// Larger files are not read as cases.
const LARGEST_CASE: u64 = 1 << 20;

/// The fields of an answer that a case may check.
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
                "description": "The fields of the answer that matter: texts and objects in part, everything else exactly",
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

/// A case, or the reason why it cannot be read.
pub type FoundCase = Result<Case, BrokenCase>;

/// A case that cannot be read.
#[derive(Debug)]
pub struct BrokenCase {
    /// Its name, that of its file.
    pub name: String,
    /// Why, and where in the file.
    pub problem: Box<Problem>,
}

/// The cases of a hook, by name.
pub fn of_hook(hook: &Hook) -> Vec<FoundCase> {
    let Some(folder) = hook.spec.origin.file.parent() else { return Vec::new() };
    let Ok(entries) = fs::read_dir(folder.join("cases").join(&hook.spec.name)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

/// Reads one case.
pub fn read(path: &Path) -> FoundCase {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let of_file = |why: String| Box::new(Problem::of_file(Code::BrokenCase, Severity::Error, path, why));
    let bytes = match ollm_store::read_bounded(path, LARGEST_CASE) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Err(BrokenCase { name, problem: of_file("it does not exist".to_owned()) }),
        Err(error) => return Err(BrokenCase { name, problem: of_file(error.to_string()) }),
    };
    match read_json(path, &String::from_utf8_lossy(&bytes), TrailingCommas::Refused) {
        Ok(value) => parse(&value, &name).map_err(|why| BrokenCase { name, problem: of_file(why) }),
        Err(problem) => Err(BrokenCase { name, problem: Box::new(Problem { code: Code::BrokenCase, ..*problem }) }),
    }
}

/// Folders of cases beside a hook file whose hook does not exist; `is_known` tells which names exist.
pub fn strays(folder: &Path, is_known: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let folders = fs::read_dir(folder.join("cases")).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_stray = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.is_dir() && !is_known(&name)
    };
    folders.filter(is_stray).collect()
}

fn parse(value: &Value, name: &str) -> Result<Case, String> {
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
    /// The differences from the expected answer, one line each.
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

/// The actual outcome of one hook, in the fields of a case.
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
