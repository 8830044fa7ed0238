//! The agent from the outside: what goes wrong around it, and the properties of the specification.

use serde_json::{Value, json};

use crate::lab::{Lab, Ran};

mod faults;
mod laws;
mod person;

/// A lab whose model gives these answers.
pub(crate) fn lab(answers: &[Value]) -> Lab {
    let lab = Lab::new();
    talk(&lab, answers);
    lab
}

pub(crate) fn talk(lab: &Lab, answers: &[Value]) {
    let lines: Vec<String> = answers.iter().map(Value::to_string).collect();
    lab.write("talk.jsonl", lines.join("\n"));
}

/// The arguments of a task for the written model.
pub(crate) fn task<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run", "do it", "--model", "replay:../talk.jsonl"], more].concat()
}

pub(crate) fn run(lab: &Lab, more: &[&str]) -> Ran {
    lab.run(&task(more))
}

#[expect(clippy::needless_pass_by_value, reason = "calls read better without references")]
pub(crate) fn call(name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"id": "1", "name": name, "arguments": arguments}]})
}

pub(crate) fn text(text: &str) -> Value {
    json!({"content": text})
}

pub(crate) fn expecting(mut answer: Value, expect: Value) -> Value {
    answer["expect"] = expect;
    answer
}

/// The conversation that was saved last.
pub(crate) fn saved(lab: &Lab) -> Vec<Value> {
    let list = lab.run(&["session", "list", "--json"]).answer();
    let shown = lab.run(&["session", "show", list[0]["id"].as_str().unwrap(), "--json"]).answer();
    shown["messages"].as_array().unwrap().clone()
}
