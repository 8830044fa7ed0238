//! `ollm skill …`: shows and runs the prompts that extensions bring.
//!
//! A person may read any of them. A model gets only approved skills, in their approved state, because it obeys every
//! text in a prompt.

use std::collections::BTreeMap;

use ollm_app::{App, AppContext, refuse_agents};
use ollm_catalog::{Extension, Skill, validate_extension};
use ollm_protocol::Code;
use ollm_shell::shell_word;
use ollm_store::{escape_for_people, one_line};
use ollm_trust::Standing;
use serde_json::{Value, json};

use crate::arguments::agent::TaskArguments;
use crate::arguments::ext::{SkillArguments, SkillCommand};
use crate::ask::Asker;
use crate::command::ext::word;
use crate::error::Failure;
use crate::output::{Output, shown};
use crate::table::table;

/// A skill and the extension that brings it.
type InstalledSkill<'a> = (&'a Extension, Skill);

pub(super) fn run_command(command: SkillCommand, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    context.tell_notices(output);
    let app = App::load(context)?;
    // If a skill runs, the agent loads everything again and reports the problems.
    if !matches!(&command, SkillCommand::Run(arguments) if arguments.hand_over) {
        app.problems_around_extensions(context).for_each(|problem| output.tell(&problem.to_string()));
    }
    match command {
        SkillCommand::List { json } => list(&app, json, output),
        SkillCommand::Show { name, json } => show(&name, &app, json, context, output),
        SkillCommand::Run(arguments) => run(arguments, &app, context, output),
    }
}

/// The skills of all extensions that are on; problems with the others are reported.
fn skills<'a>(app: &'a App, output: &mut Output) -> Vec<InstalledSkill<'a>> {
    let mut all = Vec::new();
    for extension in app.extensions.iter().filter(|extension| extension.is_on()) {
        let (skills, problems) = extension.skills();
        all.extend(skills.into_iter().map(|skill| (extension, skill)));
        for problem in &problems {
            output.problem(problem);
        }
    }
    all
}

fn list(app: &App, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    if as_json {
        let skills = skills(app, output);
        return output.pretty_json(&skills.iter().map(|one| entry(one, app)).collect());
    }
    let text = overview(app, output);
    output.text(&text)
}

/// The skills as a table.
pub(super) fn overview(app: &App, output: &mut Output) -> String {
    let skills = skills(app, output);
    if skills.is_empty() {
        return "There are no skills.\n".to_owned();
    }
    let head = ["SKILL", "TRUST", "PLACEHOLDERS", "DESCRIPTION"];
    let body = skills.iter().map(|(extension, skill)| {
        let trust = word(standing(extension, app)).to_owned();
        [skill_id(extension, skill), trust, skill.placeholders().join(", "), skill.description.clone()]
    });
    table(head, body)
}

fn show(name: &str, app: &App, as_json: bool, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let (extension, skill) = readable(name, app, context, output)?;
    if as_json {
        let mut value = entry(&(extension, skill.clone()), app);
        value.as_object_mut().map(|map| map.insert("prompt".to_owned(), skill.prompt.clone().into()));
        return output.pretty_json(&value);
    }
    let blanks = skill.placeholders();
    let blanks = if blanks.is_empty() { "nothing".to_owned() } else { blanks.join(", ") };
    let text =
        format!("{}\n{}\nto fill in: {blanks}\n\n{}\n", skill_id(extension, &skill), skill.description, skill.prompt);
    output.text(&escape_for_people(&text))
}

fn run(arguments: SkillArguments, app: &App, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    if !arguments.hand_over && arguments.agent.is_used() {
        return Err(Failure::usage("options of the agent need --agent, which hands the prompt to it"));
    }
    let (extension, skill) = if arguments.hand_over {
        approved(&arguments.name, app, output)?
    } else {
        readable(&arguments.name, app, context, output)?
    };
    let prompt = fill(&skill, given(&arguments.set, &skill)?, output.asker(), |name| format!("--set {name}=…"))?;
    if arguments.hand_over {
        let SkillArguments { agent, json, stream_json, .. } = arguments;
        return super::run::run(&TaskArguments { prompt: Some(prompt), agent, json, stream_json }, context, output);
    }
    if arguments.json {
        return output.json(&json!({"skill": skill_id(extension, &skill), "prompt": prompt}));
    }
    output.data(&prompt)
}

/// The prompt of a skill from a person's line in a conversation. The line has the name and values such as
/// `file=src/main.rs`; each value ends where the next one begins.
pub(super) fn ordered(order: &str, app: &App, output: &mut Output) -> Result<String, Failure> {
    let (name, rest) = order.split_once(char::is_whitespace).unwrap_or((order, ""));
    let (_, skill) = approved(name, app, output)?;
    let known = skill.placeholders();
    let begins = |word: &str| word.split_once('=').is_some_and(|(name, _)| known.contains(&name));
    let mut set: Vec<String> = Vec::new();
    for word in rest.split_whitespace() {
        match set.last_mut().filter(|_| !begins(word)) {
            Some(value) => {
                value.push(' ');
                value.push_str(word);
            }
            None => set.push(word.to_owned()),
        }
    }
    fill(&skill, given(&set, &skill)?, output.asker(), |name| format!("{name}=…"))
}

