//! What a shell offers where an argument is a name of something there is: hooks, servers, extensions, sessions, agents.
//!
//! Nothing is run for that, and nothing of a project counts that is not declared in its files.

use std::collections::HashSet;
use std::sync::Arc;

use clap::{Arg, Command};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use ollm_app::servers::Servers;
use ollm_app::session::sessions;
use ollm_app::trace::{Record, Records, trace_log};
use ollm_app::{App, AppContext};
use ollm_catalog::KEYS;
use ollm_protocol::dialect::AGENTS;
use ollm_protocol::{Code, EventKind, Hook};

use super::command_line;
use crate::command::skill::skill_id;

/// So many of the newest records are looked at for their sessions.
const MOST_RECORDS: usize = 500;
/// So many of them are offered themselves.
const MOST_TRACES: usize = 30;

/// What an argument names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NameSource {
    Agents,
    Events,
    EventsAndHooks,
    Extensions,
    HelpTopics,
    Hooks,
    Keys,
    Servers,
    Sessions,
    Skills,
    TraceSessions,
    Traces,
}

/// The command, the names that its arguments have in it and its own commands, and what they name. The first row that fits counts.
const ROWS: &[(&str, &[&str], NameSource)] = &[
    ("connect", &["agent"], NameSource::Agents),
    ("disconnect", &["agent"], NameSource::Agents),
    ("import", &["agent"], NameSource::Agents),
    ("config", &["key"], NameSource::Keys),
    ("emit", &["name"], NameSource::Events),
    ("explain", &["what"], NameSource::EventsAndHooks),
    ("ext", &["name", "names"], NameSource::Extensions),
    ("help", &["words"], NameSource::HelpTopics),
    ("hook", &["event"], NameSource::Events),
    ("hook", &["id", "ids"], NameSource::Hooks),
    ("hook", &["from_trace"], NameSource::Traces),
    ("mcp", &["name", "names", "server"], NameSource::Servers),
    ("run", &["resume"], NameSource::Sessions),
    ("chat", &["resume"], NameSource::Sessions),
    ("replay", &["event"], NameSource::Events),
    ("replay", &["hook"], NameSource::Hooks),
    ("replay", &["id"], NameSource::Traces),
    ("replay", &["session"], NameSource::TraceSessions),
    ("session", &["id"], NameSource::Sessions),
    ("skill", &["name"], NameSource::Skills),
    ("trace", &["event"], NameSource::Events),
    ("trace", &["hook"], NameSource::Hooks),
    ("trace", &["id"], NameSource::Traces),
    ("trace", &["session"], NameSource::TraceSessions),
];

/// Commands whose name is that of something new.
const NEW: &[&str] = &["new", "add"];

/// The command line, with what there is.
pub(super) fn added(mut line: Command, context: &Arc<AppContext>) -> Command {
    for (name, _, _) in ROWS {
        line = line.mut_subcommand(name, |command| with_rows(command, name, context));
    }
    line
}

fn with_rows(command: Command, group: &str, context: &Arc<AppContext>) -> Command {
    let rows = |arg: &Arg| {
        let fits =
            |(name, ids, _): &&(&str, &[&str], NameSource)| *name == group && ids.contains(&arg.get_id().as_str());
        ROWS.iter().find(fits).map(|(_, _, source)| *source)
    };
    let is_new = NEW.contains(&command.get_name());
    let command =
        command.mut_args(|arg| match rows(&arg).filter(|source| !is_new || matches!(source, NameSource::Events)) {
            Some(source) => {
                let context = Arc::clone(context);
                arg.add(ArgValueCandidates::new(move || candidates(source, &context)))
            }
            None => arg,
        });
    let below: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    below.into_iter().fold(command, |command, name| command.mut_subcommand(name, |one| with_rows(one, group, context)))
}

/// The names alone.
pub(crate) fn names(source: NameSource, context: &AppContext) -> Vec<String> {
    let found = candidates(source, context).into_iter();
    found.filter_map(|one| one.get_value().to_str().map(str::to_owned)).collect()
}

