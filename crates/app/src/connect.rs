//! Connects other agents to us: finds installed agents, writes our entries into their settings, and knows when they
//! last asked us.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ollm_catalog::connection::{
    ConnectedSettings, ConnectionSpec, MadeParts, about_event, asks_us, connected, disconnected, in_home, own_lines,
    rejected, switches_hooks_off, without_own_lines,
};
use ollm_process::{Children, End, Job, Limits, find_program};
use ollm_protocol::dialect::agents::home::{Commands, Form, LineShell, OwnFile};
use ollm_protocol::dialect::{AGENTS, Addressee, AgentDialect, agent_named, by_name};
use ollm_protocol::{Code, Event, EventKind};
use ollm_store::{FileError, digest_bytes, read_bounded, replace_through_links, write_atomic};

use crate::app_context::AppContext;
use crate::error::AppError;

mod boxed;
mod import;
mod line;
pub(crate) mod nonce;
mod record;
mod status;

pub use boxed::{ShellCalls, can_box, into_box};
pub use import::{ImportPlan, plan_import};
pub use line::{Caller, line};

use record::{Original, Record};
pub use status::{AgentStatus, Asker, Link, LinkState, agents, asker_of, number_of, remember_fired, status};

/// Larger settings files are not changed.
const LARGEST_FILE: u64 = 4 << 20;

/// Whose work the settings apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of a person's work.
    User,
    /// The project, for everybody who works in it.
    Project,
}

impl Scope {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
        }
    }
}

/// A planned change of an agent's settings.
#[derive(Debug)]
pub struct Plan<'a> {
    /// The agent.
    pub agent: &'a AgentDialect,
    scope: Scope,
    /// The files that change, with their content before and after.
    pub files: Vec<PlannedFile>,
    /// Warnings for the person about how the agent treats the change.
    pub warnings: Vec<String>,
    made: MadeParts,
}

/// A file before and after the change.
#[derive(Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its present content; `None` if the file does not exist.
    pub before: Option<String>,
    /// Its planned content; `None` if the file is removed.
    pub after: Option<String>,
    executable: bool,
    /// Whether it holds text of others, so that a copy is kept.
    precious: bool,
}

impl PlannedFile {
    /// Whether anything changes.
    pub fn changes(&self) -> bool {
        self.before != self.after
    }
}

/// The agent of this name.
pub fn agent(name: &str) -> Result<&'static AgentDialect, AppError> {
    let known = || AGENTS.iter().copied().map(|agent| agent.name).collect::<Vec<_>>().join(", ");
    agent_named(name).ok_or_else(|| {
        AppError::new(Code::UnknownAgent, format!("no agent is called `{name}`"))
            .hint(format!("these are known: {}", known()))
    })
}

/// The file that an agent reads its hooks from.
pub fn place(agent: &AgentDialect, scope: Scope, context: &AppContext) -> Result<PathBuf, AppError> {
    match scope {
        Scope::User => {
            let home = context.places.user_home.as_deref();
            let place = in_home(agent, agent.home.user, home, &|name| context.variable(name));
            place.map(|place| context.cwd.join(place)).ok_or_else(homeless)
        }
        Scope::Project => {
            let below = agent.home.project.ok_or_else(|| {
                AppError::new(Code::UnknownAgent, format!("{} reads no hooks of a project", agent.title))
                    .hint("connect it for yourself")
            })?;
            Ok(project(context)?.join(below))
        }
    }
}

fn homeless() -> AppError {
    AppError::new(Code::NoFolder, "there is no home to look into").hint("set HOME")
}

fn project(context: &AppContext) -> Result<&Path, AppError> {
    context.places.project.as_deref().ok_or_else(|| {
        AppError::new(Code::NoProject, "this folder is in no project")
            .hint("a project is a folder with `.git` or `.ollm`; `mkdir .ollm` makes this one")
    })
}

