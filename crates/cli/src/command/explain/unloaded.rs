//! Explains why a hook is not loaded: its file, or its part of the file, could not be read.

use ollm_catalog::Problem;
use ollm_store::one_line;
use serde_json::{Value, json};

use crate::command::config::problem_entry;
use crate::error::{FINDING, Failure};
use crate::output::{Output, shown_width};
use crate::problem;
use crate::timeline::{BOLD, PLAIN};

pub(super) fn run(what: &str, problems: &[&Problem], as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    if as_json {
        let problems: Vec<Value> = problems.iter().map(|problem| problem_entry(problem)).collect();
        output.pretty_json(&json!({"hook": what, "state": "not_loaded", "problems": problems}))?;
        return Ok(FINDING);
    }
    let mut text = format!("{BOLD}{}{PLAIN} is not loaded\n", one_line(what));
    for problem in problems {
        text.push_str(&problem::render(problem, shown_width().unwrap_or(usize::MAX)));
    }
    output.text(&text)?;
    Ok(FINDING)
}
