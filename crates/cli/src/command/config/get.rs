//! `ollm config get`: prints the value of one setting, or of all in a section.

use ollm_app::{AppContext, AppError};
use ollm_catalog::{Config, KEYS, Key, Problem, Setting, find_key};
use ollm_store::escape_for_people;
use serde_json::{Value, json};

use super::{OF_EXTENSIONS, applying, discreet, entry, load_migrated, plain, refused};
use crate::error::Failure;
use crate::output::Output;

pub(super) fn run(key: &str, context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let (mut config, mut problems) = load_migrated(context, output);
    if let Some(fatal) = problems.iter().find(|problem| problem.severity == ollm_catalog::Severity::Fatal) {
        return Err(AppError::from(fatal).hint("correct the value or remove it").into());
    }
    let (settings, _) = applying(&mut config, context, &mut problems);
    for problem in problems.iter().filter(|problem| concerns(problem, key)) {
        output.problem(problem);
    }
    let below = section(&settings, key);
    if !below.is_empty() {
        return section_of(&below, as_json, output);
    }
    // An extension explains the settings it declares, and hides its secrets.
    let declared = settings.iter().find(|setting| setting.path == key && key.starts_with(OF_EXTENSIONS));
    let found = match declared {
        Some(setting) => entry(setting, &setting.value),
        None => find(&config, &settings, key)?,
    };
    if as_json {
        return output.pretty_json(&found);
    }
    output.data(&escape_for_people(&plain(found.get("value").unwrap_or(&Value::Null))))
}

/// Whether a problem concerns this setting, one below it, or a variable that sets it.
fn concerns(problem: &Problem, key: &str) -> bool {
    let set_by = |known: &Key| {
        let names = known.variable.into_iter().chain(known.older_variable.map(|(name, _)| name));
        names.into_iter().any(|name| problem.field == name)
    };
    let is_at = |path: &str| path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    is_at(&problem.field) || KEYS.iter().any(|known| is_at(known.path) && set_by(known))
}

/// The settings of a section.
fn section(settings: &[Setting], key: &str) -> Vec<Setting> {
    let prefix = format!("{key}.");
    settings.iter().filter(|setting| setting.path.starts_with(&prefix)).cloned().collect()
}

fn section_of(settings: &[Setting], as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    if as_json {
        return output.pretty_json(&settings.iter().map(|setting| entry(setting, &discreet(setting))).collect());
    }
    let lines = settings.iter().map(|setting| format!("{} = {}", setting.path, plain(&discreet(setting))));
    output.data(&escape_for_people(&lines.collect::<Vec<_>>().join("\n")))
}

/// One setting, or a part of a setting that is a map.
fn find(config: &Config, settings: &[Setting], key: &str) -> Result<Value, Failure> {
    if let Some(setting) = config.get(key) {
        return Ok(entry(&setting, &setting.value));
    }
    let above = settings.iter().find_map(|setting| {
        let rest = key.strip_prefix(&setting.path)?.strip_prefix('.')?;
        let part = rest.split('.').try_fold(&setting.value, |value, name| value.get(name))?.clone();
        Some(entry(&Setting { path: key.to_owned(), ..setting.clone() }, &part))
    });
    if let Some(found) = above {
        return Ok(found);
    }
    match find_key(key) {
        Ok(_) => Ok(json!({"key": key, "value": null, "layer": "default"})),
        Err(near) => Err(refused(ollm_catalog::EditError::Unknown { path: key.to_owned(), near })),
    }
}
