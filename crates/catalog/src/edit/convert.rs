//! From `when` and `then` to `eventType` and `action`, and back.

use serde_json::{Map, Value, json};

use super::op::{Op, perform};
use super::{EditError, index_of, parse};
use crate::file::Syntax;
use crate::format::Form;
use crate::node::{Cursor, Node};

/// Turns a file with one hook into the other form of that kind, in the same syntax; what is in that form already stays
/// as it is.
///
/// ```
/// use ollm_catalog::{Form, Syntax, edit};
/// let old = r#"{"when": {"type": "fileEdited", "patterns": ["*.ts"]}, "then": {"type": "askAgent", "prompt": "Lint"}}"#;
/// let new = edit::convert(old, Syntax::Json, Form::Modern).unwrap();
/// let value: serde_json::Value = serde_json::from_str(&new).unwrap();
/// assert_eq!(value["eventType"], "fileEdited");
/// assert_eq!(value["filePatterns"][0], "*.ts");
/// assert_eq!(value["action"]["prompt"], "Lint");
/// ```
pub fn convert(text: &str, syntax: Syntax, to: Form) -> Result<String, EditError> {
    let syntax = syntax.settle(text);
    let root = parse(text, syntax)?;
    let found = Form::of(&Cursor::root(&root)).ok_or(EditError::Formless)?;
    let steps = match (found, to) {
        (found, to) if found == to => return Ok(text.to_owned()),
        (Form::WhenThen, Form::Modern) => to_modern,
        (Form::Modern, Form::WhenThen) => to_when_then,
        (found, _) => return Err(EditError::Other { found }),
    };
    let mut draft = Draft { text: text.to_owned(), root, syntax };
    steps(&mut draft)?;
    Ok(draft.text)
}

/// A text on its way.
struct Draft {
    text: String,
    root: Node,
    syntax: Syntax,
}

impl Draft {
    fn perform(&mut self, op: &Op<'_>) -> Result<(), EditError> {
        self.text = perform(&self.text, self.syntax, &self.root, op)?;
        self.root = parse(&self.text, self.syntax)?;
        Ok(())
    }

    fn get(&self, key: &str) -> Option<Value> {
        let Node::Map(entries) = &self.root else { return None };
        entries.get(index_of(&self.root, key)?).map(|(_, value)| value.to_json())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), EditError> {
        match index_of(&self.root, from) {
            Some(index) => self.perform(&Op::Rename { at: &[], index, key: to }),
            None => Ok(()),
        }
    }

    fn set(&mut self, key: &str, value: &Value) -> Result<(), EditError> {
        self.perform(&Op::Set { at: &[], key, value })
    }

    fn unset(&mut self, key: &str) -> Result<(), EditError> {
        match index_of(&self.root, key) {
            Some(index) => self.perform(&Op::Unset { at: &[], index }),
            None => Ok(()),
        }
    }
}

fn to_modern(draft: &mut Draft) -> Result<(), EditError> {
    let when = draft.get("when").unwrap_or_default();
    draft.rename("then", "action")?;
    draft.rename("when", "eventType")?;
    draft.set("eventType", when.get("type").unwrap_or(&Value::Null))?;
    match when.get("patterns").or_else(|| when.get("filePatterns")).or_else(|| when.get("file_patterns")) {
        Some(patterns) => draft.set("filePatterns", patterns),
        None => Ok(()),
    }
}

fn to_when_then(draft: &mut Draft) -> Result<(), EditError> {
    let (event, patterns) = (draft.get("eventType").unwrap_or_default(), draft.get("filePatterns"));
    draft.unset("filePatterns")?;
    draft.rename("eventType", "when")?;
    draft.set("when", &when(&event, patterns.as_ref()))?;
    if draft.get("action").is_some() {
        return draft.rename("action", "then");
    }
    let action = program(draft.get("command").as_ref(), draft.get("args").as_ref());
    draft.unset("args")?;
    draft.rename("command", "then")?;
    draft.set("then", &action)
}

/// A hook in two parts.
pub(super) fn split(event: &str, entry: &Map<String, Value>) -> Value {
    let mut hook = Map::new();
    let moved = ["filePatterns", "action", "command", "args"];
    hook.extend(entry.iter().filter(|(key, _)| !moved.contains(&key.as_str())).map(|(k, v)| (k.clone(), v.clone())));
    hook.insert("when".to_owned(), when(&event.into(), entry.get("filePatterns")));
    let action = entry.get("action").cloned();
    let action = action.unwrap_or_else(|| program(entry.get("command"), entry.get("args")));
    hook.insert("then".to_owned(), action);
    Value::Object(hook)
}

fn when(event: &Value, patterns: Option<&Value>) -> Value {
    match patterns {
        Some(patterns) => json!({"type": event, "patterns": patterns}),
        None => json!({"type": event}),
    }
}

fn program(command: Option<&Value>, args: Option<&Value>) -> Value {
    let mut action = json!({"type": "command", "command": command});
    if let (Some(args), Some(map)) = (args, action.as_object_mut()) {
        map.insert("args".to_owned(), args.clone());
    }
    action
}
