//! Converts hooks that people wrote for another agent into a hook file of ours.

use ollm_protocol::dialect::AgentDialect;
use ollm_protocol::dialect::agents::home::WrittenForm;
use serde_json::{Map, Value, json};

use super::WrittenFile;
use super::written::{self, WrittenHook};
use crate::file::{self, Syntax};
use crate::node::{Cursor, Node, Part};

/// The result of importing an agent's hook files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedHooks {
    /// The entries, by the event they are for.
    pub hooks: Vec<(String, Map<String, Value>)>,
    /// The hooks that were left out, with the reason, one line each.
    pub left: Vec<String>,
}

impl ImportedHooks {
    /// The hook file with these entries.
    pub fn file(&self) -> Value {
        let mut events = Map::new();
        for (event, entry) in &self.hooks {
            let list = events.entry(event.clone()).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(Value::Object(entry.clone()));
            }
        }
        json!({"hooks": events})
    }

    /// Adds the hooks of an agent's file. The error says why the file is invalid.
    pub fn add(&mut self, from: &WrittenFile, text: &str, agent: &'static AgentDialect) -> Result<(), String> {
        if agent.home.written.form == WrittenForm::Programs {
            if let Some(hook) = written::program(from, text, agent) {
                self.take(hook, agent);
            }
            return Ok(());
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let node = match text.trim() {
            "" => Node::Null,
            _ => file::parse(text, Syntax::of_agent(&from.path)).map_err(|broken| broken.placed())?,
        };
        written::each(&Cursor::root(&node), agent, from, &mut |at, found| match found {
            Ok(hook) => self.take(hook, agent),
            Err(why) => self.left.push(format!("{}: {} {why}", at.spot(Part::Value).field, at.node.shown())),
        })
    }

    fn take(&mut self, WrittenHook { event, entry }: WrittenHook, agent: &AgentDialect) {
        let name = format!("{}-{}", agent.name, self.hooks.len() + 1);
        let mut named = Map::from_iter([("name".to_owned(), name.into())]);
        named.extend(entry);
        self.hooks.push((event, named));
    }
}
