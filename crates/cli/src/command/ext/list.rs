//! `ollm ext list`: every extension there is, also those that cannot be loaded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ollm_app::{App, AppContext};
use ollm_catalog::{Extension, ExtensionState, Index, Problem, SettingValue, validate_extension};
use ollm_protocol::Layer;
use ollm_protocol::units::counted;
use serde_json::{Value, json};

use super::{ExtensionApproval, approved, scope};
use crate::error::{Failure, OK};
use crate::output::{Output, shown};
use crate::table;

pub(super) fn run(context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let app = App::load_as_is(context)?;
    let strays = strays(&app, context);
    let all = app.extensions.iter().chain(strays.iter().map(|(stray, _)| stray));
    let rows: Vec<(&Extension, ExtensionApproval)> = all.map(|one| (one, approved(one, &app))).collect();
    app.engine.trust.remember();
    Index::load(&context.extension_names()).remember(&app.extensions);
    if let Some(off) = app.extensions_off() {
        output.tell(&off);
    }
    let of_skills: Vec<Problem> = app.extensions.iter().flat_map(|extension| extension.skills().1).collect();
    let going_on = app.going_on(context);
    if as_json {
        for text in &going_on {
            output.tell(text);
        }
        let told = app.problems_around_extensions(context).chain(&of_skills);
        told.for_each(|problem| output.tell(&problem.to_string()));
        return output.pretty_json(&rows.iter().map(|(one, state)| entry(one, state)).collect());
    }
    // A person who switched all of them off knows that there are none.
    if !rows.is_empty() || app.extensions_off().is_none() {
        output.text(&table(&rows))?;
    }
    let of_one = |problem: &&Problem| rows.iter().any(|(extension, _)| problem.file.starts_with(&extension.root));
    let of_manifests = app.problems.iter().filter(of_one);
    let of_strays = strays.iter().flat_map(|(_, problems)| problems);
    for problem in app.problems_around_extensions(context).chain(of_manifests).chain(&of_skills).chain(of_strays) {
        output.problem(problem);
    }
    for (extension, why) in rows.iter().filter_map(|(one, state)| Some((one, state.problem.as_ref()?))) {
        output.tell(&format!("extension `{}`: {why}", extension.name));
    }
    for text in &going_on {
        output.tell(text);
    }
    Ok(OK)
}

/// An extension as `--json` prints it, everything about it for people, and what can be set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExtensionOverview {
    pub(crate) entry: Value,
    pub(crate) text: String,
    pub(crate) settings: Vec<SettingOverview>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingOverview {
    pub(crate) name: String,
    pub(crate) description: String,
    /// As it may be shown; empty where it is not set.
    pub(crate) value: String,
    pub(crate) is_sensitive: bool,
}

/// All extensions, and how many problems there are with them.
pub(crate) fn overview(app: &App, context: &AppContext) -> (Vec<ExtensionOverview>, usize) {
    let strays = strays(app, context);
    let one = |extension: &Extension| {
        let state = approved(extension, app);
        ExtensionOverview {
            entry: entry(extension, &state),
            text: super::info::text(extension, &state, context),
            settings: extension.values.iter().map(setting).collect(),
        }
    };
    let all = app.extensions.iter().chain(strays.iter().map(|(stray, _)| stray)).map(one).collect();
    app.engine.trust.remember();
    (all, app.problems_around_extensions(context).count())
}

/// The value of a setting as a program reads it; none of a secret.
fn shown_value(one: &SettingValue) -> Option<Value> {
    one.shown().filter(|_| !one.spec.sensitive)
}

fn setting(one: &SettingValue) -> SettingOverview {
    let value = one.shown().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    SettingOverview {
        name: one.spec.name.clone(),
        description: one.spec.description.clone(),
        value: value.unwrap_or_default(),
        is_sensitive: one.spec.sensitive,
    }
}

