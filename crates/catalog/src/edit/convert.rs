//! Converts between `when` and `then`, and `eventType` and `action`.

use serde_json::{Map, Value, json};

use super::{EditError, index_of, read};
use crate::file::Syntax;
use crate::format::Form;
use crate::node::{Cursor, Node};
use crate::text_edit::{Draft, EmptiedMap, Op};

/// Converts a file with one hook into the other form for one hook, in the same syntax. A file in that form stays
/// unchanged.
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
    let draft = read(text, syntax)?;
    let found = Form::of(&Cursor::root(draft.root())).ok_or(EditError::Formless)?;
    let steps = match (found, to) {
        (found, to) if found == to => return Ok(text.to_owned()),
        (Form::WhenThen, Form::Modern) => to_modern,
        (Form::Modern, Form::WhenThen) => to_when_then,
        (found, _) => return Err(EditError::Other { found }),
    };
    let mut hook = Conversion(draft);
    steps(&mut hook)?;
    Ok(hook.0.into_text())
}

/// A hook during conversion to the other form.
struct Conversion(Draft);

impl Conversion {
    fn get(&self, key: &str) -> Option<Value> {
        let Node::Map(entries) = self.0.root() else { return None };
        entries.get(index_of(self.0.root(), key)?).map(|(_, value)| value.to_json())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), EditError> {
        match index_of(self.0.root(), from) {
            Some(index) => Ok(self.0.perform(&Op::Rename { at: &[], index, key: to })?),
            None => Ok(()),
        }
    }

    fn set(&mut self, key: &str, value: &Value) -> Result<(), EditError> {
        Ok(self.0.perform(&Op::Set { at: &[], key, value: &Node::from_json(value) })?)
    }

    fn unset(&mut self, key: &str) -> Result<(), EditError> {
        match index_of(self.0.root(), key) {
            Some(index) => Ok(self.0.perform(&Op::Unset { at: &[], index, emptied: EmptiedMap::Map })?),
            None => Ok(()),
        }
    }
}

fn to_modern(hook: &mut Conversion) -> Result<(), EditError> {
    let when = hook.get("when").unwrap_or_default();
    hook.rename("then", "action")?;
    hook.rename("when", "eventType")?;
    hook.set("eventType", when.get("type").unwrap_or(&Value::Null))?;
    match when.get("patterns").or_else(|| when.get("filePatterns")).or_else(|| when.get("file_patterns")) {
        Some(patterns) => hook.set("filePatterns", patterns),
        None => Ok(()),
    }
}

fn to_when_then(hook: &mut Conversion) -> Result<(), EditError> {
    let (event, patterns) = (hook.get("eventType").unwrap_or_default(), hook.get("filePatterns"));
    hook.unset("filePatterns")?;
    hook.rename("eventType", "when")?;
    hook.set("when", &when(&event, patterns.as_ref()))?;
    if hook.get("action").is_some() {
        return hook.rename("action", "then");
    }
    let action = program(hook.get("command").as_ref(), hook.get("args").as_ref());
    hook.unset("args")?;
    hook.rename("command", "then")?;
    hook.set("then", &action)
}

/// A hook in the form with two parts.
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
