//! `ollm ext info`: everything about one extension.

use ollm_app::extension_review::brings;
use ollm_app::install::{installed_as, pins};
use ollm_app::{App, AppContext};
use ollm_catalog::{Extension, ExtensionState, Problem, SettingValue, is_package, validate_extension};
use ollm_store::escape_for_people;
use serde_json::{Value, json};

use super::{ExtensionApproval, approved, list, named};
use crate::command::config::problem_entry;
use crate::error::{Failure, OK};
use crate::output::Output;
use crate::table;

pub(super) fn run(name: &str, context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let app = App::load_as_is(context)?;
    app.problems_around_extensions(context).for_each(|problem| output.tell(&problem.to_string()));
    let folder = folder(name, context, &app);
    let extension = match &folder {
        Some((extension, _)) => extension,
        None => loaded(name, context, &app)?,
    };
    let problems = folder.as_ref().map_or_else(|| problems_of(extension, &app), |(_, problems)| problems.clone());
    let state = approved(extension, &app);
    if as_json {
        return output.pretty_json(&details(extension, &state, &problems, context));
    }
    output.text(&escape_for_people(&text(extension, &state, context)))?;
    for problem in &problems {
        output.problem(problem);
    }
    if extension.is_broken() {
        app.going_on(context).iter().for_each(|text| output.tell(text));
    }
    Ok(OK)
}

/// The extension that is loaded, by its name or its folder.
fn loaded<'a>(target: &str, context: &AppContext, app: &'a App) -> Result<&'a Extension, Failure> {
    let root = context.cwd.join(target).canonicalize().ok();
    let by_folder = app.extensions.iter().find(|one| root.as_ref() == Some(&one.root));
    app.extensions.get(target).or(by_folder).map_or_else(|| named(target, app), Ok)
}

fn problems_of(extension: &Extension, app: &App) -> Vec<Problem> {
    let own = app.problems.iter().filter(|problem| problem.file.starts_with(&extension.root)).cloned();
    own.chain(extension.skills().1).collect()
}

/// The extension in a folder that nothing is loaded from: one to be installed, or a package of another agent.
fn folder(target: &str, context: &AppContext, app: &App) -> Option<(Extension, Vec<Problem>)> {
    let path = context.cwd.join(target).canonicalize().ok().filter(|path| is_package(path))?;
    if app.extensions.iter().any(|one| one.name == target || one.root == path) {
        return None;
    }
    let (mut extension, problems) = validate_extension(&path, &app.rules);
    if extension.state == ExtensionState::On {
        extension.state = ExtensionState::Off("it is not installed".to_owned());
    }
    Some((extension, problems))
}

fn details(extension: &Extension, state: &ExtensionApproval, problems: &[Problem], context: &AppContext) -> Value {
    let manifest = &extension.manifest;
    let mut value = list::entry(extension, state);
    let dependencies: Value = manifest.dependencies.iter().map(|one| (one.name.clone(), json!(one.range))).collect();
    let hooks: Vec<Value> = extension
        .hooks
        .iter()
        .map(|hook| {
            json!({
                "id": hook.id(),
                "name": hook.spec.name,
                "events": hook.events.iter().map(|kind| kind.name()).collect::<Vec<_>>(),
                "command": ollm_trust::command_text(hook),
            })
        })
        .collect();
    let (skills, _) = extension.skills();
    let more = json!({
        "author": manifest.author,
        "license": manifest.license,
        "repository": manifest.repository,
        "homepage": manifest.homepage,
        "keywords": manifest.keywords,
        "dependencies": dependencies,
        "permissions": manifest.permissions.lines(),
        "hookDetails": hooks,
        "skillDetails": skills.iter().map(|one| json!({
            "name": one.name, "description": one.description, "placeholders": one.placeholders(),
        })).collect::<Vec<_>>(),
        "settingDetails": extension.values.iter().map(|one| setting(one, context)).collect::<Vec<_>>(),
        "form": extension.form,
        "problems": problems.iter().map(problem_entry).collect::<Vec<_>>(),
        "installed": installed_as(&extension.name, context).filter(|one| one.folder == extension.root).map(|one| json!({
            "source": one.record.source.to_string(),
            "index": one.record.index,
            "commit": one.record.commit,
            "checksum": one.record.checksum.map(|digest| digest.to_string()),
            "signedBy": one.record.signed_by,
            "form": one.record.form,
            "notLoaded": one.record.left,
            "pinned": pins(context).unwrap_or_default().remove(&extension.name),
        })),
        "off": match &extension.state { ExtensionState::Off(why) => Some(why), _ => None },
    });
    if let (Some(map), Value::Object(more)) = (value.as_object_mut(), more) {
        map.extend(more);
    }
    value
}

fn setting(one: &SettingValue, context: &AppContext) -> Value {
    json!({
        "name": one.spec.name,
        "description": one.spec.description,
        "type": one.spec.kind.name(),
        "envVar": one.spec.env_var,
        "required": one.spec.required,
        "sensitive": one.spec.sensitive,
        "value": one.shown(),
        "from": one.origin.shown(context.places.user_home.as_deref()),
    })
}

pub(super) fn text(extension: &Extension, state: &ExtensionApproval, context: &AppContext) -> String {
    let standing = match &extension.state {
        ExtensionState::On if state.exposed => "unsafe".to_owned(),
        ExtensionState::On => "on".to_owned(),
        ExtensionState::Off(why) | ExtensionState::Failed(why) => why.clone(),
    };
    let mut rows = brings(extension);
    rows.extend(extension.form.map(|form| ("form", format!("a {form}"))));
    rows.extend(installation(extension, context));
    rows.push(("state", standing));
    rows.push(("trust", state.trust.to_owned()));
    rows.extend(state.digest.clone().map(|digest| ("digest", digest)));
    rows.extend(state.problem.clone().map(|why| ("problem", why)));
    rows.extend(extension.values.iter().map(|one| ("value", value(one, context))));
    table::pairs(&rows)
}

/// The source of its installation, and its pin.
fn installation(extension: &Extension, context: &AppContext) -> Vec<(&'static str, String)> {
    let Some(one) = installed_as(&extension.name, context).filter(|one| one.folder == extension.root) else {
        return Vec::new();
    };
    let mut rows = vec![("source", one.record.source.to_string())];
    rows.extend(one.record.index.map(|index| ("index", index)));
    rows.extend(one.record.commit.map(|commit| ("commit", commit)));
    rows.extend(one.record.signed_by.map(|key| ("signed by", key)));
    rows.extend(one.record.form.map(|form| ("form", form)));
    rows.extend(one.record.left.into_iter().map(|left| ("not loaded", left)));
    let pinned = pins(context).map(|mut pins| pins.remove(&extension.name));
    rows.extend(
        pinned.unwrap_or_else(|error| Some(format!("not known: {}", error.message))).map(|pin| ("pinned", pin)),
    );
    rows
}

fn value(one: &SettingValue, context: &AppContext) -> String {
    let shown = one.shown().map_or_else(|| "(not set)".to_owned(), |value| value.to_string());
    format!("{} = {shown} ({})", one.spec.name, one.origin.shown(context.places.user_home.as_deref()))
}