/// Folders beside the extensions that have something in them, but no manifest: it was forgotten or lost.
pub(super) fn strays(app: &App, context: &AppContext) -> Vec<(Extension, Vec<Problem>)> {
    if app.extensions_off().is_some() {
        return Vec::new();
    }
    let is_known = |path: &Path| {
        let real = path.canonicalize().ok();
        app.extensions.iter().any(|one| one.root == path || Some(&one.root) == real.as_ref())
    };
    let is_bare = |path: &Path| path.join("manifest.json").symlink_metadata().is_err();
    let is_hidden = |path: &Path| path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    let inside = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_full = |path: &Path| inside(path).any(|path| path.is_file() || inside(&path).next().is_some());
    let entries = app.directories.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| is_bare(path) && !is_hidden(path) && is_full(path) && !is_known(path));
    paths.sort();
    paths.dedup();
    let in_project = |path: &Path| context.places.project.as_ref().is_some_and(|project| path.starts_with(project));
    let stray = |path: PathBuf| {
        let (mut stray, problems) = validate_extension(&path, &app.rules);
        let is_users = path.starts_with(&context.places.home) || !in_project(&path);
        stray.layer = if is_users { Layer::User } else { Layer::Workspace };
        (stray, problems)
    };
    paths.into_iter().map(stray).collect()
}

/// One extension as a program reads it.
pub(super) fn entry(extension: &Extension, state: &ExtensionApproval) -> Value {
    let manifest = &extension.manifest;
    let (skills, _) = extension.skills();
    let readable = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "name": extension.name,
        "version": readable(&manifest.version),
        "description": readable(&manifest.description),
        "enabled": extension.is_on(),
        "trust": state.trust,
        "digest": state.digest,
        "source": extension.source().name(),
        "scope": scope(extension),
        "path": shown(&extension.root),
        "hooks": extension.hooks.iter().map(|hook| &hook.spec.name).collect::<Vec<_>>(),
        "mcpServers": manifest.servers.keys().collect::<Vec<_>>(),
        "skills": skills.iter().map(|skill| &skill.name).collect::<Vec<_>>(),
        "settings": manifest.settings.iter().map(|setting| &setting.name).collect::<Vec<_>>(),
        "settingValues": extension.values.iter().filter_map(|one| Some((&one.spec.name, shown_value(one)?))).collect::<BTreeMap<_, _>>(),
        "error": extension.error().or(state.problem.as_deref()),
    })
}

fn table(rows: &[(&Extension, ExtensionApproval)]) -> String {
    if rows.is_empty() {
        return "There are no extensions. `ollm ext new NAME` writes one to begin with.\n".to_owned();
    }
    let head = ["NAME", "STATE", "TRUST", "VERSION", "SCOPE", "BRINGS"];
    let body = rows.iter().map(|(extension, state)| {
        let text = |text: &str| if text.is_empty() { "?".to_owned() } else { text.to_owned() };
        [
            extension.name.clone(),
            standing(extension, state).to_owned(),
            state.trust.to_owned(),
            text(&extension.manifest.version),
            scope(extension).to_owned(),
            brings(extension),
        ]
    });
    table::table(head, body)
}

fn standing(extension: &Extension, state: &ExtensionApproval) -> &'static str {
    match &extension.state {
        ExtensionState::On if state.exposed => "unsafe",
        ExtensionState::On => "on",
        ExtensionState::Off(_) => "off",
        ExtensionState::Failed(_) => "failed",
    }
}

fn brings(extension: &Extension) -> String {
    let manifest = &extension.manifest;
    let counts = [
        ("hook", extension.hooks.len()),
        ("server", manifest.servers.len()),
        ("skill", extension.skills().0.len()),
        ("setting", manifest.settings.len()),
    ];
    let some = counts.iter().filter(|(_, count)| *count > 0);
    some.map(|(what, count)| counted(*count, what)).collect::<Vec<_>>().join(", ")
}
