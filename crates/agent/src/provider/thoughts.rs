//! Thoughts that a server wants back with the calls they led to. They live as long as the process: a session that is
//! resumed goes on without them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Answer;
use crate::message::Call;

/// How many answers are remembered.
const MOST: usize = 200;

/// Thoughts by the id of the first call that followed them.
#[derive(Debug, Default)]
pub(crate) struct Thoughts(BTreeMap<String, Vec<Value>>);

impl Thoughts {
    /// Keeps the thoughts of an answer that has calls.
    pub(crate) fn keep(&mut self, answer: &Answer, thoughts: Vec<Value>) {
        let Some(call) = answer.calls.first().filter(|_| !thoughts.is_empty()) else { return };
        if self.0.len() >= MOST {
            self.0.pop_first();
        }
        self.0.insert(call.id.clone(), thoughts);
    }

    /// The thoughts that led to these calls.
    pub(crate) fn before(&self, calls: &[Call]) -> Vec<Value> {
        calls.first().and_then(|call| self.0.get(&call.id)).cloned().unwrap_or_default()
    }
}
