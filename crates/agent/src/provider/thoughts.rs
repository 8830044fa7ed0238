//! Reasoning that a server wants back with the calls it led to. It is kept in memory only: a resumed session continues
//! without it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ModelAnswer;
use crate::message::Call;

/// How many answers are remembered.
const MOST: usize = 200;

/// Reasoning by the id of the first call after it.
#[derive(Debug, Default)]
pub(crate) struct Thoughts(BTreeMap<String, Vec<Value>>);

impl Thoughts {
    /// Keeps the reasoning of an answer with calls.
    pub(crate) fn keep(&mut self, answer: &ModelAnswer, thoughts: Vec<Value>) {
        let Some(call) = answer.calls.first().filter(|_| !thoughts.is_empty()) else { return };
        if self.0.len() >= MOST {
            self.0.pop_first();
        }
        self.0.insert(call.id.clone(), thoughts);
    }

    /// The reasoning that led to these calls.
    pub(crate) fn before(&self, calls: &[Call]) -> Vec<Value> {
        calls.first().and_then(|call| self.0.get(&call.id)).cloned().unwrap_or_default()
    }
}