/// Plans the settings of an agent that asks us.
pub fn plan<'a>(
    agent: &'a AgentDialect,
    scope: Scope,
    caller: &Caller<'_>,
    context: &AppContext,
) -> Result<Plan<'a>, AppError> {
    if caller.shell_calls == ShellCalls::InBox && !can_box(agent) {
        let message =
            format!("{} lets no hook change a command, so its commands cannot be put into a box", agent.title);
        return Err(AppError::usage(message).hint("connect it without a box: its commands then meet the guards only"));
    }
    let place = place(agent, scope, context)?;
    let line = |event: &str| line(agent, scope, event, caller);
    if let Form::Own(files) = agent.home.form {
        let files = files(&Commands { events: agent.home.events, line: &line });
        let own = |file: OwnFile| own_file(agent, scope, &place.join(&file.path), file, context);
        let files = files.into_iter().map(own).collect::<Result<Vec<_>, _>>()?;
        return Ok(Plan { agent, scope, files, warnings: Vec::new(), made: MadeParts::default() });
    }
    let before = read(&place)?;
    if before.is_none() && place.is_symlink() {
        return Err(AppError::new(Code::NotWritten, FileError::Link { path: place }.to_string()));
    }
    let text = before.as_deref().unwrap_or_default();
    let ConnectedSettings { text: after, made } =
        connected(text, &ConnectionSpec { agent, line: &line }).map_err(|why| broken(&place, &why))?;
    let mut warnings = Vec::new();
    if switches_hooks_off(&after) {
        warnings.push(format!(
            "{} has all hooks switched off in {}; ours will not run either",
            agent.title,
            place.display()
        ));
    }
    if let Some(why) = rejected(&after, &agent.home) {
        warnings.push(format!("{} does not read {}: {why}; mend that first", agent.title, place.display()));
    }
    let precious = before.is_some();
    let file = PlannedFile { path: place, before, after: Some(after), executable: false, precious };
    Ok(Plan { agent, scope, files: vec![file], warnings, made })
}

/// Plans the settings of an agent that no longer asks us.
pub fn plan_removal<'a>(agent: &'a AgentDialect, scope: Scope, context: &AppContext) -> Result<Plan<'a>, AppError> {
    let place = place(agent, scope, context)?;
    let record = Record::of(&record::Key { agent: agent.name, scope, file: &place }, context);
    let mut plan = Plan { agent, scope, files: Vec::new(), warnings: Vec::new(), made: MadeParts::default() };
    if let Form::Own(_) = agent.home.form {
        for path in own_paths(agent) {
            let path = place.join(path);
            let Some(before) = read(&path)? else { continue };
            if !asks_us(&before, agent.name) {
                plan.warnings.push(format!("{} is not ours any more and stays", path.display()));
                continue;
            }
            let precious = is_edited(agent, scope, &path, &before, context);
            let after = without_own_lines(&before, agent.name);
            plan.files.push(PlannedFile { path, before: Some(before), after, executable: false, precious });
        }
        return Ok(plan);
    }
    let Some(before) = read(&place)? else { return Ok(plan) };
    // If the file did not change since, its exact earlier content comes back.
    let untouched = record.as_ref().filter(|record| record.written == digest_bytes(before.as_bytes()));
    // A file that was moved away and replaced by a link is not the file that we made.
    let is_link = place.is_symlink();
    let after = match untouched.map(|record| &record.original) {
        Some(Original::Missing) if !is_link => None,
        Some(Original::Kept(copy)) if let Some(text) = read(copy)? => Some(text),
        _ => {
            let made = record
                .as_ref()
                .map_or_else(|| MadeParts { hooks: true, events: events(agent) }, |known| known.made.clone());
            let (text, empty) =
                disconnected(&before, agent.name, agent.home.form, &made).map_err(|why| broken(&place, &why))?;
            let created = !is_link && record.as_ref().is_none_or(|record| record.created);
            (!empty || !created || text == before).then_some(text)
        }
    };
    let precious = untouched.is_none();
    plan.files.push(PlannedFile { path: place, before: Some(before), after, executable: false, precious });
    Ok(plan)
}

impl Plan<'_> {
    /// Whether anything changes.
    pub fn changes(&self) -> bool {
        self.files.iter().any(PlannedFile::changes)
    }

    /// The lines that change, file by file.
    pub fn difference(&self) -> String {
        let files = self.files.iter().filter(|file| file.changes());
        let shown = files.map(|file| {
            let (before, after) =
                (file.before.as_deref().unwrap_or_default(), file.after.as_deref().unwrap_or_default());
            let path = file.path.display();
            let name = |text: &Option<String>| if text.is_some() { path.to_string() } else { "/dev/null".to_owned() };
            let lines = ollm_trust::changed_lines(before, after);
            format!("--- {}\n+++ {}\n{lines}", name(&file.before), name(&file.after))
        });
        shown.collect()
    }

    /// Writes the planned files, each atomically, after copying the earlier content. Returns the copies.
    pub fn carry_out(&self, context: &AppContext) -> Result<Vec<PathBuf>, AppError> {
        context.need_home()?;
        // If the agent asked us before, it did so by another connection.
        status::forget_fired(self.agent, context);
        let mut copies = Vec::new();
        for file in self.files.iter().filter(|file| file.changes()) {
            let precious = file.before.as_deref().filter(|_| file.precious);
            let backup = precious.map(|text| backup(self.agent, &file.path, text, context)).transpose()?;
            // Another program may have written to the file while the person reviewed the difference.
            if read(&file.path)? != file.before {
                let message = format!("{} changed meanwhile; nothing was written to it", file.path.display());
                return Err(AppError::new(Code::Busy, message).hint("try again"));
            }
            if let Some(text) = &file.after {
                write(&file.path, text, file.executable)?;
            } else {
                fs::remove_file(&file.path).map_err(|error| AppError::unwritten(&file.path, &error))?;
                remove_own_folders(&file.path);
            }
            copies.extend(backup.clone());
            let record = file.after.as_deref().filter(|text| asks_us(text, self.agent.name)).map(|text| Record {
                created: file.before.is_none(),
                original: backup.map_or(Original::Missing, Original::Kept),
                written: digest_bytes(text.as_bytes()),
                made: self.made.clone(),
            });
            let before = file.before.as_deref().map(|text| digest_bytes(text.as_bytes()));
            record::keep(
                &record::Key { agent: self.agent.name, scope: self.scope, file: &file.path },
                before,
                record.as_ref(),
                context,
            )?;
        }
        status::forget_fired(self.agent, context);
        Ok(copies)
    }
}

