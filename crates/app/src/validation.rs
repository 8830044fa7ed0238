//! Everything that is wrong with hook files, before any event comes: for people who write them, and for their CI.

use std::path::Path;
use std::sync::Arc;

use ollm_catalog::{Problem, Severity};
use ollm_protocol::{Code, Hook, Source};
use ollm_store::plain_path;

use crate::app::App;
use crate::app_context::AppContext;
use crate::cases;
use crate::error::AppError;

/// What was looked at, and what is wrong with it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Validation {
    /// How many hooks there are.
    pub hooks: usize,
    /// What is wrong, whatever file it is in.
    pub problems: Vec<Problem>,
}

/// Looks over all hook files there are, or over one file or folder of them; nothing runs, and nobody must have approved it.
pub fn validate_hooks(file: Option<&Path>, context: &AppContext) -> Result<Validation, AppError> {
    let app = App::load(context)?;
    let (hooks, mut problems) = match file {
        Some(file) => {
            let (hooks, problems) = ollm_catalog::load_named(&plain_path(&context.cwd.join(file)), app.rules.clone());
            (hooks.into_iter().map(Arc::new).collect(), problems)
        }
        None => (app.hooks(), app.problems.clone()),
    };
    let own: Vec<Arc<Hook>> = hooks.into_iter().filter(|hook| hook.spec.source != Source::Builtin).collect();
    for hook in &own {
        problems.extend(missing_script(hook));
        problems.extend(broken_cases(hook));
    }
    if file.is_none() {
        problems.extend(app.undeclared.iter().map(|script| {
            let message = "no hook file declares this script, and it never runs".to_owned();
            let problem = Problem::of_file(Code::UndeclaredScript, Severity::Warning, &script.path, message);
            Problem { remedy: Some(script.remedy()), ..problem }
        }));
    }
    Ok(Validation { hooks: own.len(), problems })
}

fn missing_script(hook: &Hook) -> Option<Problem> {
    let script = hook.script().filter(|script| !script.exists())?;
    let message = format!("hook `{}` names {}, which does not exist", hook.spec.name, script.display());
    let help = Some("put the file there, or name one that is".to_owned());
    let origin = &hook.spec.origin;
    let problem = Problem::of_file(Code::MissingFile, Severity::Error, &origin.file, message);
    Some(Problem { line: origin.line, column: origin.column, help, ..problem })
}

fn broken_cases(hook: &Hook) -> Vec<Problem> {
    let broken = cases::of_hook(hook).into_iter().filter_map(Result::err);
    broken.map(|(_, why)| Problem::of_file(Code::BrokenCase, Severity::Error, &hook.spec.origin.file, why)).collect()
}
