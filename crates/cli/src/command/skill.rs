//! `ollm skill …`: the prompts that extensions bring.

use std::collections::BTreeMap;

use ollm_catalog::{Extension, Positions, Skill};
use ollm_store::escape_for_people;
use serde_json::{Value, json};

use crate::app::App;
use crate::arguments::agent::TaskArguments;
use crate::arguments::ext::{SkillCommand, SkillRun};
use crate::command::hook::columns;
use crate::error::{Failure, Kind, OK};
use crate::output::{Output, ask, one_line};
use crate::problem;
use crate::world::World;

/// A skill and the extension that brings it.
type Shelved<'a> = (&'a Extension, Skill);

pub(super) fn run_command(command: SkillCommand, world: &World, output: &mut Output) -> Result<u8, Failure> {
    world.tell_notices(output);
    let app = App::load(world, Positions::OnDemand)?;
    match command {
        SkillCommand::List { json } => list(&app, json, output),
        SkillCommand::Show { name, json } => show(&name, &app, json, output),
        SkillCommand::Run(arguments) => run(arguments, &app, world, output),
    }
}

/// The skills of all extensions that are on; what is wrong with the others is told.
fn skills<'a>(app: &'a App, output: &mut Output) -> Vec<Shelved<'a>> {
    let mut all = Vec::new();
    for extension in app.extensions.iter().filter(|extension| extension.is_on()) {
        let (skills, problems) = extension.skills();
        all.extend(skills.into_iter().map(|skill| (extension, skill)));
        for problem in &problems {
            output.explain(&problem::render(problem));
        }
    }
    all
}

fn list(app: &App, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let skills = skills(app, output);
    if as_json {
        return output.pretty_json(&skills.iter().map(entry).collect());
    }
    if skills.is_empty() {
        return output.line("There are no skills.");
    }
    let head = ["SKILL", "PLACEHOLDERS", "DESCRIPTION"].map(str::to_owned);
    let body = skills
        .iter()
        .map(|(extension, skill)| [id(extension, skill), skill.placeholders().join(", "), skill.description.clone()]);
    output.text(&columns(&std::iter::once(head).chain(body).collect::<Vec<_>>()))
}

fn show(name: &str, app: &App, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let (extension, skill) = find(name, skills(app, output))?;
    if as_json {
        let mut value = entry(&(extension, skill.clone()));
        value.as_object_mut().map(|map| map.insert("prompt".to_owned(), skill.prompt.clone().into()));
        return output.pretty_json(&value);
    }
    let blanks = skill.placeholders();
    let blanks = if blanks.is_empty() { "nothing".to_owned() } else { blanks.join(", ") };
    let text = format!("{}\n{}\nto fill in: {blanks}\n\n{}\n", id(extension, &skill), skill.description, skill.prompt);
    output.text(&escape_for_people(&text))
}

fn run(arguments: SkillRun, app: &App, world: &World, output: &mut Output) -> Result<u8, Failure> {
    let SkillRun { name, set, json, agent, task } = arguments;
    let (extension, skill) = find(&name, skills(app, output))?;
    let mut values = given(&set, &skill)?;
    for name in skill.placeholders() {
        if !values.contains_key(name)
            && let Some(answer) = ask(&format!("{}: ", one_line(name)))
        {
            values.insert(name.to_owned(), answer);
        }
    }
    let prompt = skill.render(&values).map_err(|missing| {
        let options: Vec<String> = missing.iter().map(|name| format!("--set {name}=…")).collect();
        Failure::new(Kind::Usage, format!("skill `{}` misses {}", skill.name, missing.join(", ")))
            .hint(format!("give a value with {}", options.join(" ")))
    })?;
    if agent {
        let task = TaskArguments { prompt: Some(prompt), agent: task, json, stream_json: false };
        return super::run::run(&task, world, output);
    }
    if json {
        return output.json(&json!({"skill": id(extension, &skill), "prompt": prompt}));
    }
    output.bytes(format!("{prompt}\n").as_bytes(), &[], OK)
}

/// The values of the command line, each for a placeholder that is there.
fn given(set: &[String], skill: &Skill) -> Result<BTreeMap<String, String>, Failure> {
    let known = skill.placeholders();
    let mut values = BTreeMap::new();
    for assignment in set {
        let (name, value) = assignment
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("`--set {assignment}` needs NAME=VALUE")))?;
        if !known.contains(&name) {
            let there =
                if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
            return Err(
                Failure::new(Kind::Usage, format!("skill `{}` has no placeholder `{name}`", skill.name)).hint(there)
            );
        }
        values.insert(name.to_owned(), value.to_owned());
    }
    Ok(values)
}

/// `EXTENSION.SKILL`, or a name that only one extension has.
fn find<'a>(name: &str, skills: Vec<Shelved<'a>>) -> Result<Shelved<'a>, Failure> {
    let mut found: Vec<Shelved<'a>> =
        skills.into_iter().filter(|(extension, skill)| skill.name == name || id(extension, skill) == name).collect();
    if found.len() > 1 {
        let ids: Vec<String> = found.iter().map(|(extension, skill)| id(extension, skill)).collect();
        return Err(Failure::new(Kind::Usage, format!("{} skills are named `{name}`", ids.len()))
            .hint(format!("use one of {}", ids.join(", "))));
    }
    found.pop().ok_or_else(|| {
        Failure::new(Kind::Usage, format!("there is no skill `{name}`"))
            .hint("`ollm skill list` shows the skills of the extensions that are on")
    })
}

fn id(extension: &Extension, skill: &Skill) -> String {
    format!("{}.{}", extension.name, skill.name)
}

fn entry((extension, skill): &Shelved<'_>) -> Value {
    json!({
        "id": id(extension, skill),
        "name": skill.name,
        "extension": extension.name,
        "description": skill.description,
        "placeholders": skill.placeholders(),
        "file": skill.file.clone().unwrap_or_else(|| extension.file()),
    })
}
