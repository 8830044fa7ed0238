//! `ollm hook add`, `edit`, `remove` and `convert`: hook files changed in the form they are written in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_app::{App, AppContext, refuse_agents};
use ollm_catalog::edit::{self, Change, EditError};
use ollm_catalog::{Form, Problem, Severity, Syntax};
use ollm_protocol::dialect::agent_named;
use ollm_protocol::hook::action::ActionType;
use ollm_protocol::hook::key::{self, HookKey, KeyKind};
use ollm_protocol::{Code, Hook, Source};
use ollm_shell::shell_word;
use ollm_store::FileError;
use serde_json::{Value, json};

use crate::arguments::hook::{ConvertArguments, EditArguments, FormName};
use crate::error::{FINDING, Failure, OK};
use crate::open;
use crate::output::Output;

mod add;
mod remove;

pub(super) use add::run as add;
pub(super) use remove::run as remove;

/// Fails for an agent: a hook that it declared for the user would be trusted.
fn refuse(context: &AppContext) -> Result<(), Failure> {
    Ok(refuse_agents(context, "change hook files")?)
}

/// The hook to change; what is built in has no file.
fn declared(app: &App, id: &str) -> Result<Arc<Hook>, Failure> {
    let hook = app.hook(id)?;
    if hook.spec.source == Source::Builtin {
        return Err(Failure::new(Code::Elsewhere, format!("`{}` is built in, and no file declares it", hook.id()))
            .hint(format!("`ollm hook disable {}` switches it off", shell_word(hook.id()))));
    }
    if hook.spec.source == Source::Policy {
        return Err(required(&hook));
    }
    if let Some(agent) = hook.spec.read_from.and_then(agent_named) {
        let origin = &hook.spec.origin;
        let message = format!("`{}` is a hook of {}, read where it is", hook.id(), agent.title);
        return Err(Failure::new(Code::Elsewhere, message).hint(format!(
            "change it in {}:{}; `ollm hook disable {}` switches it off here",
            origin.file.display(),
            origin.line,
            shell_word(hook.id())
        )));
    }
    if let Some(extension) = &hook.spec.extension {
        let file = hook.spec.origin.file.display();
        return Err(Failure::new(Code::Elsewhere, format!("`{}` belongs to the extension `{extension}`", hook.id()))
            .hint(format!(
                "its author changes it in {file}; `ollm hook disable {}` switches it off",
                shell_word(hook.id())
            )));
    }
    Ok(hook)
}

/// The failure for a hook that the machine's policy requires, which only root can change.
pub(super) fn required(hook: &Hook) -> Failure {
    let message = format!("`{}` is required by the machine's policy", hook.id());
    Failure::new(Code::Elsewhere, message).hint(format!("root may change it in {}", hook.spec.origin.file.display()))
}

fn unchanged(path: &Path, error: &EditError) -> Failure {
    let code = match error {
        EditError::File(_) => Code::NotWritten,
        EditError::Unknown { .. } => Code::UnknownSetting,
        _ => Code::WrongForm,
    };
    let failure = Failure::new(code, format!("{} was not changed: {error}", path.display()));
    match error {
        EditError::Unknown { help: Some(help), .. } => failure.hint(help),
        EditError::Unknown { .. } => failure.hint("`ollm schema hooks` prints every key"),
        // A terminal shows the place instead of the sentence.
        EditError::Refused(problem) => {
            let stays = format!("{} stays as it was", path.display());
            Failure { problem: Some(problem.clone()), code: Some(problem.code), ..failure }.hint(stays)
        }
        _ => failure,
    }
}

pub(super) fn edit(arguments: &EditArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse(context)?;
    let app = App::load(context)?;
    let hook = declared(&app, &arguments.id)?;
    let path = &hook.spec.origin.file;
    if arguments.set.is_empty() && arguments.unset.is_empty() {
        return by_hand(&hook, &app.problems, context, output);
    }
    let assigned = arguments.set.iter().map(|assignment| assigned(assignment)).collect::<Result<Vec<_>, _>>()?;
    let set = assigned.iter().map(|(key, value)| Change::Set(key, value));
    let changes: Vec<Change<'_>> = set.chain(arguments.unset.iter().map(|key| Change::Unset(key))).collect();
    let done = edit::change(&hook, &app.rules, &changes).map_err(|error| unchanged(path, &error))?;
    for key in &done.missing {
        output.tell(&format!("`{}` does not set `{key}`", hook.id()));
    }
    if !done.is_changed {
        return output.line(&format!("{} stays as it was", path.display()));
    }
    for problem in news(path, &app.problems, context)? {
        output.problem(&problem);
    }
    output.changed(json!({"hook": hook.id(), "file": path.to_string_lossy()}));
    output.line(&format!("{} changed", path.display()))
}

