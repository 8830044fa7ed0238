//! What a condition can see.

use std::cell::OnceCell;

use serde_json::{Map, Value, json};

/// The variables of a condition: the event and its surroundings, all borrowed.
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
    /// What is known about an event, by its name and data, for a hook of this source. `env` holds the environment
    /// variables that conditions may see, and no others.
    pub fn new(
        event: &'a str,
        data: &'a Map<String, Value>,
        cwd: &'a str,
        env: &'a Map<String, Value>,
        source: &'a str,
    ) -> ConditionScope<'a> {
        ConditionScope { event, data, cwd, env, source, session: OnceCell::new() }
    }

    /// The session, put together only when it is asked for.
    pub(crate) fn session(&self) -> &Value {
        self.session.get_or_init(|| session(self.data).unwrap_or_else(|| json!({})))
    }
}

/// The session that an event's data tell of: what the host says about it, and its id wherever the host put it.
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
