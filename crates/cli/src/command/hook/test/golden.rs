//! Golden cases, one line each, and what differs.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use ollm_app::cases;
use ollm_app::rehearsal::{CaseResult, Rehearsal};
use ollm_protocol::Hook;
use ollm_store::one_line;
use serde_json::{Value, json};

use crate::error::{FINDING, Failure, OK};
use crate::output::Output;
use crate::timeline::{DIM, PLAIN};

pub(super) fn run(
    stage: &mut Rehearsal,
    hooks: &[Arc<Hook>],
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let mut results = Vec::new();
    output.busy("running the cases");
    for hook in hooks {
        for found in cases::of_hook(hook) {
            results.push(stage.judge(hook, found));
        }
    }
    let failed = results.iter().filter(|result| !result.differences.is_empty()).count();
    if as_json {
        output.pretty_json(&results.iter().map(entry).collect())?;
    } else {
        output.text(&summary(&results, failed))?;
    }
    Ok(if failed > 0 { FINDING } else { OK })
}

/// What came of golden cases, one line each.
pub(crate) fn text(results: &[CaseResult]) -> String {
    summary(results, results.iter().filter(|result| !result.differences.is_empty()).count())
}

fn entry(result: &CaseResult) -> Value {
    json!({
        "hook": result.hook,
        "case": result.case,
        "passed": result.differences.is_empty(),
        "differences": result.differences,
    })
}

fn summary(results: &[CaseResult], failed: usize) -> String {
    let mut text = String::new();
    let mut told: HashMap<(&str, &str), &str> = HashMap::new();
    for result in results {
        let word = if result.differences.is_empty() { "\x1b[32mok\x1b[0m    " } else { "\x1b[31mfailed\x1b[0m" };
        let _ = writeln!(text, "{word}  {}  {DIM}{}{PLAIN}", one_line(&result.case), one_line(&result.hook));
        for difference in &result.differences {
            let line = match told.get(&(result.hook.as_str(), difference.as_str())) {
                Some(case) => format!("as in {case}"),
                None => difference.clone(),
            };
            told.entry((&result.hook, difference)).or_insert(&result.case);
            let _ = writeln!(text, "        {}", one_line(&line));
        }
    }
    if results.is_empty() {
        text.push_str(
            "There are no golden cases; put them into cases/NAME/*.json beside the file that declares the hook NAME.\n",
        );
    } else {
        let _ = writeln!(text, "{} passed, {failed} failed", results.len() - failed);
    }
    text
}
