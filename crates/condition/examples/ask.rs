//! Asks a condition about an event.

#![expect(clippy::print_stdout, reason = "the point of the program")]

use ollm_condition::{Condition, ConditionScope};
use serde_json::{Map, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let condition = Condition::parse("event == 'before_tool' && data.command.matches('push .*(-f|--force)')")?;
    let data: Map<String, Value> = serde_json::from_str(r#"{"command": "git push --force"}"#)?;
    let variables = Map::new();
    let scope = ConditionScope::new("before_tool", &data, "/project", &variables, "user");
    assert!(condition.holds(&scope)?);
    println!("`{}` holds", condition.text());
    Ok(())
}
