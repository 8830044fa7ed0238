//! `ollm connect`, `disconnect` and `import`: shows whether other agents ask us, makes them ask or stop asking, and
//! imports their hooks.

use std::path::Path;
use std::time::SystemTime;

use ollm_app::command_box::{BoxPolicy, BoxStatus, CommandBox};
use ollm_app::connect::{self, AgentStatus, Asker, Caller, Link, LinkState, Plan, Scope, ShellCalls};
use ollm_app::{App, AppContext, refuse_agents, tell_undeclared, trace};
use ollm_catalog::Config;
use ollm_protocol::dialect::agents::AgentEvent;
use ollm_protocol::dialect::agents::home::WrittenForm;
use ollm_protocol::dialect::{AGENTS, AgentDialect};
use ollm_protocol::units::{self, iso};
use ollm_protocol::{Code, EventKind};
use serde_json::{Value, json};

use crate::arguments::{ConnectArguments, DisconnectArguments, ImportArguments};
use crate::error::{FINDING, Failure, OK};
use crate::output::{Output, shown};
use crate::table::table;

pub(super) fn connect(arguments: &ConnectArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let Some(name) = &arguments.agent else {
        return list(arguments.json, context, output);
    };
    let agent = connect::agent(name)?;
    if arguments.capabilities {
        return capabilities(agent, arguments.json, output);
    }
    if arguments.json {
        output.collect();
    }
    refuse_agents(context, "connect agents")?;
    let scope = scope(arguments.project);
    let program = own_program(context)?;
    let shell_calls = if arguments.in_box { ShellCalls::InBox } else { ShellCalls::AsTheyAre };
    let plan = connect::plan(agent, scope, &Caller { program, shell_calls }, context)?;
    if arguments.in_box {
        need_box(context)?;
    }
    plan.warnings.iter().for_each(|warning| output.tell(warning));
    if arguments.dry_run {
        output.text(&plan.difference())?;
        return Ok(OK);
    }
    let place = connect::place(agent, scope, context)?;
    let changes = plan.changes();
    if changes {
        carry_out(&plan, context, output)?;
        tell_changed(&plan, "file", output);
    }
    let now = connect::status(agent, context);
    let (title, by) = (agent.title, place.display());
    output.line(&match (changes, now.asks()) {
        (true, _) => format!("{title} will ask ollm, by {by}"),
        (false, true) => format!("{title} asks your hooks, by {by}"),
        (false, false) => format!("{title} is told already to ask ollm, by {by}"),
    })?;
    agent.home.review.into_iter().for_each(|review| output.tell(review));
    output.busy("trying the line with an event");
    connect::try_lines(agent, scope, context).map_err(|why| {
        Failure::new(Code::LineFails, format!("the line does not work: {why}"))
            .hint(format!("`ollm disconnect {}` takes it out again", agent.name))
    })?;
    let finds_nothing = now.links.iter().any(|it| it.scope == scope && matches!(it.state, LinkState::Moved(_)));
    let line = if finds_nothing { "the line does nothing here: ollm is not on your PATH" } else { "the line works" };
    let asked = now.fired.map_or_else(
        || format!("{title} has not asked yet, which `ollm connect` shows"),
        |fired| format!("{title} last asked {}", ago(fired)),
    );
    output.tell(&format!("{line}; {asked}"));
    tell_duplicates(&now, output);
    tell_undeclared(context, output);
    tell_what_fails(context, output);
    Ok(OK)
}

/// Warns of unreadable files and failing hooks, because the agent itself does not show them.
fn tell_what_fails(context: &AppContext, output: &mut Output) {
    match App::load(context) {
        Ok(app) => {
            app.tell_problems(output);
            for failing in trace::failing(&app) {
                output.tell(&failing.line(&app));
            }
        }
        Err(error) => output.tell(&error.message),
    }
}