/// `KEY=VALUE`; a value that is no JSON is text, and so is that of a key which holds text.
fn assigned(assignment: &str) -> Result<(&str, Value), Failure> {
    let (key, value) = assignment.split_once('=').ok_or_else(|| {
        Failure::usage(format!("`{assignment}` is no KEY=VALUE"))
            .hint("for instance timeout=5000, or matcher='shell|write_*'")
    })?;
    let of_action = || ActionType::of_files().find_map(|kind| key::find(kind.keys, key));
    let row = HookKey::find(key).or_else(of_action);
    let is_text = row.is_some_and(|row| matches!(row.kind, KeyKind::Text(..) | KeyKind::Line(_)));
    let read = serde_json::from_str(value).ok().filter(|read: &Value| !is_text || read.is_string());
    Ok((key, read.unwrap_or_else(|| value.into())))
}

/// The problems with a file that are new.
fn news(path: &Path, known: &[Problem], context: &AppContext) -> Result<Vec<Problem>, Failure> {
    let mut problems = App::load(context)?.problems;
    let is_known = |new: &Problem| known.iter().any(|old| (&old.field, &old.message) == (&new.field, &new.message));
    problems.retain(|problem| problem.file == path && !is_known(problem));
    Ok(problems)
}

/// Opens the file in the person's editor, and reports problems afterwards. A file that would not load does not replace
/// one that did.
fn by_hand(hook: &Hook, known: &[Problem], context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let origin = &hook.spec.origin;
    let editor =
        ["VISUAL", "EDITOR"].into_iter().find_map(|name| context.variable(name)).filter(|name| !name.is_empty());
    let place = format!("{}:{}:{}", origin.file.display(), origin.line, origin.column);
    let Some(editor) = editor else {
        return Err(Failure::usage(format!("neither VISUAL nor EDITOR names an editor; the hook is in {place}"))
            .hint("change single keys with `ollm hook edit ID KEY=VALUE`"));
    };
    let before = std::fs::read(&origin.file)
        .map_err(|error| Failure::new(Code::Unreadable, format!("{place} cannot be read: {error}")))?;
    let opened = output.with_terminal(|| open::editor(&editor, context.search_path(), &origin.file, origin.line));
    if !opened {
        return Err(Failure::new(Code::MissingProgram, format!("`{editor}` did not end well; the hook is in {place}")));
    }
    let problems = news(&origin.file, known, context)?;
    for problem in &problems {
        output.problem(problem);
    }
    if problems.iter().any(|problem| problem.severity != Severity::Warning) {
        let attempt = put_back(&origin.file, &before).map_err(|error| {
            Failure::new(Code::NotWritten, format!("the file before could not be restored: {error}"))
        })?;
        output.tell(&format!(
            "{} is as it was before; what you wrote is in {}",
            origin.file.display(),
            attempt.display()
        ));
    }
    Ok(if problems.is_empty() { OK } else { FINDING })
}

/// Restores a file. Its present content stays beside it, under a name that is not read as a hook file.
fn put_back(path: &Path, before: &[u8]) -> Result<PathBuf, FileError> {
    const LARGEST_FILE: u64 = 64 << 20;
    let mut attempt = path.as_os_str().to_owned();
    attempt.push(".rejected");
    let attempt = PathBuf::from(attempt);
    ollm_store::rewrite(path, LARGEST_FILE, |written| {
        ollm_store::write_atomic(&attempt, &written.unwrap_or_default())?;
        Ok::<_, FileError>(Some(before.to_vec()))
    })?;
    Ok(attempt)
}

pub(super) fn convert(arguments: &ConvertArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let path: PathBuf = context.cwd.join(&arguments.file);
    let form = match arguments.to {
        FormName::Modern => Form::Modern,
        FormName::WhenThen => Form::WhenThen,
    };
    let change = |text: &str| edit::convert(text, Syntax::of(&path), form);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::new(Code::Unreadable, format!("{} cannot be read: {error}", path.display())))?;
    if arguments.write {
        refuse(context)?;
        edit::rewrite(&path, |text| change(text).map(Some)).map_err(|error| unchanged(&path, &error))?;
        return output.line(&format!("{} changed", path.display()));
    }
    let converted = change(&text)
        .map_err(|error| Failure::new(Code::WrongForm, format!("{} cannot be converted: {error}", path.display())))?;
    let converted = converted.strip_suffix('\n').unwrap_or(&converted);
    if Syntax::of(&path) == Syntax::Yaml { output.data(converted) } else { output.json_text(converted) }
}
