//! The state of other agents: installed or not, connected to us or not, and the time when they last asked us.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fmt, fs};

use ollm_catalog::connection::{asks_us, called_programs, own_entries, rejected, switches_hooks_off};
use ollm_process::find_program;
use ollm_protocol::Request;
use ollm_protocol::dialect::agents::home::Form;
use ollm_protocol::dialect::{AGENTS, AgentDialect, agent_named};
use ollm_store::{read_bounded, write_atomic};
use serde_json::Value;

use super::record::{Key, Record};
use super::{LARGEST_FILE, Scope, own_paths, place, read};
use crate::app_context::AppContext;

/// The state of an agent.
#[derive(Debug)]
pub struct AgentStatus {
    /// The agent.
    pub agent: &'static AgentDialect,
    /// Its program, if there is one.
    pub program: Option<PathBuf>,
    /// Its version, if its package says so.
    pub version: Option<String>,
    /// Our entries by scope, for files that could be read.
    pub links: Vec<Link>,
    /// The files by which it asks us, including files of other agents that it also reads.
    pub askers: Vec<Asker>,
    /// The time when it last asked us.
    pub fired: Option<SystemTime>,
}

impl AgentStatus {
    /// Whether it certainly asks us: it is connected, and it has asked.
    pub fn asks(&self) -> bool {
        !self.askers.is_empty() && self.fired.is_some()
    }

    /// Whether it asks us more than once at an event.
    pub fn is_duplicated(&self) -> bool {
        self.askers.len() > 1 || self.links.iter().any(|link| link.state == LinkState::Duplicated)
    }
}

/// A file by which an agent asks us.
#[derive(Debug, PartialEq, Eq)]
pub struct Asker {
    /// The agent that the file belongs to.
    pub agent: &'static str,
    /// Whose work the settings apply to.
    pub scope: Scope,
    /// The file.
    pub file: PathBuf,
    /// The condition under which the file is read, if there is one.
    pub when: Option<&'static str>,
}

/// Our entries in one file of an agent.
#[derive(Debug)]
pub struct Link {
    /// Whose work the settings apply to.
    pub scope: Scope,
    /// The file.
    pub file: PathBuf,
    /// The state of the entries.
    pub state: LinkState,
}

/// The state of our entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// There is one for every event.
    Connected,
    /// There were entries, and they are gone.
    Removed,
    /// Some events are missing, or have entries for some tools only.
    Incomplete,
    /// Some events are there more than once.
    Duplicated,
    /// The entries are there, and the agent does not run them.
    Ineffective(String),
    /// The line names a program that no longer exists.
    Moved(String),
    /// The file cannot be understood.
    Broken(String),
}

impl fmt::Display for LinkState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkState::Connected => formatter.write_str("connected"),
            LinkState::Removed => formatter.write_str("removed since"),
            LinkState::Incomplete => formatter.write_str("incomplete"),
            LinkState::Duplicated => formatter.write_str("duplicated"),
            LinkState::Ineffective(why) => write!(formatter, "does not ask: {why}"),
            LinkState::Moved(program) if !program.contains('/') => {
                write!(formatter, "names {program}, which is not on your PATH")
            }
            LinkState::Moved(program) => write!(formatter, "names {program}, which is gone"),
            LinkState::Broken(why) => write!(formatter, "cannot be read: {why}"),
        }
    }
}

/// The state of every known agent.
pub fn agents(context: &AppContext) -> Vec<AgentStatus> {
    AGENTS.iter().copied().map(|agent| status(agent, context)).collect()
}

/// The state of one agent.
pub fn status(agent: &'static AgentDialect, context: &AppContext) -> AgentStatus {
    let program =
        context.search_path().and_then(|path| agent.home.programs.iter().find_map(|name| find_program(name, path)));
    let real = program.as_deref().and_then(|program| program.canonicalize().ok());
    let version = real.as_deref().and_then(|real| version_in_path(real).or_else(|| package_version(real)));
    let links: Vec<Link> =
        [Scope::User, Scope::Project].into_iter().filter_map(|scope| link(agent, scope, context)).collect();
    let askers = askers(agent, &links, context);
    AgentStatus { agent, program, version, links, askers, fired: last_fired(agent.name, context) }
}

