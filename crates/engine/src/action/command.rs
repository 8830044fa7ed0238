//! A program with its arguments, without a shell: a value from an event stays inside its one argument.

use std::path::{Path, PathBuf};

use ollm_process::Job;
use ollm_protocol::template::Template;
use serde_json::Value;

use super::{Prepared, Task};
use crate::trust::Trusted;

pub(super) fn prepare(mut job: Job, args: &[Template], trusted: &Trusted, scope: impl FnOnce() -> Value) -> Prepared {
    // The scope copies the event; most hooks have no variables in their arguments.
    let scope = if args.iter().any(|arg| arg.paths().next().is_some()) { scope() } else { Value::Null };
    let mut warnings = Vec::new();
    for arg in args {
        match arg.render_argument(&scope) {
            Ok(rendered) => {
                // A value of the event stays what it is, also where it happens to name one of the hook's files.
                let is_own = arg.paths().next().is_none();
                let copy = trusted.approved(Path::new(&rendered.text)).filter(|_| is_own);
                job.args.push(copy.map_or_else(|| rendered.text.into(), PathBuf::into_os_string));
                warnings.extend(rendered.warnings);
            }
            Err(error) => return Prepared::Impossible(error.to_string()),
        }
    }
    Prepared::Task(Task::Job(Box::new(job)), warnings)
}
