//! Golden cases, one line each, and what differs.

use std::fmt::Write;
use std::sync::Arc;

use ollm_protocol::Hook;
use ollm_store::one_line;
use serde_json::{Value, json};

use super::Stage;
use crate::cases::{self, Case};
use crate::error::{FINDING, Failure, OK};
use crate::output::Output;
use crate::timeline::{DIM, PLAIN};

/// What came of one case.
struct Judged {
    hook: String,
    case: String,
    differences: Vec<String>,
}

pub(super) fn run(stage: &mut Stage, hooks: &[Arc<Hook>], as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let mut results = Vec::new();
    for hook in hooks {
        for found in cases::of_hook(hook) {
            results.push(judge(stage, hook, found));
        }
    }
    let failed = results.iter().filter(|result| !result.differences.is_empty()).count();
    if as_json {
        output.pretty_json(&results.iter().map(Judged::json).collect())?;
    } else {
        output.text(&summary(&results, failed))?;
    }
    Ok(if failed > 0 { FINDING } else { OK })
}

fn judge(stage: &mut Stage, hook: &Arc<Hook>, found: cases::Found) -> Judged {
    let (case, differences) = match found {
        Err((name, why)) => (name, vec![why]),
        Ok(case) => {
            let differences = differences(stage, hook, &case);
            (case.name, differences)
        }
    };
    Judged { hook: hook.id().to_owned(), case, differences }
}

fn differences(stage: &mut Stage, hook: &Hook, case: &Case) -> Vec<String> {
    let hook = match as_shipped(stage, hook, case) {
        Ok(hook) => hook,
        Err(why) => return vec![why],
    };
    match stage.rehearse(&hook, &case.event) {
        Ok(outcome) => case.differences(&outcome),
        Err(failure) => vec![failure.message],
    }
}

/// A hook with the settings of the case: a case holds wherever it is run, and no secret of the person's is in it.
fn as_shipped(stage: &Stage, hook: &Hook, case: &Case) -> Result<Hook, String> {
    let Some(name) = &hook.spec.extension else {
        let why = "`settings` are those of an extension, and this hook came with none";
        return if case.settings.is_empty() { Ok(hook.clone()) } else { Err(why.to_owned()) };
    };
    let extension = stage.app.extensions.get(name).ok_or_else(|| format!("there is no extension `{name}`"))?;
    Ok(Hook { settings: extension.sample_variables(&case.settings)?, ..hook.clone() })
}

impl Judged {
    fn json(&self) -> Value {
        json!({
            "hook": self.hook,
            "case": self.case,
            "passed": self.differences.is_empty(),
            "differences": self.differences,
        })
    }
}

fn summary(results: &[Judged], failed: usize) -> String {
    let mut text = String::new();
    for result in results {
        let word = if result.differences.is_empty() { "\x1b[32mok\x1b[0m    " } else { "\x1b[31mfailed\x1b[0m" };
        let _ = writeln!(text, "{word}  {}  {DIM}{}{PLAIN}", one_line(&result.case), one_line(&result.hook));
        for difference in &result.differences {
            let _ = writeln!(text, "        {}", one_line(difference));
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
