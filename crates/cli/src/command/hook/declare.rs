//! `ollm hook add`, `edit`, `remove` and `convert`: hook files changed in the form they are written in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_catalog::edit::{self, Change, EditError};
use ollm_catalog::{Form, Positions, Syntax};
use ollm_protocol::{Hook, Source, shell_word};
use serde_json::Value;

use crate::agent::refuse_agents;
use crate::app::App;
use crate::arguments::hook::{ConvertArguments, EditArguments, FormName, RemoveArguments};
use crate::error::{FINDING, Failure, Kind, OK};
use crate::open;
use crate::output::{Output, confirm, one_line};
use crate::problem;
use crate::world::World;

mod add;

pub(super) use add::run as add;

/// An agent that could declare a hook of the user would have it trusted.
fn refuse(world: &World) -> Result<(), Failure> {
    refuse_agents(world, "change hook files")
}

/// The hook to change; what is built in has no file.
fn declared(app: &App, id: &str) -> Result<Arc<Hook>, Failure> {
    let hook = app.hook(id)?;
    if hook.spec.source == Source::Builtin {
        return Err(Failure::usage(format!("`{}` is built in and stands in no file", hook.id()))
            .hint(format!("`ollm hook disable {}` switches it off", shell_word(hook.id()))));
    }
    if let Some(extension) = &hook.spec.extension {
        let file = hook.spec.origin.file.display();
        return Err(Failure::usage(format!("`{}` belongs to the extension `{extension}`", hook.id())).hint(format!(
            "its author changes it in {file}; `ollm hook disable {}` switches it off",
            shell_word(hook.id())
        )));
    }
    Ok(hook)
}

fn unchanged(path: &Path, error: &EditError) -> Failure {
    let kind = if matches!(error, EditError::File(_)) { Kind::Environment } else { Kind::Configuration };
    Failure::new(kind, format!("{} was not changed: {error}", path.display()))
}

pub(super) fn edit(arguments: &EditArguments, world: &World, output: &mut Output) -> Result<u8, Failure> {
    refuse(world)?;
    let app = App::load(world, Positions::Always)?;
    let hook = declared(&app, &arguments.id)?;
    let path = &hook.spec.origin.file;
    if arguments.set.is_empty() && arguments.unset.is_empty() {
        return by_hand(&hook, world, output);
    }
    let assigned = arguments.set.iter().map(|assignment| assigned(assignment)).collect::<Result<Vec<_>, _>>()?;
    let set = assigned.iter().map(|(key, value)| Change::Set(key, value));
    let changes: Vec<Change<'_>> = set.chain(arguments.unset.iter().map(|key| Change::Unset(key))).collect();
    edit::change(&hook, &app.rules, &changes).map_err(|error| unchanged(path, &error))?;
    output.line(&format!("{} changed", path.display()))
}

/// `KEY=VALUE`; a value that is no JSON is text.
fn assigned(assignment: &str) -> Result<(&str, Value), Failure> {
    let (key, value) = assignment.split_once('=').ok_or_else(|| {
        Failure::usage(format!("`{assignment}` is no KEY=VALUE"))
            .hint("for instance timeout=5000, or matcher='shell|write_*'")
    })?;
    Ok((key, serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

/// Opens the file in the person's editor, and says what is wrong with it afterwards.
fn by_hand(hook: &Hook, world: &World, output: &mut Output) -> Result<u8, Failure> {
    let origin = &hook.spec.origin;
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(|name| world.variable(name)).filter(|name| !name.is_empty());
    let place = format!("{}:{}:{}", origin.file.display(), origin.line, origin.column);
    let Some(editor) = editor else {
        return Err(Failure::usage(format!("neither VISUAL nor EDITOR names an editor; the hook stands in {place}"))
            .hint("change single keys with `ollm hook edit ID KEY=VALUE`"));
    };
    if !open::editor(&editor, world.search_path(), &origin.file, origin.line) {
        return Err(Failure::new(
            Kind::Environment,
            format!("`{editor}` did not end well; the hook stands in {place}"),
        ));
    }
    let problems = App::load(world, Positions::OnDemand)?.problems;
    let problems: Vec<_> = problems.iter().filter(|problem| problem.file == origin.file).collect();
    for problem in &problems {
        output.explain(&problem::render(problem));
    }
    Ok(if problems.is_empty() { OK } else { FINDING })
}

pub(super) fn remove(arguments: &RemoveArguments, world: &World, output: &mut Output) -> Result<u8, Failure> {
    refuse(world)?;
    for id in &arguments.ids {
        // Each removal moves what stands behind it.
        let app = App::load(world, Positions::Always)?;
        let hook = declared(&app, id)?;
        let path = &hook.spec.origin.file;
        let question = format!("Remove {} from {}? [y/N] ", one_line(hook.id()), path.display());
        if !arguments.yes {
            confirm(&question, hook.id())?;
        }
        edit::change(&hook, &app.rules, &[Change::Remove]).map_err(|error| unchanged(path, &error))?;
        output.line(&one_line(&format!("{} is gone from {}", hook.id(), path.display())))?;
    }
    Ok(OK)
}

pub(super) fn convert(arguments: &ConvertArguments, world: &World, output: &mut Output) -> Result<u8, Failure> {
    let path: PathBuf = world.cwd.join(&arguments.file);
    let form = match arguments.to {
        FormName::Modern => Form::Modern,
        FormName::WhenThen => Form::WhenThen,
    };
    let change = |text: &str| edit::convert(text, Syntax::of(&path), form);
    if arguments.write {
        refuse(world)?;
        edit::rewrite(&path, |text| change(text).map(Some)).map_err(|error| unchanged(&path, &error))?;
        return output.line(&format!("{} changed", path.display()));
    }
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::new(Kind::Environment, format!("{} cannot be read: {error}", path.display())))?;
    let converted = change(&text).map_err(|error| {
        Failure::new(Kind::Configuration, format!("{} cannot be converted: {error}", path.display()))
    })?;
    output.bytes(converted.as_bytes(), &[], OK)
}
