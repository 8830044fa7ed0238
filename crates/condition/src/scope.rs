//! The variables that a condition can use.

use std::cell::OnceCell;

use serde_json::{Map, Value, json};

/// The variables of a condition: the event and its context, all borrowed.
#[derive(Debug)]
pub struct ConditionScope<'a> {
    pub(crate) event: &'a str,
    pub(crate) data: &'a Map<String, Value>,
    pub(crate) cwd: &'a str,
    pub(crate) env: &'a Map<String, Value>,
    pub(crate) source: &'a str,
    session: OnceCell<Value>,
}

impl<'a> ConditionScope<'a> {
    /// The variables for an event, by its name and data, and for a hook of this source. `env` holds exactly the
    /// environment variables that conditions may see.
    pub fn new(
        event: &'a str,
        data: &'a Map<String, Value>,
        cwd: &'a str,
        env: &'a Map<String, Value>,
        source: &'a str,
    ) -> ConditionScope<'a> {
        ConditionScope { event, data, cwd, env, source, session: OnceCell::new() }
    }

    /// The session, built only when a condition uses it.
    pub(crate) fn session(&self) -> &Value {
        self.session.get_or_init(|| session(self.data).unwrap_or_else(|| json!({})))
    }
}

/// The session in an event's data: the host's information about it, and its id from any of the known fields.
pub fn session(data: &Map<String, Value>) -> Option<Value> {
    let known = data.get("session").cloned();
    let Some(id) = data.get("session_id").filter(|id| id.is_string()) else { return known };
    let mut session = known.unwrap_or_else(|| json!({}));
    if let Some(fields) = session.as_object_mut()
        && !fields.contains_key("id")
    {
        fields.insert("id".to_owned(), id.clone());
    }
    Some(session)
}