pub(super) fn disconnect(
    arguments: &DisconnectArguments,
    context: &AppContext,
    output: &mut Output,
) -> Result<u8, Failure> {
    refuse_agents(context, "disconnect agents")?;
    let agents: Vec<&AgentDialect> = match &arguments.agent {
        Some(name) => vec![connect::agent(name)?],
        None if arguments.all => AGENTS.to_vec(),
        None => {
            let message = "`ollm disconnect` needs the agent to disconnect, or `--all` for every one of them";
            return Err(Failure::usage(message).hint("`ollm connect` shows which are connected"));
        }
    };
    let mut scopes = vec![scope(arguments.project)];
    if arguments.all && context.places.project.is_some() && !arguments.project {
        scopes.push(Scope::Project);
    }
    let mut failed = None;
    for (agent, scope) in agents.iter().flat_map(|agent| scopes.iter().map(move |scope| (agent, *scope))) {
        // An agent without such a file has no entries to remove.
        if arguments.all && connect::place(agent, scope, context).is_err() {
            continue;
        }
        match take_out(agent, scope, arguments, context, output) {
            Err(failure) if arguments.all => {
                // If one file cannot be changed, the other agents are disconnected nevertheless.
                if let Some(before) = failed.replace(failure) {
                    output.tell(&before.message);
                }
            }
            done => drop(done?),
        }
    }
    failed.map_or(Ok(OK), Err)
}

/// Removes our entries from one agent's settings of one scope.
fn take_out(
    agent: &AgentDialect,
    scope: Scope,
    arguments: &DisconnectArguments,
    context: &AppContext,
    output: &mut Output,
) -> Result<u8, Failure> {
    let plan = connect::plan_removal(agent, scope, context)?;
    plan.warnings.iter().for_each(|warning| output.tell(warning));
    if arguments.dry_run {
        return output.text(&plan.difference());
    }
    if plan.changes() {
        carry_out(&plan, context, output)?;
        tell_changed(&plan, "removedFrom", output);
        let whose = if scope == Scope::Project { " in this project" } else { "" };
        return output.line(&format!("{} does not ask ollm any more{whose}", agent.title));
    }
    connect::forget(agent, scope, context)?;
    if arguments.all { Ok(OK) } else { output.line(&format!("{} does not ask ollm", agent.title)) }
}

pub(super) fn import(arguments: &ImportArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let agent = connect::agent(&arguments.agent)?;
    refuse_agents(context, "take over hooks")?;
    let plan = connect::plan_import(agent, scope(arguments.project), context)?;
    plan.imported.left.iter().for_each(|left| output.tell(&format!("left out: {left}")));
    let count = plan.imported.hooks.len();
    let from = plan.from.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    if count == 0 {
        output.tell(&match agent.home.written.form {
            WrittenForm::Code => format!("hooks of {} are code, which only it can run", agent.title),
            _ if from.is_empty() => format!("{} has no hooks to take over", agent.title),
            _ => format!("{} has no hooks to take over in {from}", agent.title),
        });
        return Ok(OK);
    }
    if arguments.dry_run {
        output.text(&plan.text())?;
        return Ok(OK);
    }
    context.need_home()?;
    if plan.carry_out()? {
        output.changed(json!({"agent": agent.name, "file": shown(&plan.to), "hooks": count}));
        let (hooks, are) = if count == 1 { ("hook", "is") } else { ("hooks", "are") };
        output.line(&format!("{count} {hooks} of {from} {are} in {}", plan.to.display()))?;
    } else {
        output.line(&format!("{} has them already", plan.to.display()))?;
    }
    let next = if arguments.project { "ollm hook trust --review" } else { "ollm hook list" };
    output.tell(&format!(
        "`{next}` shows them; {} still runs them by itself, until you take them out there",
        agent.title
    ));
    Ok(OK)
}

fn carry_out(plan: &Plan<'_>, context: &AppContext, output: &mut Output) -> Result<(), Failure> {
    for copy in plan.carry_out(context)? {
        output.tell(&format!("what was there before is kept in {}", copy.display()));
    }
    Ok(())
}

/// Reports the changed files to programs; `what` says whether our entries were added or removed.
fn tell_changed(plan: &Plan<'_>, what: &str, output: &mut Output) {
    for file in plan.files.iter().filter(|file| file.changes()) {
        output.changed(json!({"agent": plan.agent.name, what: shown(&file.path)}));
    }
}

