//! A program with its arguments, without a shell: a value from an event stays inside its one argument.
//!
//! Where its exit status is the whole answer, nothing it prints is read, but it is reported.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ollm_process::Job;
use ollm_protocol::hook::action::Program;
use ollm_protocol::{Answer, Hook, Output, Verdict};
use ollm_store::cut;
use ollm_trust::Trusted;
use serde_json::{Map, Value};

use super::{ActionContext, Prepared, Task};
use crate::template;

/// More of the output of a program is not reported where only its exit status is the answer.
const LONGEST: usize = 10 << 10;

pub(super) fn prepare(program: &Program, context: &ActionContext<'_>) -> Prepared {
    context.job().map_or_else(Prepared::Impossible, |job| with_arguments(job, program, context))
}

/// What the exit status alone says.
pub(super) fn read_status(output: &Output<'_>) -> Answer {
    let texts = [("stdout", output.stdout), ("stderr", output.stderr)];
    let printed = texts.iter().filter(|(_, bytes)| !bytes.is_empty());
    let metadata = printed.map(|(name, bytes)| {
        let text = cut(&String::from_utf8_lossy(bytes), LONGEST).into_owned();
        ((*name).to_owned(), text.into())
    });
    let verdict = Verdict { metadata: metadata.collect::<Map<_, _>>(), ..Verdict::default() };
    Answer { verdict, failure: output.end.failure(output.stderr), warnings: Vec::new() }
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
