//! `ollm hook validate`: everything that is wrong with hook files, for people and for CI.

use std::path::Path;

use ollm_app::AppContext;
use ollm_app::validation::validate_hooks;

use crate::command::config::problem_entry;
use crate::error::{FINDING, Failure, OK};
use crate::output::Output;

pub(super) fn run(
    file: Option<&Path>,
    context: &AppContext,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    output.busy("reading hooks");
    let found = validate_hooks(file, context)?;
    let code = if found.problems.is_empty() { OK } else { FINDING };
    if as_json {
        output.pretty_json(&found.problems.iter().map(problem_entry).collect())?;
        return Ok(code);
    }
    for problem in &found.problems {
        output.problem(problem);
    }
    match (code, found.hooks) {
        (OK, 0) => output.tell("nothing is wrong, and there is no hook"),
        (OK, 1) => output.tell("nothing is wrong with the one hook there is"),
        (OK, count) => output.tell(&format!("nothing is wrong with the {count} hooks there are")),
        _ => {}
    }
    Ok(code)
}