/// Fails if there is no box: an agent whose commands are rewritten for a box could then run none.
fn need_box(context: &AppContext) -> Result<(), Failure> {
    let made = CommandBox::by_policy(BoxPolicy::On, context, &Config::default());
    match made.status() {
        BoxStatus::Unavailable(reason) => {
            Err(Failure::new(Code::NoBox, format!("there is no box on this machine: {reason}")))
        }
        _ => Ok(()),
    }
}

fn scope(project: bool) -> Scope {
    if project { Scope::Project } else { Scope::User }
}

/// Our own program, which lines in settings name by its path.
pub(super) fn own_program(context: &AppContext) -> Result<&Path, Failure> {
    let program = context.program.as_deref().filter(|program| program.is_file());
    program.ok_or_else(|| Failure::new(Code::MissingProgram, "it cannot be found out where this program is"))
}

fn list(as_json: bool, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let all = connect::agents(context);
    if as_json {
        output.pretty_json(&all.iter().map(|status| entry(status, context)).collect())?;
    } else {
        context.tell_notices(output);
        let head = ["AGENT", "STATE", "NAME", "VERSION", "LAST ASKED"];
        let body = all.iter().map(|status| {
            [
                status.agent.name.to_owned(),
                state(status),
                status.agent.title.to_owned(),
                version(status),
                status.fired.map_or_else(|| "never".to_owned(), ago),
            ]
        });
        output.text(&table(head, body))?;
        for status in all.iter().filter(|status| !status.askers.is_empty()) {
            let asks = if status.asks() { "asks your hooks" } else { "is connected and has not asked yet" };
            output.tell(&format!("{} {asks}", status.agent.title));
            tell_duplicates(status, output);
        }
        tell_undeclared(context, output);
        output.tell("`ollm connect AGENT` lets one ask ollm at each of its events");
        tell_what_fails(context, output);
    }
    let faulty = |status: &AgentStatus| {
        status.is_duplicated() || status.links.iter().any(|link| link.state != LinkState::Connected)
    };
    Ok(if all.iter().any(faulty) { FINDING } else { OK })
}

/// Says which files make an agent ask more than once, what the effect is, and how to stop it.
fn tell_duplicates(status: &AgentStatus, output: &mut Output) {
    if status.askers.len() < 2 {
        return;
    }
    let agent = status.agent;
    let files = status.askers.iter().map(|asker| {
        let when = asker.when.map(|when| format!("{when}, ")).unwrap_or_default();
        format!("{} ({when}`{}` ends that)", asker.file.display(), way_out(asker))
    });
    let files = files.collect::<Vec<_>>().join(" and by ");
    let numbers = agent.events.iter().any(|event| agent.numbers_calls_at(event));
    let then = if agent.stamps_events {
        "hooks run once all the same"
    } else if numbers {
        "hooks of a tool call run once all the same, those of other events each time"
    } else {
        "hooks run each time, because it does not number its tool calls"
    };
    output.tell(&format!("{} is told to ask more than once at an event, by {files}; {then}", agent.title));
}

/// The command that stops an agent from asking by this file.
fn way_out(asker: &Asker) -> String {
    let project = if asker.scope == Scope::Project { " --project" } else { "" };
    format!("ollm disconnect {}{project}", asker.agent)
}