/// The prompt with all values filled in; asks the person for missing values.
fn fill(
    skill: &Skill,
    mut values: BTreeMap<String, String>,
    asker: &Asker,
    way_out: impl Fn(&str) -> String,
) -> Result<String, Failure> {
    for name in skill.placeholders() {
        if !values.contains_key(name)
            && let Some(answer) = asker.ask(&format!("{}: ", one_line(name)))
        {
            values.insert(name.to_owned(), answer);
        }
    }
    skill.render(&values).map_err(|missing| {
        let options: Vec<String> = missing.iter().map(|name| way_out(name)).collect();
        Failure::new(Code::InvalidArguments, format!("skill `{}` has no value for {}", skill.name, missing.join(", ")))
            .hint(format!("give a value with {}", options.join(" ")))
    })
}

/// The values on the command line; each must have a placeholder.
fn given(set: &[String], skill: &Skill) -> Result<BTreeMap<String, String>, Failure> {
    let known = skill.placeholders();
    let mut values = BTreeMap::new();
    for assignment in set {
        let (name, value) =
            assignment.split_once('=').ok_or_else(|| Failure::usage(format!("`{assignment}` is no NAME=VALUE")))?;
        if !known.contains(&name) {
            let there =
                if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
            return Err(Failure::new(
                Code::InvalidArguments,
                format!("skill `{}` has no placeholder `{name}`", skill.name),
            )
            .hint(there));
        }
        values.insert(name.to_owned(), value.to_owned());
    }
    Ok(values)
}

/// `EXTENSION.SKILL`, or a name that only one extension has.
fn find<'a>(name: &str, skills: Vec<InstalledSkill<'a>>) -> Result<InstalledSkill<'a>, Failure> {
    let mut found: Vec<InstalledSkill<'a>> = skills
        .into_iter()
        .filter(|(extension, skill)| skill.name == name || skill_id(extension, skill) == name)
        .collect();
    if found.len() > 1 {
        let ids: Vec<String> = found.iter().map(|(extension, skill)| skill_id(extension, skill)).collect();
        return Err(Failure::new(Code::UnknownSkill, format!("{} skills are named `{name}`", ids.len()))
            .hint(format!("use one of {}", ids.join(", "))));
    }
    found.pop().ok_or_else(|| {
        Failure::new(Code::UnknownSkill, format!("there is no skill `{name}`"))
            .hint("`ollm skill list` shows the skills of the extensions that are on")
    })
}

/// A skill for a person to read, who is told if it is not approved. An agent gets only approved ones, because it would
/// pass them to its model.
fn readable<'a>(
    name: &str,
    app: &'a App,
    context: &AppContext,
    output: &mut Output,
) -> Result<InstalledSkill<'a>, Failure> {
    let (extension, skill) = find(name, skills(app, output))?;
    if approved_as_is(extension, &skill, app).is_none_or(|approved| approved.prompt != skill.prompt) {
        refuse_agents(context, "read a skill that is not approved")?;
        output.tell(&format!("{}; {}", unapproved(extension), way_out(extension)));
    }
    Ok((extension, skill))
}

/// A skill for a model, with the approved text.
fn approved<'a>(name: &str, app: &'a App, output: &mut Output) -> Result<InstalledSkill<'a>, Failure> {
    let (extension, skill) = find(name, skills(app, output))?;
    let approved = approved_as_is(extension, &skill, app);
    let approved = approved.ok_or_else(|| {
        let message = format!("skill `{}` is not handed to a model: {}", skill.name, unapproved(extension));
        Failure::new(Code::NotApproved, message).hint(way_out(extension))
    })?;
    Ok((extension, approved))
}

/// A skill from the approved copy, if nothing has changed since, or if the copy stays in use after changes.
fn approved_as_is(extension: &Extension, skill: &Skill, app: &App) -> Option<Skill> {
    if !matches!(standing(extension, app), Standing::Approved | Standing::Limited) {
        return None;
    }
    let copy = app.engine.trust.approved_extension(&extension.name, &extension.root)?;
    let (skills, _) = validate_extension(&copy, &app.rules).0.skills();
    skills.into_iter().find(|one| one.name == skill.name)
}

/// Whether an extension is approved in its present state.
fn standing(extension: &Extension, app: &App) -> Standing {
    let trust = &app.engine.trust;
    let digest = trust.tree_digest(&extension.root);
    digest.map_or(Standing::Unknown, |digest| trust.extension_standing(&extension.name, &extension.root, &digest))
}

fn unapproved(extension: &Extension) -> String {
    format!("extension `{}` is not approved in its present state", extension.name)
}

fn way_out(extension: &Extension) -> String {
    format!("`ollm ext trust {}` shows and approves it", shell_word(&extension.name))
}

pub(crate) fn skill_id(extension: &Extension, skill: &Skill) -> String {
    format!("{}.{}", extension.name, skill.name)
}

fn entry((extension, skill): &InstalledSkill<'_>, app: &App) -> Value {
    json!({
        "id": skill_id(extension, skill),
        "name": skill.name,
        "extension": extension.name,
        "description": skill.description,
        "placeholders": skill.placeholders(),
        "trust": word(standing(extension, app)),
        "file": shown(&skill.file.clone().unwrap_or_else(|| extension.file())),
    })
}
