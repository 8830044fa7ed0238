//! `ollm config show`: every setting, who says so, and what was ignored and why.

use ollm_catalog::{Config, Ignored, Origin, Problem, Setting};
use serde_json::{Value, json};

use super::{applying, discreet, entry, is_fatal, load, origin, plain, problem_entry};
use crate::command::hook::columns;
use crate::error::{Failure, Kind, OK};
use crate::output::{Output, one_line};
use crate::problem;
use crate::world::World;

pub(super) fn run(world: &World, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let (mut config, mut problems) = load(world);
    let settings = applying(&mut config, world, &mut problems);
    let code = if is_fatal(&problems) { Kind::Configuration as u8 } else { OK };
    if as_json {
        output.pretty_json(&details(&config, &settings, &problems))?;
        return Ok(code);
    }
    output.text(&table(&config, &settings, world))?;
    for problem in problems.iter().filter(|problem| !is_listed(problem, &config)) {
        output.explain(&problem::render(problem));
    }
    Ok(code)
}

fn details(config: &Config, settings: &[Setting], problems: &[Problem]) -> Value {
    let shown = |setting: &Setting| entry(setting, &discreet(setting));
    json!({
        "settings": settings.iter().map(shown).collect::<Vec<_>>(),
        "projectHooks": config.own().iter().map(shown).collect::<Vec<_>>(),
        "ignored": config.ignored.iter().map(without_effect).collect::<Vec<_>>(),
        "problems": problems.iter().map(problem_entry).collect::<Vec<_>>(),
    })
}

fn without_effect(ignored: &Ignored) -> Value {
    let mut value = entry(&ignored.setting, &discreet(&ignored.setting));
    if let Some(map) = value.as_object_mut() {
        map.insert("why".to_owned(), json!(ignored.why));
    }
    value
}

fn table(config: &Config, settings: &[Setting], world: &World) -> String {
    let row = |setting: &Setting| [setting.path.clone(), shown(setting), origin(setting, world)];
    let own = |setting: &Setting| {
        let [path, value, from] = row(setting);
        [path, value, format!("{from}, for the project's own hooks")]
    };
    let head = ["KEY", "VALUE", "FROM"].map(str::to_owned);
    let rows = std::iter::once(head).chain(settings.iter().map(row)).chain(config.own().iter().map(own));
    let mut text = columns(&rows.collect::<Vec<_>>());
    if !config.ignored.is_empty() {
        let rows: Vec<[String; 4]> = config
            .ignored
            .iter()
            .map(|ignored| {
                let [path, value, from] = row(&ignored.setting);
                [path, value, from, one_line(&ignored.why)]
            })
            .collect();
        text.push_str("\nIgnored:\n");
        text.push_str(&columns(&rows));
    }
    text
}

fn shown(setting: &Setting) -> String {
    if setting.value.is_null() { "(not set)".to_owned() } else { plain(&discreet(setting)) }
}

/// Whether a problem is about a value that the list of what was ignored names.
fn is_listed(problem: &Problem, config: &Config) -> bool {
    config.ignored.iter().any(|ignored| match &ignored.setting.origin {
        Origin::File { file, line, column, .. } => {
            (file, *line, *column) == (&problem.file, problem.line, problem.column)
        }
        _ => false,
    })
}