/// What hooks can do at each event of an agent.
fn capabilities(agent: &AgentDialect, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let possible = |event: &AgentEvent| {
        let all = event.can.all().into_iter();
        all.filter(|(_, way)| way.is_possible()).map(|(name, _)| name).collect::<Vec<_>>()
    };
    if as_json {
        let events = agent.events.iter().map(|event| {
            json!({
                "event": event.name,
                "canonical": event.kind.name(),
                "connected": agent.asks_at(event),
                "can": possible(event),
            })
        });
        output.pretty_json(&json!({
            "id": agent.name,
            "checked": agent.checked,
            "newsAt": agent.tells_news_at().map(EventKind::name),
            "events": events.collect::<Vec<_>>(),
        }))?;
        return Ok(OK);
    }
    let head = ["EVENT", "IN OUR WORDS", "ASKED", "HOOKS CAN"];
    let body = agent.events.iter().map(|event| {
        let can = possible(event);
        [
            event.name.to_owned(),
            event.kind.name().to_owned(),
            if agent.asks_at(event) { "yes" } else { "no" }.to_owned(),
            if can.is_empty() { "only look".to_owned() } else { can.join(", ") },
        ]
    });
    output.text(&table(head, body))?;
    output.tell(&format!("checked against: {}", agent.checked));
    if agent.tells_news_at().is_none() {
        output.tell(&format!(
            "{} has no place to tell of hooks that failed or did not run; `ollm connect` and `ollm doctor` tell of them",
            agent.title
        ));
    }
    Ok(OK)
}

fn version(status: &AgentStatus) -> String {
    match (&status.program, &status.version) {
        (Some(_), Some(version)) => version.clone(),
        (Some(_), None) => "installed".to_owned(),
        (None, _) => "not installed".to_owned(),
    }
}

fn state(status: &AgentStatus) -> String {
    if status.links.is_empty() {
        return "not connected".to_owned();
    }
    let told = status.links.iter().map(|link| {
        let whose = if link.scope == Scope::Project { " (project)" } else { "" };
        format!("{}{whose}", word(&link.state))
    });
    told.chain((status.askers.len() > 1).then(|| "duplicated".to_owned())).collect::<Vec<_>>().join(", ")
}

fn word(state: &LinkState) -> String {
    let again = match state {
        LinkState::Removed | LinkState::Incomplete | LinkState::Duplicated => true,
        LinkState::Moved(program) => program.contains('/'),
        LinkState::Connected | LinkState::Broken(_) | LinkState::Ineffective(_) => false,
    };
    format!("{state}{}", if again { "; connect it again" } else { "" })
}

fn ago(time: SystemTime) -> String {
    let time = time.elapsed().unwrap_or_default();
    if time.as_secs() < 60 { "just now".to_owned() } else { format!("{} ago", units::approximately(time)) }
}

fn entry(status: &AgentStatus, context: &AppContext) -> Value {
    let links = status.links.iter().map(|link| {
        let name = match &link.state {
            LinkState::Connected => "connected",
            LinkState::Removed => "removed",
            LinkState::Incomplete => "incomplete",
            LinkState::Duplicated => "duplicated",
            LinkState::Ineffective(_) => "ineffective",
            LinkState::Moved(_) => "moved",
            LinkState::Broken(_) => "broken",
        };
        let why = match &link.state {
            LinkState::Moved(why) | LinkState::Broken(why) | LinkState::Ineffective(why) => Some(why.as_str()),
            _ => None,
        };
        json!({"scope": link.scope.name(), "file": link.file.display().to_string(), "state": name, "detail": why})
    });
    let askers = status.askers.iter().map(|asker| {
        json!({
            "agent": asker.agent,
            "scope": asker.scope.name(),
            "file": asker.file.display().to_string(),
            "when": asker.when,
            "endedBy": way_out(asker),
        })
    });
    let is_boxed = |link: &Link| connect::shell_calls(status.agent, link.scope, context) == ShellCalls::InBox;
    let shell = match connect::can_box(status.agent) {
        true if status.links.iter().any(is_boxed) => "on",
        true => "possible",
        false => "net only",
    };
    json!({
        "id": status.agent.name,
        "box": shell,
        "name": status.agent.title,
        "installed": status.program.is_some(),
        "program": status.program.as_ref().map(|path| path.display().to_string()),
        "version": status.version,
        "connected": status.links.iter().any(|link| link.state == LinkState::Connected),
        "links": links.collect::<Vec<_>>(),
        "duplicated": status.is_duplicated(),
        "askedBy": askers.collect::<Vec<_>>(),
        "asks": status.asks(),
        "lastFired": status.fired.map(iso),
    })
}
