//! The schema of an agent's answers, derived from its declaration.

use serde_json::{Map, Value, json};

use super::field::get;
use super::{AgentDialect, Part};
use crate::event::EventKind;

/// What a hook of the agent may answer to an event.
pub(super) fn answer(agent: &AgentDialect, kind: EventKind) -> Value {
    let mut root = Map::from_iter([("type".to_owned(), "object".into())]);
    for (_, form) in agent.forms(kind) {
        for (path, part) in form {
            let steps: Vec<String> = path.split('.').map(|step| format!("properties.{step}")).collect();
            let mut reached = String::new();
            for step in steps.iter().rev().skip(1).rev() {
                reached = if reached.is_empty() { step.clone() } else { format!("{reached}.{step}") };
                super::field::set(&mut root, &format!("{reached}.type"), "object".into());
            }
            let place = steps.join(".");
            let known = get(&root, &place).cloned();
            super::field::set(&mut root, &place, described(*part, known));
        }
    }
    Value::Object(root)
}

fn described(part: Part, known: Option<Value>) -> Value {
    match part {
        Part::Word(word) => {
            let mut words: Vec<Value> =
                known.and_then(|known| known.get("enum").and_then(Value::as_array).cloned()).unwrap_or_default();
            if !words.iter().any(|known| known == word) {
                words.push(word.into());
            }
            json!({"enum": words})
        }
        Part::Flag(_) => json!({"type": "boolean"}),
        Part::Event | Part::Reason | Part::Text | Part::ResultText | Part::ToolMode => json!({"type": "string"}),
        Part::Args => json!({"type": "object"}),
        Part::Result => json!({}),
        Part::Tools => json!({"type": "array", "items": {"type": "string"}}),
    }
}
