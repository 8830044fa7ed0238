//! Runs a program with its arguments, without a shell. A value from an event stays inside its one argument.
//!
//! If the exit status is the whole answer, the report shows the program's output, and nothing reads it as an answer.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ollm_process::Job;
use ollm_protocol::hook::action::Program;
use ollm_protocol::{Hook, HookAnswer, Output, Verdict};
use ollm_store::cut;
use ollm_trust::Trusted;
use serde_json::{Map, Value};

use super::{ActionContext, PreparedAction, Task};
use crate::template;

/// The most bytes of output that a report shows where the exit status is the answer.
const LONGEST: usize = 10 << 10;

pub(super) fn prepare(program: &Program, context: &ActionContext<'_>) -> PreparedAction {
    context.job().map_or_else(PreparedAction::Impossible, |job| with_arguments(job, program, context))
}

/// Reads the exit status as the whole answer.
pub(super) fn read_status(output: &Output<'_>) -> HookAnswer {
    let texts = [("stdout", output.stdout), ("stderr", output.stderr)];
    let printed = texts.iter().filter(|(_, bytes)| !bytes.is_empty());
    let metadata = printed.map(|(name, bytes)| {
        let text = cut(&String::from_utf8_lossy(bytes), LONGEST).into_owned();
        ((*name).to_owned(), text.into())
    });
    let verdict = Verdict { metadata: metadata.collect::<Map<_, _>>(), ..Verdict::default() };
    HookAnswer { verdict, failure: output.end.failure(output.stderr), warnings: Vec::new() }
}

fn with_arguments(mut job: Job, program: &Program, context: &ActionContext<'_>) -> PreparedAction {
    let args = match template::arguments(&program.program, &program.args) {
        Ok(args) => args,
        Err(error) => return PreparedAction::Impossible(error.to_string()),
    };
    // The scope copies the event; most hooks have no variables in their arguments.
    let scope = if args.iter().any(|arg| arg.paths().next().is_some()) { context.scope() } else { Value::Null };
    let mut warnings = Vec::new();
    for arg in &args {
        match arg.render_argument(&scope) {
            Ok(rendered) => {
                // A value of the event stays unchanged, even if it happens to name one of the hook's files.
                let is_own = arg.paths().next().is_none();
                job.args.push(if is_own { own(&rendered.text, context.trusted) } else { rendered.text.into() });
                warnings.extend(rendered.warnings);
            }
            Err(error) => return PreparedAction::Impossible(error.to_string()),
        }
    }
    PreparedAction::Task(Task::Job(Box::new(job.into())), warnings)
}

/// A word that the hook itself declares. If it names one of the hook's files, the result is that file or its approved
/// copy.
fn own(word: &str, trusted: &Trusted<Hook>) -> OsString {
    if let Some(code) = trusted.code_argument(word) {
        return code;
    }
    let file = trusted.hook().own_file(word).unwrap_or(Path::new(word));
    trusted.approved(file).map_or_else(|| file.into(), PathBuf::into_os_string)
}
