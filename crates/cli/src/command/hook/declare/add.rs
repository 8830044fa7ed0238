//! `ollm hook add`: declares a script or a program as a hook.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use ollm_app::{App, AppContext};
use ollm_catalog::edit::Owner;
use ollm_catalog::{Form, edit};
use ollm_process::find_program;
use ollm_protocol::dialect::{by_spelling, event_named};
use ollm_protocol::{Code, Layer, Source};
use ollm_shell::Shebang;
use serde_json::{Map, Value, json};

use super::{refuse, unchanged};
use crate::arguments::hook::AddArguments;
use crate::command::hook::new::folder;
use crate::error::{Failure, OK};
use crate::output::Output;

/// What runs a script, by the end of its name.
const INTERPRETERS: &[(&str, &str)] =
    &[("py", "python3"), ("js", "node"), ("mjs", "node"), ("cjs", "node"), ("sh", "sh"), ("bash", "bash")];

/// More of a first line is not read.
const LONGEST_FIRST_LINE: u64 = 256;

pub(in crate::command::hook) fn run(
    arguments: &AddArguments,
    context: &AppContext,
    output: &mut Output,
) -> Result<u8, Failure> {
    refuse(context)?;
    event_named(&arguments.event)?;
    let app = App::load(context)?;
    let folder = folder(arguments.project, context)?;
    let script = found(&arguments.path, &folder, context)?;
    let name = name(arguments, &script);
    let layer = if arguments.project { Layer::Workspace } else { Layer::User };
    if let Some(taken) = app.hooks().iter().find(|hook| hook.spec.name == name && hook.spec.layer == layer) {
        let message = format!("there is a hook `{name}` already, in {}", taken.spec.origin.file.display());
        return Err(Failure::new(Code::AlreadyThere, message).hint("give this one another name with --name"));
    }
    let file = folder.join(arguments.file.clone().unwrap_or_else(|| format!("{name}.json")));
    let interpreter = interpreter(&script).map(|(program, options)| (found_program(program, &app, context), options));
    let entry = entry(arguments, &name, &script, &folder, interpreter);
    let source = if arguments.project { Source::Workspace } else { Source::User };
    edit::append(&file, Form::Events, &arguments.event, &entry, Owner { source, layer, rules: &app.rules })
        .map_err(|error| unchanged(&file, &error))?;
    output.changed(json!({"hook": name, "file": file.to_string_lossy()}));
    output.line(&format!("{name} was added to {}", file.display()))?;
    let next = if arguments.project { "hook trust" } else { "hook test" };
    output.tell(&format!("next: ollm {next} {}", ollm_shell::shell_word(&name)));
    Ok(OK)
}

/// The script where the person sees it: in the folder of the hooks, or from where they are.
fn found(path: &Path, folder: &Path, context: &AppContext) -> Result<PathBuf, Failure> {
    let places = [folder.join(path), context.cwd.join(path)];
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| {
        Failure::usage(format!("there is no file {} in {} or here", path.display(), folder.display()))
            .hint("`ollm hook new NAME` writes a hook that works")
    })
}

fn name(arguments: &AddArguments, script: &Path) -> String {
    let stem = || script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    arguments.name.clone().unwrap_or_else(stem)
}

/// What runs a script, with its options; nothing where it runs by itself.
///
/// A script that names its interpreter keeps it, with any ending of its name.
fn interpreter(script: &Path) -> Option<(String, Vec<String>)> {
    let ending = script.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let usual = INTERPRETERS.iter().find(|(known, _)| *known == ending).map(|(_, program)| *program);
    if usual.is_none() && is_executable(script) {
        return None;
    }
    named_interpreter(script).or_else(|| Some((usual?.to_owned(), Vec::new())))
}

/// The interpreter in the first line of a script: `#!/bin/bash -e`, or `#!/usr/bin/env python3`.
fn named_interpreter(script: &Path) -> Option<(String, Vec<String>)> {
    let mut first = Vec::new();
    File::open(script).ok()?.take(LONGEST_FIRST_LINE).read_to_end(&mut first).ok()?;
    let first = first.split(|byte| *byte == b'\n').next()?;
    let shebang = Shebang::read(std::str::from_utf8(first).ok()?)?;
    let is_whole = shebang.interpreter.starts_with('/') && !shebang.program.is_empty();
    is_whole.then(|| shebang.command())
}

#[cfg(unix)]
fn is_executable(script: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    script.metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_script: &Path) -> bool {
    true
}

/// A program that hooks may not name without its path, by its path.
fn found_program(program: String, app: &App, context: &AppContext) -> String {
    if program.contains('/') || app.rules.whitelist.contains(&program) {
        return program;
    }
    let path = context.search_path().and_then(|path| find_program(&program, path));
    path.map_or(program, |path| path.to_string_lossy().into_owned())
}

fn entry(
    arguments: &AddArguments,
    name: &str,
    script: &Path,
    folder: &Path,
    interpreter: Option<(String, Vec<String>)>,
) -> Map<String, Value> {
    let path = script.strip_prefix(folder).map_or_else(|_| script.to_owned(), Path::to_owned);
    let path = path.to_string_lossy().into_owned();
    let (command, mut args) = match interpreter {
        Some((program, options)) => (program, options.into_iter().chain([path]).collect()),
        None if Path::new(&path).is_absolute() => (path, Vec::new()),
        None => (format!("./{path}"), Vec::new()),
    };
    args.extend(arguments.args.iter().cloned());
    let mut entry = Map::from_iter([("name".to_owned(), name.into()), ("command".to_owned(), command.into())]);
    if !args.is_empty() {
        entry.insert("args".to_owned(), args.into());
    }
    let dialect = arguments.dialect.clone().filter(|dialect| by_spelling(&arguments.event).name() != dialect);
    let optional = [
        ("matcher", arguments.matcher.clone()),
        ("if", arguments.condition.clone()),
        ("timeout", arguments.timeout.clone()),
        ("onFailure", arguments.on_failure.clone()),
        ("priority", arguments.priority.clone()),
        ("dialect", dialect),
        ("description", arguments.description.clone()),
    ];
    entry.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.into()))));
    entry
}
