//! `ollm ext list`: every extension there is, also those that cannot be loaded.

use ollm_catalog::{Extension, Index, Problem, State};
use serde_json::{Value, json};

use super::{Approved, approved, scope};
use crate::app::App;
use crate::command::hook::columns;
use crate::error::{Failure, OK};
use crate::output::{Output, shown};
use crate::problem;
use crate::world::World;

pub(super) fn run(world: &World, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let app = App::load_as_is(world)?;
    let rows: Vec<(&Extension, Approved)> = app.extensions.iter().map(|one| (one, approved(one, &app))).collect();
    app.engine.trust.remember();
    Index::load(&world.extension_names()).remember(&app.extensions);
    if let Some(off) = app.extensions_off() {
        output.tell(&off);
    }
    let of_skills: Vec<Problem> = rows.iter().flat_map(|(extension, _)| extension.skills().1).collect();
    let going_on = app.going_on(world);
    if as_json {
        for text in &going_on {
            output.tell(text);
        }
        let told = app.problems_around_extensions(world).chain(&of_skills);
        told.for_each(|problem| output.tell(&problem.to_string()));
        return output.pretty_json(&rows.iter().map(|(one, state)| entry(one, state)).collect());
    }
    // Who switched all of them off knows that there are none.
    if !rows.is_empty() || app.extensions_off().is_none() {
        output.text(&table(&rows))?;
    }
    let of_one = |problem: &&Problem| rows.iter().any(|(extension, _)| problem.file.starts_with(&extension.root));
    let of_manifests = app.problems.iter().filter(of_one);
    for problem in app.problems_around_extensions(world).chain(of_manifests).chain(&of_skills) {
        output.explain(&problem::render(problem));
    }
    for (extension, why) in rows.iter().filter_map(|(one, state)| Some((one, state.problem.as_ref()?))) {
        output.tell(&format!("extension `{}`: {why}", extension.name));
    }
    for text in &going_on {
        output.tell(text);
    }
    Ok(OK)
}

/// One extension as a program reads it.
pub(super) fn entry(extension: &Extension, state: &Approved) -> Value {
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
        "error": extension.error().or(state.problem.as_deref()),
    })
}

fn table(rows: &[(&Extension, Approved)]) -> String {
    if rows.is_empty() {
        return "There are no extensions. `ollm ext new NAME` writes one to begin with.\n".to_owned();
    }
    let head = ["NAME", "VERSION", "SCOPE", "STATE", "TRUST", "BRINGS"].map(str::to_owned);
    let body = rows.iter().map(|(extension, state)| {
        let text = |text: &str| if text.is_empty() { "?".to_owned() } else { text.to_owned() };
        [
            extension.name.clone(),
            text(&extension.manifest.version),
            scope(extension).to_owned(),
            standing(extension, state).to_owned(),
            state.trust.to_owned(),
            brings(extension),
        ]
    });
    columns(&std::iter::once(head).chain(body).collect::<Vec<_>>())
}

fn standing(extension: &Extension, state: &Approved) -> &'static str {
    match &extension.state {
        State::On if state.exposed => "unsafe",
        State::On => "on",
        State::Off(_) => "off",
        State::Failed(_) => "failed",
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
    some.map(|(what, count)| format!("{count} {what}{}", if *count == 1 { "" } else { "s" }))
        .collect::<Vec<_>>()
        .join(", ")
}