/// The files by which an agent asks us; empty if only the files of other agents make it ask.
fn askers(agent: &AgentDialect, links: &[Link], context: &AppContext) -> Vec<Asker> {
    let asker = |link: &Link, of: &AgentDialect, when| {
        let fires = matches!(link.state, LinkState::Connected | LinkState::Incomplete | LinkState::Duplicated);
        fires.then(|| Asker { agent: of.name, scope: link.scope, file: link.file.clone(), when })
    };
    let mut askers: Vec<Asker> = links.iter().filter_map(|link| asker(link, agent, None)).collect();
    if askers.is_empty() {
        return askers;
    }
    for foreign in agent.home.also_reads {
        let Some(other) = agent_named(foreign.agent) else { continue };
        let scopes = [(foreign.user, Scope::User), (foreign.project, Scope::Project)];
        let read =
            scopes.into_iter().filter(|(is_read, _)| *is_read).filter_map(|(_, scope)| link(other, scope, context));
        askers.extend(read.filter_map(|link| asker(&link, other, foreign.when)));
    }
    // If the home is a project, both scopes have the same file.
    let mut seen: Vec<PathBuf> = Vec::new();
    askers.retain(|asker| {
        let real = asker.file.canonicalize().unwrap_or_else(|_| asker.file.clone());
        let is_new = !seen.contains(&real);
        seen.push(real);
        is_new
    });
    askers
}

fn link(agent: &AgentDialect, scope: Scope, context: &AppContext) -> Option<Link> {
    let file = place(agent, scope, context).ok()?;
    let state = match agent.home.form {
        Form::Own(_) => own_files(agent, scope, &file, context)?,
        Form::Groups | Form::Flat(_) => in_settings(agent, scope, &file, context)?,
    };
    Some(Link { scope, file, state })
}

/// The state of our entries in a settings file; `None` if there never were any.
fn in_settings(agent: &AgentDialect, scope: Scope, file: &Path, context: &AppContext) -> Option<LinkState> {
    let known = Record::of(&Key { agent: agent.name, scope, file }, context).is_some();
    let text = match read(file) {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => return known.then_some(LinkState::Broken(error.message)),
    };
    let found = match own_entries(&text, agent.name, agent.home.form) {
        Ok(found) => found,
        Err(why) => return known.then_some(LinkState::Broken(why)),
    };
    if found.is_empty() {
        return known.then_some(LinkState::Removed);
    }
    if let Some(program) = found.iter().find_map(|entry| gone(&entry.command, agent, scope, context)) {
        return Some(LinkState::Moved(program));
    }
    if switches_hooks_off(&text) {
        return Some(LinkState::Ineffective("all its hooks are switched off in the file".to_owned()));
    }
    if let Some(why) = rejected(&text, &agent.home) {
        return Some(LinkState::Ineffective(format!("it does not read the file: {why}")));
    }
    let count = |event: &str| found.iter().filter(|entry| entry.event == event).count();
    if found.iter().any(|entry| count(&entry.event) > 1) {
        return Some(LinkState::Duplicated);
    }
    let is_asked = |event: &&str| found.iter().any(|entry| entry.event == **event && entry.is_for_all);
    let whole = agent.home.events.iter().all(is_asked) && found.len() == agent.home.events.len();
    Some(if whole { LinkState::Connected } else { LinkState::Incomplete })
}

/// The state of files that are only ours; `None` if there never were any.
fn own_files(agent: &AgentDialect, scope: Scope, folder: &Path, context: &AppContext) -> Option<LinkState> {
    let files: Vec<PathBuf> = own_paths(agent).iter().map(|path| folder.join(path)).collect();
    let known = files.iter().any(|file| Record::of(&Key { agent: agent.name, scope, file }, context).is_some());
    let texts = files.iter().filter_map(|file| read(file).ok().flatten()).filter(|text| asks_us(text, agent.name));
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() {
        return known.then_some(LinkState::Removed);
    }
    if let Some(program) = texts.iter().find_map(|text| gone(text, agent, scope, context)) {
        return Some(LinkState::Moved(program));
    }
    Some(if texts.len() == files.len() { LinkState::Connected } else { LinkState::Incomplete })
}

/// The program in a text of ours, if it cannot be started.
fn gone(text: &str, agent: &AgentDialect, scope: Scope, context: &AppContext) -> Option<String> {
    let base = context.places.project.as_deref().filter(|_| scope == Scope::Project).unwrap_or(&context.cwd);
    text.lines().flat_map(|line| programs(line, agent)).find(|program| !starts(program, base, context))
}

