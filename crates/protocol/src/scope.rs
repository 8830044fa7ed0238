//! The variables that templates can use: the event, its data, and the short names of the `agent` dialect.

use serde_json::{Map, Value, json};

use crate::event::Event;

/// The variables of an event, for templates.
///
/// ```
/// use ollm_protocol::{Event, EventKind, scope};
/// let event = Event::unchecked(EventKind::BeforeTool, [("args", serde_json::json!({"path": "a.rs"}))]);
/// assert_eq!(scope(&event)["tool_args"]["path"], "a.rs");
/// ```
pub fn scope(event: &Event) -> Value {
    let mut scope = Map::new();
    for name in ["tool_name", "result", "error", "message", "timestamp", "user_input", "execution_time", "cwd"] {
        if let Some(value) = event.data.get(name) {
            scope.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(session) = ollm_condition::session(&event.data) {
        scope.insert("session".to_owned(), session);
    }
    if let Some(id) = event.session_id() {
        scope.insert("session_id".to_owned(), id.into());
    }
    if let Some(args) = event.data.get("args") {
        scope.insert("tool_args".to_owned(), args.clone());
    }
    if event.kind.is_file() {
        scope.insert("file".to_owned(), file(event));
    }
    scope.insert("event".to_owned(), event.kind.name().into());
    scope.insert("data".to_owned(), event.data.clone().into());
    Value::Object(scope)
}

fn file(event: &Event) -> Value {
    let mut file = event.data.get("file").cloned().filter(Value::is_object).unwrap_or_else(|| json!({}));
    if let Some(map) = file.as_object_mut() {
        for (name, field) in [("path", "path"), ("changes", "diff")] {
            if let (Some(value), false) = (event.data.get(field), map.contains_key(name)) {
                map.insert(name.to_owned(), value.clone());
            }
        }
    }
    file
}
