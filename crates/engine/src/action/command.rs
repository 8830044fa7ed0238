//! A program with its arguments, without a shell: a value from an event stays inside its one argument.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ollm_process::Job;
use ollm_protocol::Hook;
use ollm_protocol::hook::action::Program;
use ollm_trust::Trusted;
use serde_json::Value;

use super::{ActionContext, Prepared, Run, Task};
use crate::template;

impl Run for Program {
    fn prepare(&self, context: &ActionContext<'_>) -> Prepared {
        context.job().map_or_else(Prepared::Impossible, |job| with_arguments(job, self, context))
    }
}

fn with_arguments(mut job: Job, program: &Program, context: &ActionContext<'_>) -> Prepared {
    let args = match template::arguments(&program.program, &program.args) {
        Ok(args) => args,
        Err(error) => return Prepared::Impossible(error.to_string()),
    };
    // The scope copies the event; most hooks have no variables in their arguments.
    let scope = if args.iter().any(|arg| arg.paths().next().is_some()) { context.scope() } else { Value::Null };
    let mut warnings = Vec::new();
    for arg in &args {
        match arg.render_argument(&scope) {
            Ok(rendered) => {
                // A value of the event stays what it is, also where it happens to name one of the hook's files.
                let is_own = arg.paths().next().is_none();
                job.args.push(if is_own { own(&rendered.text, context.trusted) } else { rendered.text.into() });
                warnings.extend(rendered.warnings);
            }
            Err(error) => return Prepared::Impossible(error.to_string()),
        }
    }
    Prepared::Task(Task::Job(Box::new(job.into())), warnings)
}

/// A word of the hook's own: where it names one of its files, that file, or the copy that was approved.
fn own(word: &str, trusted: &Trusted<Hook>) -> OsString {
    if let Some(code) = trusted.code_argument(word) {
        return code;
    }
    let file = trusted.hook().own_file(word).unwrap_or(Path::new(word));
    trusted.approved(file).map_or_else(|| file.into(), PathBuf::into_os_string)
}
