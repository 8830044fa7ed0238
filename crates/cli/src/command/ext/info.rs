//! `ollm ext info`: everything about one extension.

use ollm_app::extension_review::brings;
use ollm_app::install::{installed_as, pins};
use ollm_app::{App, AppContext};
use ollm_catalog::{Extension, Problem, SettingValue, State};
use ollm_store::escape_for_people;
use serde_json::{Value, json};

use super::{Approved, approved, list, named};
use crate::command::config::problem_entry;
use crate::error::{Failure, OK};
use crate::output::Output;
use crate::problem;
use crate::table;

pub(super) fn run(name: &str, context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let app = App::load_as_is(context)?;
    app.problems_around_extensions(context).for_each(|problem| output.tell(&problem.to_string()));
    let extension = named(name, &app)?;
    let state = approved(extension, &app);
    let (_, of_skills) = extension.skills();
    let own = app.problems.iter().filter(|problem| problem.file.starts_with(&extension.root));
    let problems: Vec<&Problem> = own.chain(&of_skills).collect();
    if as_json {
        return output.pretty_json(&details(extension, &state, &problems, context));
    }
    output.text(&escape_for_people(&text(extension, &state, context)))?;
    for problem in problems {
        output.explain(&problem::render(problem));
    }
    if extension.is_broken() {
        app.going_on(context).iter().for_each(|text| output.tell(text));
    }
    Ok(OK)
}

fn details(extension: &Extension, state: &Approved, problems: &[&Problem], context: &AppContext) -> Value {
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
        "problems": problems.iter().map(|problem| problem_entry(problem)).collect::<Vec<_>>(),
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
        "off": match &extension.state { State::Off(why) => Some(why), _ => None },
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

pub(super) fn text(extension: &Extension, state: &Approved, context: &AppContext) -> String {
    let standing = match &extension.state {
        State::On if state.exposed => "unsafe".to_owned(),
        State::On => "on".to_owned(),
        State::Off(why) | State::Failed(why) => why.clone(),
    };
    let mut rows = brings(extension);
    rows.extend(installation(extension, context));
    rows.push(("state", standing));
    rows.push(("trust", state.trust.to_owned()));
    rows.extend(state.digest.clone().map(|digest| ("digest", digest)));
    rows.extend(state.problem.clone().map(|why| ("problem", why)));
    rows.extend(extension.values.iter().map(|one| ("value", value(one, context))));
    table::pairs(&rows)
}

/// Where it was installed from, and what it is held to.
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
