//! The promises of conditions, each as the sentence that must hold.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop a test that way")]

mod abuse;
mod oracle;
mod truths;

use ollm_condition::{Condition, ConditionFault, ConditionScope};
use proptest::prelude::ProptestConfig;
use serde_json::{Map, Value};

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Asks a condition about the data of an event.
fn asked(condition: &str, data: &Map<String, Value>) -> Result<bool, ConditionFault> {
    let env = Map::new();
    Condition::parse(condition).unwrap().holds(&ConditionScope::new("before_tool", data, "", &env, "user"))
}

/// Asks a condition about an event whose data is one text.
fn asked_about_text(condition: &str, text: String) -> Result<bool, ConditionFault> {
    asked(condition, &Map::from_iter([("text".to_owned(), text.into())]))
}
