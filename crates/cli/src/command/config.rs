//! `ollm config …`.

use std::path::Path;

use ollm_app::{AppContext, migrate_on_load};
use ollm_catalog::{
    Config, EditError, Extension, Extensions, Origin, Problem, Setting, Severity, configuration, mistyped_variables,
};
use ollm_protocol::{Code, Layer};
use ollm_store::{Redactor, Switches, looks_secret};
use serde_json::{Value, json};

use crate::arguments::config::ConfigCommand;
use crate::error::Failure;
use crate::output::{Output, shown};
use crate::remedy::COMMANDS;

/// The prefix of the settings of extensions.
const OF_EXTENSIONS: &str = "extensions.settings.";

mod get;
mod key;
mod migrate;
mod path;
mod set;
mod show;
mod validate;

pub(super) fn run_command(command: ConfigCommand, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    context.tell_notices(output);
    match command {
        ConfigCommand::Show { section, json } => show::run(section.as_deref(), context, json, output),
        ConfigCommand::Get { key, json } => get::run(&key, context, json, output),
        ConfigCommand::Set { key, value, project } => set::set(&key, value.as_deref(), layer(project), context, output),
        ConfigCommand::Unset { key, project } => set::unset(&key, layer(project), context, output),
        ConfigCommand::Validate { json } => validate::run(context, json, output),
        ConfigCommand::Migrate { project, json } => migrate::run(layer(project), context, json, output),
        ConfigCommand::Path { json } => path::run(context, json, output),
    }
}

fn layer(project: bool) -> Layer {
    if project { Layer::Workspace } else { Layer::User }
}

/// The configuration with the place of every value.
fn load(context: &AppContext) -> (Config, Vec<Problem>) {
    let (config, mut problems) = configuration(&context.places, &|name| context.variable(name), &context.overrides);
    problems.extend(mistyped_variables(context.variables.iter().filter_map(|(name, _)| name.to_str())));
    (config, problems)
}

/// Like [`load`], once older names in the user's file have been replaced.
fn load_migrated(context: &AppContext, output: &mut Output) -> (Config, Vec<Problem>) {
    let (config, mut problems) = load(context);
    match migrate_on_load(&mut problems, context) {
        Some(migrated) => {
            output.tell(&migrated);
            load(context)
        }
        None => (config, problems),
    }
}

/// Replaces the settings of extensions by the values that the extensions make of them. Returns the settings of
/// extensions that are not on.
fn applying(config: &mut Config, context: &AppContext, problems: &mut Vec<Problem>) -> (Vec<Setting>, Vec<String>) {
    let (switches, _) = Switches::load(&context.switches());
    let extensions = ollm_app::extensions(context, config, &switches, problems);
    let idle = extensions.iter().filter(|extension| !extension.is_on());
    let idle = idle.flat_map(|one| one.values.iter().map(|value| setting_path(&one.name, &value.spec.name))).collect();
    let mut own = extensions.settings();
    let mut settings = config.settings();
    for setting in &mut settings {
        match own.iter().position(|own| own.path == setting.path) {
            Some(at) => *setting = own.swap_remove(at),
            None => hide_unknown(setting, &extensions),
        }
    }
    config.ignored.iter_mut().for_each(|ignored| hide_unknown(&mut ignored.setting, &extensions));
    let behind = settings.iter().rposition(|setting| setting.path.starts_with("extensions.")).map_or(0, |at| at + 1);
    own.sort_by(|one, other| one.path.cmp(&other.path));
    settings.splice(behind..behind, own);
    settings.extend(ollm_app::model::key::setting(config, context));
    (settings, idle)
}

fn setting_path(extension: &str, setting: &str) -> String {
    format!("{OF_EXTENSIONS}{extension}.{setting}")
}

/// Hides a setting of an extension, unless its readable manifest says that it is no secret.
fn hide_unknown(setting: &mut Setting, extensions: &Extensions) {
    let Some((extension, name)) = setting.path.strip_prefix(OF_EXTENSIONS).and_then(|rest| rest.split_once('.')) else {
        return;
    };
    let mut known = extensions.iter().filter(|known| known.name == extension).peekable();
    let is_plain = |known: &Extension| !known.is_broken() && known.setting(name).is_some_and(|spec| !spec.sensitive);
    if known.peek().is_none() || !known.all(is_plain) {
        setting.value = json!("(hidden)");
    }
}