/// The programs by which a line asks us, if they can be read. A shell line is split like a shell does; other text is
/// searched.
fn programs(line: &str, agent: &AgentDialect) -> Vec<String> {
    let words = ollm_shell::split_loosely(line).unwrap_or_default();
    let calls = words.windows(3).filter(|words| matches!(words, [_, hook, run] if hook == "hook" && run == "run"));
    let programs: Vec<String> = calls.filter_map(|words| words.first()).cloned().collect();
    if !programs.is_empty() {
        return programs;
    }
    let is_plain = |program: &&str| program.starts_with('/') || *program == "ollm";
    called_programs(line, agent.name).filter(is_plain).map(str::to_owned).collect()
}

/// Whether a shell would find a program. If only the shell can expand its name, it counts as found.
fn starts(program: &str, base: &Path, context: &AppContext) -> bool {
    let in_home = ["~/", "$HOME/", "${HOME}/"].into_iter().find_map(|home| program.strip_prefix(home));
    let path = match (in_home, &context.places.user_home) {
        (Some(below), Some(home)) => home.join(below),
        _ if program.contains(['$', '`', '~']) => return true,
        _ if !program.contains('/') => {
            return context.search_path().is_some_and(|path| find_program(program, path).is_some());
        }
        _ => base.join(program),
    };
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The version in a program's path: some installers keep each version in a file or folder of its own.
fn version_in_path(real: &Path) -> Option<String> {
    let is_version = |part: &&str| {
        let mut numbers = part.split(['.', '-', '_']);
        let mut is_number =
            || numbers.next().is_some_and(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()));
        part.contains('.') && is_number() && is_number()
    };
    real.iter().rev().filter_map(|part| part.to_str()).find(is_version).map(str::to_owned)
}

/// The version in the package of a program.
fn package_version(real: &Path) -> Option<String> {
    let manifest =
        real.ancestors().skip(1).take(6).map(|folder| folder.join("package.json")).find(|file| file.is_file())?;
    let bytes = read_bounded(&manifest, LARGEST_FILE).ok()??;
    let manifest: Value = serde_json::from_slice(&bytes).ok()?;
    manifest.get("version")?.as_str().map(str::to_owned)
}

/// Remembers that an agent asked us.
pub fn remember_fired(agent: &AgentDialect, context: &AppContext) {
    let Some(own) = context.own_home() else { return };
    let file = fired(agent.name, context);
    let now = fs::FileTimes::new().set_modified(SystemTime::now());
    let touched = fs::File::options().append(true).open(&file).and_then(|file| file.set_times(now));
    if touched.is_err() && own.is_dir() {
        // This time is only shown to people, so a failure to save it fails no event.
        let _ = write_atomic(&file, b"");
    }
}

/// Forgets that an agent asked us, once it is disconnected.
pub(super) fn forget_fired(agent: &AgentDialect, context: &AppContext) {
    let mut links = [Scope::User, Scope::Project].into_iter().filter_map(|scope| link(agent, scope, context));
    if links.all(|link| link.state == LinkState::Removed) {
        // This time is only shown to people, so a failure to remove it is ignored.
        let _ = fs::remove_file(fired(agent.name, context));
    }
}

fn last_fired(agent: &str, context: &AppContext) -> Option<SystemTime> {
    fs::metadata(fired(agent, context)).ok()?.modified().ok()
}

fn fired(agent: &str, context: &AppContext) -> PathBuf {
    context.state().join("fired").join(agent)
}

/// The agent that asks by an entry for this one: another agent that reads these settings is known by a variable of its
/// own.
pub fn asker_of(agent: &'static AgentDialect, context: &AppContext) -> &'static AgentDialect {
    let own = agent.home.project_variables;
    let shows = |other: &&AgentDialect| {
        let mut telling = other.home.project_variables.iter().filter(|name| !own.contains(name));
        telling.any(|name| context.variable(name).is_some())
    };
    readers_of(agent).find(shows).unwrap_or(agent)
}

/// The text that identifies an event in its session: a call number or a precise timestamp. It also works for an agent
/// that reads this one's settings and sets no variable.
pub fn number_of<'r>(agent: &'static AgentDialect, request: &'r Request) -> Option<&'r str> {
    agent.number(request).or_else(|| readers_of(agent).find_map(|other| other.number(request)))
}

/// The agents that also read the settings of this one.
fn readers_of(agent: &'static AgentDialect) -> impl Iterator<Item = &'static AgentDialect> {
    let reads = |other: &&AgentDialect| other.home.also_reads.iter().any(|foreign| foreign.agent == agent.name);
    AGENTS.iter().copied().filter(reads)
}
