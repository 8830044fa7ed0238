//! `ollm hook add`: declares a script or a program as a hook.

use std::path::{Path, PathBuf};

use ollm_app::{App, AppContext};
use ollm_catalog::edit::Owner;
use ollm_catalog::{Form, Positions, edit};
use ollm_protocol::dialect::{by_spelling, event_named};
use ollm_protocol::{Layer, Source};
use serde_json::{Map, Value};

use super::{refuse, unchanged};
use crate::arguments::hook::AddArguments;
use crate::command::hook::new::folder;
use crate::error::{Failure, Kind, OK};
use crate::output::Output;

/// What runs a script, by the end of its name.
const INTERPRETERS: &[(&str, &str)] =
    &[("py", "python3"), ("js", "node"), ("mjs", "node"), ("cjs", "node"), ("sh", "sh"), ("bash", "bash")];

pub(in crate::command::hook) fn run(
    arguments: &AddArguments,
    context: &AppContext,
    output: &mut Output,
) -> Result<u8, Failure> {
    refuse(context)?;
    event_named(&arguments.event)?;
    let app = App::load(context, Positions::OnDemand)?;
    let folder = folder(arguments.project, context)?;
    let script = found(&arguments.path, &folder, context)?;
    let name = name(arguments, &script);
    let layer = if arguments.project { Layer::Workspace } else { Layer::User };
    if let Some(taken) = app.hooks().iter().find(|hook| hook.spec.name == name && hook.spec.layer == layer) {
        let message = format!("there is a hook `{name}` already, in {}", taken.spec.origin.file.display());
        return Err(Failure::new(Kind::Usage, message).hint("give this one another name with --name"));
    }
    let file = folder.join(arguments.file.clone().unwrap_or_else(|| format!("{name}.json")));
    let entry = entry(arguments, &name, &script, &folder);
    let source = if arguments.project { Source::Workspace } else { Source::User };
    edit::append(&file, Form::Events, &arguments.event, &entry, Owner { source, layer, rules: &app.rules })
        .map_err(|error| unchanged(&file, &error))?;
    output.line(&format!("{name} stands in {}", file.display()))?;
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

fn entry(arguments: &AddArguments, name: &str, script: &Path, folder: &Path) -> Map<String, Value> {
    let path = script.strip_prefix(folder).map_or_else(|_| script.to_owned(), Path::to_owned);
    let path = path.to_string_lossy().into_owned();
    let ending = script.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let interpreter = INTERPRETERS.iter().find(|(known, _)| *known == ending).map(|(_, program)| *program);
    let (command, mut args) = match interpreter {
        Some(program) => (program.to_owned(), vec![path]),
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
