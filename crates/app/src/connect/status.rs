//! How other agents stand: installed or not, told to ask us or not, and when they last did.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ollm_catalog::connection::{asks_us, called_programs, own_entries};
use ollm_process::find_program;
use ollm_protocol::dialect::agents::home::Form;
use ollm_protocol::dialect::{AGENTS, AgentDialect};
use ollm_store::{read_bounded, write_atomic};
use serde_json::Value;

use super::record::{Key, Record};
use super::{LARGEST_FILE, Scope, own_paths, place, read};
use crate::world::World;

/// What is known about an agent.
#[derive(Debug)]
pub struct AgentStatus {
    /// The agent.
    pub agent: &'static AgentDialect,
    /// Its program, if there is one.
    pub program: Option<PathBuf>,
    /// Its version, where its package says so.
    pub version: Option<String>,
    /// What is there of ours, by scope; only places that could be looked into.
    pub links: Vec<Link>,
    /// When it last asked us.
    pub fired: Option<SystemTime>,
}

/// Our entries in one place of an agent.
#[derive(Debug)]
pub struct Link {
    /// Whose settings.
    pub scope: Scope,
    /// The file.
    pub file: PathBuf,
    /// How it stands.
    pub state: LinkState,
}

/// How entries of ours stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// There is one for every event.
    Connected,
    /// There were entries, and they are gone.
    Removed,
    /// Some events are missing, or there more than once.
    Incomplete,
    /// The line names a program that is not there any more.
    Moved(String),
    /// The file cannot be understood.
    Broken(String),
}

/// How every known agent stands.
pub fn agents(world: &World) -> Vec<AgentStatus> {
    AGENTS.iter().copied().map(|agent| status(agent, world)).collect()
}

/// How one agent stands.
pub fn status(agent: &'static AgentDialect, world: &World) -> AgentStatus {
    let program =
        world.search_path().and_then(|path| agent.home.programs.iter().find_map(|name| find_program(name, path)));
    let version = program.as_deref().and_then(package_version);
    let links = [Scope::User, Scope::Project].into_iter().filter_map(|scope| link(agent, scope, world)).collect();
    AgentStatus { agent, program, version, links, fired: last_fired(agent.name, world) }
}

fn link(agent: &AgentDialect, scope: Scope, world: &World) -> Option<Link> {
    let file = place(agent, scope, world).ok()?;
    let state = match agent.home.form {
        Form::Own(_) => own_files(agent, scope, &file, world)?,
        Form::Groups | Form::Flat(_) => in_settings(agent, scope, &file, world)?,
    };
    Some(Link { scope, file, state })
}

/// How our entries in a settings file stand; none where there never were any.
fn in_settings(agent: &AgentDialect, scope: Scope, file: &Path, world: &World) -> Option<LinkState> {
    let known = Record::of(&Key { agent: agent.name, scope, file }, world).is_some();
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
    if let Some(program) = found.iter().find_map(|entry| gone(&entry.command, agent)) {
        return Some(LinkState::Moved(program));
    }
    let once = |event: &&str| found.iter().filter(|entry| entry.event == **event).count() == 1;
    let whole = agent.home.events.iter().all(once) && found.len() == agent.home.events.len();
    Some(if whole { LinkState::Connected } else { LinkState::Incomplete })
}

/// How files that are ours alone stand; none where there never were any.
fn own_files(agent: &AgentDialect, scope: Scope, folder: &Path, world: &World) -> Option<LinkState> {
    let files: Vec<PathBuf> = own_paths(agent).iter().map(|path| folder.join(path)).collect();
    let known = files.iter().any(|file| Record::of(&Key { agent: agent.name, scope, file }, world).is_some());
    let texts = files.iter().filter_map(|file| read(file).ok().flatten()).filter(|text| asks_us(text, agent.name));
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() {
        return known.then_some(LinkState::Removed);
    }
    if let Some(program) = texts.iter().find_map(|text| gone(text, agent)) {
        return Some(LinkState::Moved(program));
    }
    Some(if texts.len() == files.len() { LinkState::Connected } else { LinkState::Incomplete })
}

/// The program by which a text asks us, if it names one by its path that is not there.
fn gone(text: &str, agent: &AgentDialect) -> Option<String> {
    let mut programs = called_programs(text, agent.name).filter(|program| program.starts_with('/'));
    programs.find(|program| !Path::new(program).is_file()).map(str::to_owned)
}

/// The version in the package that a program belongs to.
fn package_version(program: &Path) -> Option<String> {
    let real = program.canonicalize().ok()?;
    let manifest =
        real.ancestors().skip(1).take(6).map(|folder| folder.join("package.json")).find(|file| file.is_file())?;
    let bytes = read_bounded(&manifest, LARGEST_FILE).ok()??;
    let manifest: Value = serde_json::from_slice(&bytes).ok()?;
    manifest.get("version")?.as_str().map(str::to_owned)
}

/// Remembers that an agent asked us.
pub fn remember_fired(agent: &str, world: &World) {
    let Some(own) = world.own_home() else { return };
    let file = own.join("state/fired").join(agent);
    let now = fs::FileTimes::new().set_modified(SystemTime::now());
    let touched = fs::File::options().append(true).open(&file).and_then(|file| file.set_times(now));
    if touched.is_err() && own.is_dir() {
        // Whether an agent works is only told to people: no event fails for it.
        let _ = write_atomic(&file, b"");
    }
}

fn last_fired(agent: &str, world: &World) -> Option<SystemTime> {
    fs::metadata(world.state().join("fired").join(agent)).ok()?.modified().ok()
}
