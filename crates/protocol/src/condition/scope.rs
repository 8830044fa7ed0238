//! What a condition can see.

use std::cell::OnceCell;

use serde_json::{Map, Value};

use crate::event::Event;
use crate::scope;

/// The variables of a condition: the event and its surroundings, all borrowed.
#[derive(Debug)]
pub struct ConditionScope<'a> {
    pub(super) event: &'a Event,
    pub(super) cwd: &'a str,
    pub(super) env: &'a Map<String, Value>,
    pub(super) source: &'a str,
    session: OnceCell<Value>,
}

impl<'a> ConditionScope<'a> {
    /// What is known about an event for a hook of this source. `env` holds the environment variables that conditions
    /// may see, and no others.
    pub fn new(event: &'a Event, cwd: &'a str, env: &'a Map<String, Value>, source: &'a str) -> ConditionScope<'a> {
        ConditionScope { event, cwd, env, source, session: OnceCell::new() }
    }

    /// The session, put together only when it is asked for.
    pub(super) fn session(&self) -> &Value {
        self.session.get_or_init(|| scope::session(self.event).unwrap_or_else(|| Value::Object(Map::new())))
    }
}