/// Forgets our entries that a person or another program removed.
pub fn forget(agent: &AgentDialect, scope: Scope, context: &AppContext) -> Result<(), AppError> {
    let place = place(agent, scope, context)?;
    let own = own_paths(agent).iter().map(|path| place.join(path)).collect::<Vec<_>>();
    for file in own.iter().chain([&place]) {
        let key = record::Key { agent: agent.name, scope, file };
        if Record::of(&key, context).is_some() {
            record::keep(&key, None, None, context)?;
        }
    }
    status::forget_fired(agent, context);
    Ok(())
}

fn own_file(
    agent: &AgentDialect,
    scope: Scope,
    path: &Path,
    file: OwnFile,
    context: &AppContext,
) -> Result<PlannedFile, AppError> {
    let before = read(path)?;
    if before.as_deref().is_some_and(|text| !asks_us(text, agent.name)) {
        let message = format!("{} is there already and is not ours", path.display());
        return Err(AppError::new(Code::ForeignFile, message).hint("move it away, and try again"));
    }
    let precious = before.as_deref().is_some_and(|text| is_edited(agent, scope, path, text, context));
    Ok(PlannedFile { path: path.to_owned(), before, after: Some(file.text), executable: file.executable, precious })
}

/// Whether a file that is only ours was changed since we wrote it.
fn is_edited(agent: &AgentDialect, scope: Scope, file: &Path, text: &str, context: &AppContext) -> bool {
    let record = Record::of(&record::Key { agent: agent.name, scope, file }, context);
    record.is_none_or(|record| record.written != digest_bytes(text.as_bytes()))
}

/// The files in an agent's folder that are only ours.
fn own_paths(agent: &AgentDialect) -> Vec<String> {
    let Form::Own(files) = agent.home.form else { return Vec::new() };
    let files = files(&Commands { events: agent.home.events, line: &|_| String::new() });
    files.into_iter().map(|file| file.path).collect()
}

fn events(agent: &AgentDialect) -> Vec<String> {
    agent.home.events.iter().map(|event| (*event).to_owned()).collect()
}

fn read(path: &Path) -> Result<Option<String>, AppError> {
    let bytes = read_bounded(path, LARGEST_FILE).map_err(|error| AppError::new(Code::Unreadable, error.to_string()))?;
    bytes.map(|bytes| String::from_utf8(bytes).map_err(|_| broken(path, "it is not UTF-8 text"))).transpose()
}

fn write(path: &Path, text: &str, executable: bool) -> Result<(), AppError> {
    let mode = if executable { 0o755 } else { 0o644 };
    replace_through_links(path, text.as_bytes(), mode)
        .map_err(|error| AppError::new(Code::NotWritten, error.to_string()))
}

/// Removes the empty folders around a removed file of ours, up to the one with our name.
fn remove_own_folders(file: &Path) {
    let named = |folder: &&Path| folder.file_name().is_some_and(|name| name == "ollm");
    let Some(own) = file.ancestors().skip(1).find(named) else { return };
    let inner = file.ancestors().skip(1).take_while(|folder| folder.starts_with(own));
    // A folder with other files in it stays.
    inner.take_while(|folder| fs::remove_dir(folder).is_ok()).for_each(drop);
}

/// Copies the earlier content of a file to a place where no agent reads settings.
fn backup(agent: &AgentDialect, path: &Path, text: &str, context: &AppContext) -> Result<PathBuf, AppError> {
    let digest = digest_bytes(text.as_bytes()).to_string();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let short: String = digest.trim_start_matches("sha256:").chars().take(16).collect();
    let copy = context.state().join("backups").join(format!("{}-{short}-{name}", agent.name));
    write_atomic(&copy, text.as_bytes()).map_err(|error| AppError::new(Code::NotWritten, error.to_string()))?;
    Ok(copy)
}

