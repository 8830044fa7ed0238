//! Finds all problems with hook files before any event comes, for people who write them and for their CI.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_catalog::{Problem, Severity, load_servers, load_servers_from};
use ollm_protocol::{Code, Hook, Source};
use ollm_store::plain_path;

use crate::app::App;
use crate::app_context::AppContext;
use crate::cases;
use crate::error::AppError;

/// The result of a validation.
#[derive(Debug)]
#[non_exhaustive]
pub struct Validation {
    /// How many hooks there are.
    pub hooks: usize,
    /// The problems, in any file.
    pub problems: Vec<Problem>,
}

/// Checks all hook files, or one file or folder of them. Nothing runs, and no approval is needed.
///
/// It also checks the golden cases, and the servers whose tools hooks call.
pub fn validate_hooks(file: Option<&Path>, context: &AppContext) -> Result<Validation, AppError> {
    let app = match App::load(context) {
        Ok(app) => app,
        // A fatal file is a finding like all others.
        Err(AppError { problem: Some(problem), .. }) => return Ok(Validation { hooks: 0, problems: vec![*problem] }),
        Err(failure) => return Err(failure),
    };
    let Some(file) = file.map(|file| plain_path(&context.cwd.join(file))) else { return Ok(all(&app)) };
    let places = &context.places;
    if [Some(places.config()), places.project_config()].into_iter().flatten().any(|config| config == file)
        && file.is_file()
    {
        let problems = app.problems.iter().filter(|problem| problem.file == file).cloned().collect();
        return Ok(Validation { hooks: 0, problems });
    }
    let beside = |name: &str| file.parent().and_then(Path::file_name).is_some_and(|folder| folder == name);
    let is_case = file.ancestors().nth(2).and_then(Path::file_name).is_some_and(|folder| folder == "cases");
    if file.is_file() && is_case {
        let problems = cases::read(&file).err().map(|broken| *broken.problem).into_iter().collect();
        return Ok(Validation { hooks: 0, problems });
    }
    if file.is_file() && beside("settings") {
        return Ok(Validation { hooks: 0, problems: load_servers_from(&file).1 });
    }
    let (hooks, problems) = ollm_catalog::load_named(&file, app.rules.clone());
    let folders = if file.is_dir() { vec![file] } else { Vec::new() };
    Ok(looked_over(hooks.into_iter().map(Arc::new).collect(), problems, folders))
}

fn all(app: &App) -> Validation {
    let places = &app.context().places;
    let folders = places.projects().map(|project| project.join(".ollm/hooks")).chain([places.home.join("hooks")]);
    let mut found = looked_over(app.hooks(), app.problems.clone(), folders.collect());
    found.problems.extend(server_problems(app.context()));
    found.problems.extend(app.undeclared.iter().map(|script| {
        let message = "no hook file declares this script, and it never runs".to_owned();
        let problem = Problem::of_file(Code::UndeclaredScript, Severity::Warning, &script.path, message);
        Problem { remedy: Some(script.remedy()), ..problem }
    }));
    found
}

/// All problems with the files of servers, apart from the configuration.
pub fn server_problems(context: &AppContext) -> Vec<Problem> {
    let places = &context.places;
    let configuration = [Some(places.config()), places.project_config()];
    let (_, problems) = load_servers(places);
    problems.into_iter().filter(|problem| !configuration.iter().flatten().any(|file| *file == problem.file)).collect()
}

/// Adds the problems with the parts that hooks name, and with their cases in these folders of hook files.
fn looked_over(hooks: Vec<Arc<Hook>>, mut problems: Vec<Problem>, folders: Vec<PathBuf>) -> Validation {
    let own: Vec<Arc<Hook>> = hooks.into_iter().filter(|hook| hook.spec.source != Source::Builtin).collect();
    for hook in &own {
        problems.extend(missing_script(hook));
        problems.extend(cases::of_hook(hook).into_iter().filter_map(Result::err).map(|broken| *broken.problem));
    }
    for folder in folders {
        let is_known = |name: &str| {
            own.iter().any(|hook| hook.spec.name == name && hook.spec.origin.file.parent() == Some(&folder))
        };
        problems.extend(cases::strays(&folder, is_known).iter().map(|stray| {
            let message = "these golden cases belong to no hook that is loaded, and never run".to_owned();
            let help = Some("name the folder as the hook is named, or mend the hook".to_owned());
            Problem { help, ..Problem::of_file(Code::BrokenCase, Severity::Error, stray, message) }
        }));
    }
    Validation { hooks: own.len(), problems }
}

fn missing_script(hook: &Hook) -> Option<Problem> {
    let script = hook.script().filter(|script| !script.exists())?;
    let message = format!("hook `{}` names {}, which does not exist", hook.spec.name, script.display());
    let help = Some("put the file there, or name one that is".to_owned());
    let origin = &hook.spec.origin;
    let problem = Problem::of_file(Code::MissingFile, Severity::Error, &origin.file, message);
    Some(Problem { line: origin.line, column: origin.column, help, ..problem })
}