fn candidates(source: NameSource, context: &AppContext) -> Vec<CompletionCandidate> {
    let named = |name: &str, help: &str| CompletionCandidate::new(name).help(Some(help.to_owned().into()));
    match source {
        NameSource::Agents => AGENTS.iter().map(|agent| named(agent.name, agent.title)).collect(),
        NameSource::Events => EventKind::all().map(|kind| CompletionCandidate::new(kind.name())).collect(),
        NameSource::EventsAndHooks => {
            [NameSource::Events, NameSource::Hooks].into_iter().flat_map(|one| candidates(one, context)).collect()
        }
        NameSource::HelpTopics => {
            let line = command_line();
            let commands = line.get_subcommands().filter(|one| !one.is_hide_set());
            let about = |one: &Command| one.get_about().map(ToString::to_string).unwrap_or_default();
            let commands = commands.map(|one| named(one.get_name(), &about(one)));
            let codes = Code::ALL.iter().map(|code| named(code.id(), code.title()));
            commands.chain([named("codes", "All codes of errors")]).chain(codes).collect()
        }
        NameSource::Keys => KEYS.iter().map(|key| CompletionCandidate::new(key.path)).collect(),
        NameSource::Hooks => {
            let Ok(app) = App::load(context) else { return Vec::new() };
            let hooks = app.hooks();
            let help = |hook: &Hook| hook.spec.description.clone().unwrap_or_default();
            // A shell offers what begins with the typed text: a name that no other hook has, or an id.
            let is_alone =
                |hook: &&Arc<Hook>| hooks.iter().filter(|other| other.spec.name == hook.spec.name).count() == 1;
            let alone = hooks.iter().filter(is_alone).map(|hook| named(&hook.spec.name, &help(hook)));
            alone.chain(hooks.iter().map(|hook| named(hook.id(), &help(hook)))).collect()
        }
        NameSource::Extensions => {
            let Ok(app) = App::load(context) else { return Vec::new() };
            let extensions = app.extensions.iter();
            extensions.map(|one| named(&one.name, &one.manifest.description)).collect()
        }
        NameSource::Servers => {
            let Ok(servers) = Servers::load(context) else { return Vec::new() };
            servers.all.iter().map(|server| CompletionCandidate::new(&server.spec.name)).collect()
        }
        NameSource::Skills => {
            let Ok(app) = App::load(context) else { return Vec::new() };
            let extensions = app.extensions.iter().filter(|extension| extension.is_on());
            let skills = extensions.flat_map(|one| one.skills().0.into_iter().map(move |skill| (one, skill)));
            skills.map(|(extension, skill)| named(&skill_id(extension, &skill), &skill.description)).collect()
        }
        NameSource::Sessions => {
            let (listed, _) = ollm_agent::list(&sessions(context)).unwrap_or_default();
            listed.iter().map(|one| named(&one.header.id, one.first.as_deref().unwrap_or_default())).collect()
        }
        NameSource::TraceSessions => {
            let mut seen = HashSet::new();
            let records = recent(context);
            let sessions = records.iter().filter(|record| !record.text("session").is_empty() && !record.is_test());
            let once = sessions.filter(|record| seen.insert(record.text("session")));
            once.map(|record| named(record.text("session"), record.text("time"))).collect()
        }
        NameSource::Traces => {
            let about = |record: &Record| {
                [record.text("time"), record.text("event"), record.text("subject")].join(" ").trim_end().to_owned()
            };
            recent(context).iter().take(MOST_TRACES).map(|record| named(record.id(), &about(record))).collect()
        }
    }
}

/// The newest records of the trace but the tests of connections; none where it cannot be read.
fn recent(context: &AppContext) -> Vec<Record> {
    let (config, _) = ollm_catalog::configuration(&context.places, &|name| context.variable(name), &context.overrides);
    let records = Records::open(trace_log(context, &config.trace()));
    let real = |records: Records| records.flatten().filter(|record| !record.is_test()).take(MOST_RECORDS).collect();
    records.map(real).unwrap_or_default()
}