fn broken(path: &Path, why: &str) -> AppError {
    AppError::new(Code::ForeignFile, format!("{}: {why}; it was not changed", path.display()))
        .hint("mend it first, or move it away")
}

/// The event that tests a new connection; no hook handles it.
pub const TEST_EVENT: &str = "ollm_connect_test";

/// The program that a line reached, if the line ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachedProgram {
    /// Our program, as far as can be known.
    Us,
    /// No program: on a machine without ours, a project's line does nothing.
    Nobody,
}

/// Runs our lines in an agent's files, in the agent's own shell, with an event that no hook handles. Returns the
/// problem, if there is one.
pub fn try_lines(agent: &AgentDialect, scope: Scope, context: &AppContext) -> Result<ReachedProgram, String> {
    let mut reached = ReachedProgram::Us;
    for line in lines_to_try(agent, scope, context)? {
        if try_line(agent, &line, context)? == ReachedProgram::Nobody {
            reached = ReachedProgram::Nobody;
        }
    }
    Ok(reached)
}

/// Our lines in an agent's files, changed to send the test event. Lines that differed only in their event become one.
fn lines_to_try(agent: &AgentDialect, scope: Scope, context: &AppContext) -> Result<BTreeSet<String>, String> {
    let lines = own_lines_of(agent, scope, context)?;
    if scope == Scope::Project && lines.iter().any(|found| !line::is_ours(agent, found)) {
        return Err("it is not as ollm writes it, and came with the project, so it was not tried".to_owned());
    }
    Ok(lines.iter().map(|line| about_event(line, TEST_EVENT)).collect())
}

/// Our lines in an agent's files.
fn own_lines_of(agent: &AgentDialect, scope: Scope, context: &AppContext) -> Result<Vec<String>, String> {
    let place = place(agent, scope, context).map_err(|error| error.message)?;
    let files = match agent.home.form {
        Form::Own(_) => own_paths(agent).iter().map(|path| place.join(path)).collect(),
        Form::Groups | Form::Flat(_) => vec![place],
    };
    let mut lines = Vec::new();
    for file in files {
        let text = read(&file).map_err(|error| error.message)?.unwrap_or_default();
        lines.extend(own_lines(&text, agent.name, agent.home.form)?);
    }
    Ok(lines)
}

/// How the lines in an agent's files treat its shell calls.
pub fn shell_calls(agent: &AgentDialect, scope: Scope, context: &AppContext) -> ShellCalls {
    let lines = own_lines_of(agent, scope, context).unwrap_or_default();
    let is_boxed = lines.iter().any(|line| line.split_whitespace().any(|word| word == "--box"));
    if is_boxed { ShellCalls::InBox } else { ShellCalls::AsTheyAre }
}

fn try_line(agent: &AgentDialect, line: &str, context: &AppContext) -> Result<ReachedProgram, String> {
    let dialect = by_name(agent.name).ok_or("its dialect is not known")?;
    let nonce = nonce::nonce();
    let event =
        Event::unchecked(EventKind::Custom, [("eventName", TEST_EVENT.into()), ("session_id", nonce.as_str().into())]);
    let (shell, option) = match agent.home.shell {
        LineShell::Sh => ("/bin/sh".into(), "-c"),
        LineShell::Bash => {
            let found = context.search_path().and_then(|path| find_program("bash", path));
            (found.unwrap_or_else(|| "/bin/bash".into()), "-c")
        }
        LineShell::Login => (context.variable("SHELL").map_or_else(|| "/bin/sh".into(), PathBuf::from), "-lc"),
    };
    let job = Job {
        args: vec![option.into(), line.into()],
        env: context.variables.clone(),
        cwd: Some(context.cwd.clone()),
        stdin: dialect.write_event(&event, &Addressee::new("ollm", "1.0.0")),
        limits: Limits { timeout: Duration::from_secs(20), ..Limits::default() },
        ..Job::new(shell)
    };
    let outcome = Children::new().run(job);
    match outcome.end {
        End::Exited(0) if nonce::is_unheard(&nonce, &event, dialect, context) => Ok(ReachedProgram::Nobody),
        End::Exited(0) => Ok(ReachedProgram::Us),
        // Agents that show nothing else are told of it by a failing line.
        End::Exited(_) if String::from_utf8_lossy(&outcome.stderr).contains(line::MISSING) => {
            Ok(ReachedProgram::Nobody)
        }
        End::Exited(status) => {
            let words = String::from_utf8_lossy(&outcome.stderr).trim().to_owned();
            Err(format!("it exited with status {status}{}{words}", if words.is_empty() { "" } else { ": " }))
        }
        other => Err(format!("{other:?}")),
    }
}
