//! Reads the tool name and arguments of a call in one of our own dialects, under any field names.
//!
//! The asking program may use the fields of any dialect. A value under one name counts. Two fields with different
//! values are refused, because the program might run the one that we did not read.

use serde_json::{Map, Value};

use super::DialectError;
use crate::event::EventKind;
use crate::tool;

/// The fields that may hold the tool's name.
const TOOL: &[&str] = &["tool_name", "toolName", "tool"];
/// The fields that may hold its arguments.
const ARGS: &[&str] = &["args", "tool_input", "toolInput", "tool_args", "toolArgs", "arguments", "input"];

/// Renames the tool name and the arguments of a call to their canonical fields.
pub(super) fn settle(kind: EventKind, data: &mut Map<String, Value>) -> Result<(), DialectError> {
    if !kind.is_tool_call() {
        return Ok(());
    }
    settle_one(data, TOOL, |value| value)?;
    settle_one(data, ARGS, unwrapped)?;
    if !data.contains_key("args") {
        beside(data);
    }
    Ok(())
}

/// Moves the value of these fields to the first of them. Empty fields are ignored.
fn settle_one(
    data: &mut Map<String, Value>,
    names: &[&'static str],
    read: fn(Value) -> Value,
) -> Result<(), DialectError> {
    let mut found: Option<(&'static str, Value)> = None;
    for name in names {
        let Some(value) = data.get(*name).cloned().map(read) else { continue };
        let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
        match &found {
            Some(_) if is_empty(&value) => {}
            Some((_, first)) if is_empty(first) => found = Some((name, value)),
            Some((first, other)) if *other != value => return Err(DialectError::Contradiction { first, second: name }),
            Some(_) => {}
            None => found = Some((name, value)),
        }
    }
    if let (Some((_, value)), Some((canonical, others))) = (found, names.split_first()) {
        data.retain(|name, _| !others.contains(&name.as_str()));
        data.insert((*canonical).to_owned(), value);
    }
    Ok(())
}

/// Arguments as an object. Models may write them as JSON text, and some tools take a list of words.
fn unwrapped(args: Value) -> Value {
    match args {
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(read @ (Value::Object(_) | Value::Array(_))) => unwrapped(read),
            _ => Value::String(text),
        },
        Value::Array(words) => Map::from_iter([("command".to_owned(), Value::Array(words))]).into(),
        other => other,
    }
}

/// If a call has no arguments, moves fields beside its name that are arguments of this tool.
fn beside(data: &mut Map<String, Value>) {
    let declared = data.get("tool_name").and_then(Value::as_str).and_then(tool::declared);
    let Some(tool) = declared else { return };
    let is_argument = |name: &String| tool.argument(name).is_some() && !matches!(name.as_str(), "cwd" | "result");
    let names: Vec<String> = data.keys().filter(|name| is_argument(name)).cloned().collect();
    let args: Map<String, Value> =
        names.into_iter().filter_map(|name| data.shift_remove(&name).map(|value| (name, value))).collect();
    if !args.is_empty() {
        data.insert("args".to_owned(), args.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settled(data: Value) -> Result<Value, DialectError> {
        let Value::Object(mut data) = data else { return Ok(data) };
        settle(EventKind::BeforeTool, &mut data).map(|()| data.into())
    }

    #[test]
    fn a_call_is_understood_under_every_name_of_its_fields() {
        let wanted = json!({"tool_name": "shell", "args": {"command": "ls"}});
        let same = |found: Value| {
            assert_eq!(found.get("tool_name"), wanted.get("tool_name"), "{found}");
            assert_eq!(found.get("args"), wanted.get("args"), "{found}");
        };
        for name in ARGS {
            same(settled(json!({"tool": "shell", *name: {"command": "ls"}})).unwrap());
            same(settled(json!({"tool": "shell", *name: "{\"command\": \"ls\"}"})).unwrap());
            if *name != "args" {
                same(settled(json!({"toolName": "shell", "args": {}, *name: {"command": "ls"}})).unwrap());
            }
        }
        same(settled(json!({"tool_name": "shell", "command": "ls"})).unwrap());
        let words = settled(json!({"tool_name": "shell", "args": ["rm", "x"]})).unwrap();
        assert_eq!(words["args"], json!({"command": ["rm", "x"]}));
        assert_eq!(settled(json!({"tool_name": "shell", "args": "rm x"})).unwrap()["args"], "rm x");
    }

    #[test]
    fn fields_that_say_different_things_are_refused() {
        let wrong = settled(json!({"tool_name": "shell", "args": {"command": "ls"}, "tool_input": {"command": "rm"}}));
        let told = "`args` and `tool_input` of the event say different things; send one of them";
        assert_eq!(wrong.unwrap_err().to_string(), told);
        assert!(settled(json!({"tool_name": "read_file", "tool": "shell"})).is_err());
        assert!(settled(json!({"tool_name": "shell", "tool": "shell", "args": {"a": 1}, "input": {"a": 1}})).is_ok());
    }
}