fn is_fatal(problems: &[Problem]) -> bool {
    problems.iter().any(|problem| problem.severity == Severity::Fatal)
}

/// A setting as JSON.
fn entry(setting: &Setting, value: &Value) -> Value {
    let mut entry = json!({"key": setting.path, "value": value, "layer": setting.origin.layer()});
    let Some(map) = entry.as_object_mut() else { return entry };
    match &setting.origin {
        Origin::Policy { file, line, column } | Origin::File { file, line, column, .. } => {
            map.insert("file".to_owned(), json!(shown(file)));
            map.insert("line".to_owned(), json!(line));
            map.insert("column".to_owned(), json!(column));
        }
        Origin::Variable(name) => {
            map.insert("variable".to_owned(), json!(name));
        }
        Origin::Default | Origin::Keyring | Origin::Flag => {}
    }
    entry
}

/// A problem as JSON.
pub(crate) fn problem_entry(problem: &Problem) -> Value {
    json!({
        "code": problem.code.id(),
        "severity": problem.severity.name(),
        "file": shown(&problem.file),
        "line": problem.line,
        "column": problem.column,
        "field": problem.field,
        "value": problem.value,
        "message": problem.message,
        "help": problem.way_out(COMMANDS),
        "snippet": problem.snippet.as_ref().map(|snippet| &snippet.text),
    })
}

/// The value without possible secrets. Names show secrets in people's own values, and known token forms show them
/// anywhere.
fn discreet(setting: &Setting) -> Value {
    let name = setting.path.rsplit('.').next().unwrap_or_default();
    if setting.key.is_open() { hidden(name, &setting.value) } else { setting.value.clone() }
}

fn hidden(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), hidden(name, value))).collect(),
        Value::Array(items) => items.iter().map(|item| hidden(name, item)).collect(),
        Value::String(_) | Value::Number(_) if looks_secret(name) => json!("(hidden)"),
        Value::String(text) => json!(Redactor::new(Vec::<(&str, &str)>::new()).redact_str(text)),
        other => other.clone(),
    }
}

/// A value on one line: text without quotes, everything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn origin(setting: &Setting, context: &AppContext) -> String {
    setting.origin.shown(context.places.user_home.as_deref())
}

/// A file's path for people, with `~` for the home.
fn short(file: &Path, context: &AppContext) -> String {
    let below = context.places.user_home.as_ref().and_then(|home| file.strip_prefix(home).ok());
    below.map_or_else(|| file.display().to_string(), |below| format!("~/{}", below.display()))
}

/// The failure for a refused change, with the remedy.
pub(crate) fn refused(error: EditError) -> Failure {
    let message = error.to_string();
    match error {
        EditError::Unknown { near: Some(near), .. } => {
            Failure::new(Code::UnknownSetting, message).hint(format!("did you mean `{near}`?"))
        }
        EditError::Unknown { .. } => {
            Failure::new(Code::UnknownSetting, message).hint("`ollm config show` lists the settings there are")
        }
        EditError::Ignored { .. } => {
            Failure::new(Code::InvalidValue, message).hint("without --project it is set for you, in all projects")
        }
        EditError::Value { .. } | EditError::NoProject | EditError::Worse { .. } | EditError::Held { .. } => {
            Failure::new(Code::InvalidValue, message)
        }
        EditError::Problem(problem) => {
            let failure = Failure::new(problem.code, format!("nothing was changed: {message}"));
            match problem.way_out(COMMANDS) {
                Some(_) => failure,
                None => failure.hint("correct the file, then try again"),
            }
        }
        EditError::Older { .. } => {
            Failure::new(Code::OlderName, message).hint("`ollm config migrate` writes today's name")
        }
        EditError::ByHand { way, .. } => Failure::new(Code::WrongForm, message).hint(way),
        _ => Failure::new(Code::NotWritten, message),
    }
}
