//! Examines everything that is set up, and reports what does not work.
//!
//! It changes nothing and starts no hook and no server. It tries the lines by which other agents ask us with an event
//! that no hook handles. Its only network requests look for the model.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ollm_catalog::{Address, Moment, Problem, find_key, is_snapshot_current};
use ollm_engine::Reason;
use ollm_process::{ProcessBox, find_program};
use ollm_protocol::hook::Needs;
use ollm_protocol::units::counted;
use ollm_protocol::{Code, EventKind, Hook, Origin, Remedy, Source};
use ollm_shell::shell_word;

use crate::app::App;
use crate::app_context::AppContext;
use crate::command_box::{self, BoxStatus, CommandBox};
use crate::connect::{self, AgentStatus, Link, LinkState, ReachedProgram, Scope};
use crate::error::AppError;
use crate::model::{self, ModelConfig};
use crate::remote_files::is_remote;
use crate::senders::unsent;
use crate::servers::Servers;
use crate::trace;

mod mend;

pub use mend::{Fix, mend};

/// A part of the set-up that was examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// The process and the person it belongs to.
    Process,
    /// The files of settings, hooks and extensions.
    Files,
    /// The built-in guards.
    Guards,
    /// The box that shell commands of our own agent run in.
    Box,
    /// The list of approvals.
    Approvals,
    /// The hooks.
    Hooks,
    /// The MCP servers.
    Servers,
    /// Other agents that ask us.
    Agents,
    /// The model that our own agent asks.
    Model,
}

impl Area {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Area; 9] = [
        Area::Process,
        Area::Files,
        Area::Guards,
        Area::Box,
        Area::Approvals,
        Area::Hooks,
        Area::Servers,
        Area::Agents,
        Area::Model,
    ];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Area::Process => "process",
            Area::Files => "files",
            Area::Guards => "guards",
            Area::Box => "box",
            Area::Approvals => "approvals",
            Area::Hooks => "hooks",
            Area::Servers => "servers",
            Area::Agents => "agents",
            Area::Model => "model",
        }
    }
}

/// A problem, or something that may surprise a person.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The area it concerns.
    pub area: Area,
    /// How much it matters.
    pub weight: Weight,
    /// The stable code of the problem, if it has one.
    pub code: Option<Code>,
    /// The problem, in one sentence.
    pub what: String,
    /// The remedy.
    pub way_out: Option<String>,
    /// A fix that needs no decision by a person.
    pub fix: Option<Fix>,
    /// The place in a file that it is about, if there is one.
    pub problem: Option<Box<Problem>>,
}

impl Finding {
    /// A finding that only a person can fix.
    pub fn new(area: Area, weight: Weight, what: impl Into<String>, way_out: Option<String>) -> Finding {
        Finding { area, weight, code: None, what: what.into(), way_out, fix: None, problem: None }
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Something that was set up does not work.
    Fault,
    /// Everything works, but a person should know.
    Note,
}

impl Weight {
    /// The word for people.
    pub fn name(self) -> &'static str {
        match self {
            Weight::Fault => "fault",
            Weight::Note => "note",
        }
    }
}

/// The findings, and a summary of what was examined.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Examination {
    /// The findings, area by area.
    pub findings: Vec<Finding>,
    /// A short summary of each area that could be examined.
    pub looked_at: Vec<(Area, String)>,
}

impl Examination {
    /// Whether something that was set up does not work.
    pub fn has_faults(&self) -> bool {
        self.findings.iter().any(|finding| finding.weight == Weight::Fault)
    }

    fn saw(&mut self, area: Area, what: impl Into<String>) {
        self.looked_at.push((area, what.into()));
    }

    fn fault(&mut self, code: Code, area: Area, what: impl Into<String>, way_out: Option<String>) {
        self.findings.push(Finding {
            area,
            weight: Weight::Fault,
            code: Some(code),
            what: what.into(),
            way_out,
            fix: None,
            problem: None,
        });
    }

    fn note(&mut self, area: Area, what: impl Into<String>, way_out: Option<String>) {
        self.findings.push(Finding::new(area, Weight::Note, what, way_out));
    }

    /// Attaches a fix to the last finding.
    fn mended_by(&mut self, fix: Fix) {
        if let Some(last) = self.findings.last_mut() {
            last.fix = Some(fix);
        }
    }

    fn problem(&mut self, area: Area, problem: &Problem, context: &AppContext) {
        let help = problem.way_out(context.commands);
        let is_own = problem.file == context.places.config();
        let key = find_key(&problem.field).ok().filter(|key| is_own && !key.path.contains('*'));
        let remedy = match (problem.code, key) {
            (Code::WrongValue, Some(key)) => Remedy::Configure { key: key.path, value: Some("VALUE") },
            _ => Remedy::OpenFile { file: problem.file.clone(), line: problem.line },
        };
        self.fault(problem.code, area, matter(problem), Some(with_command(help, &remedy, context)));
        if let Some(last) = self.findings.last_mut() {
            last.problem = Some(Box::new(problem.clone()));
        }
    }

    fn tells(&self, problem: &Problem) -> bool {
        let told = matter(problem);
        // A broken list of approvals concerns hooks and servers, but is reported for neither of them.
        let is_told = |finding: &Finding| {
            finding.what == told || problem.code == Code::BrokenApprovals && finding.code == Some(problem.code)
        };
        self.findings.iter().any(is_told)
    }
}

/// The problem with a file, and where; the remedy is shown beside it.
fn matter(problem: &Problem) -> String {
    Problem { help: None, remedy: None, ..problem.clone() }.sentence()
}

/// The remedy with a command; if it names none, with this one.
fn with_command(way_out: Option<String>, remedy: &Remedy, context: &AppContext) -> String {
    match way_out {
        Some(told) if told.contains("`ollm ") => told,
        Some(told) => format!("{told}; {}", context.tell(remedy)),
        None => context.tell(remedy),
    }
}

/// Examines everything.
pub fn examine(context: &AppContext) -> Examination {
    let mut found = Examination::default();
    process(context, &mut found);
    match App::load(context) {
        Ok(app) => {
            files(&app, &mut found);
            guards(&app, &mut found);
            look_at_box(&app, context, &mut found);
            nested_projects(context, &mut found);
            approvals(&app, context, &mut found);
            hooks(&app, &mut found);
            look_at_model(&app, context, &mut found);
        }
        Err(error) => failed(Area::Files, &error, &mut found),
    }
    match Servers::load(context) {
        Ok(servers) => look_at_servers(&servers, context, &mut found),
        // The same file stopped the hooks, and is reported there.
        Err(_) if !found.findings.is_empty() => {}
        Err(error) => failed(Area::Servers, &error, &mut found),
    }
    look_at_agents(context, &mut found);
    found.findings.sort_by_key(|finding| Area::ALL.iter().position(|area| *area == finding.area));
    found
}

fn failed(area: Area, error: &AppError, found: &mut Examination) {
    let hints = error.hints.join("; ");
    found.fault(error.code, area, &error.message, (!hints.is_empty()).then_some(hints));
}

fn process(context: &AppContext, found: &mut Examination) {
    let home = context.own_home().map_or_else(|| "no home".to_owned(), |home| home.display().to_string());
    let project = context.places.project.as_deref().map(|project| format!(", project {}", project.display()));
    found.saw(Area::Process, format!("{home}{}", project.unwrap_or_default()));
    if let Err(error) = context.need_home() {
        failed(Area::Process, &error, found);
    }
    for oddity in &context.oddities {
        found.fault(Code::Environment, Area::Process, oddity, Some("`unset OLLM_HOME`".to_owned()));
    }
    if ollm_store::current_uid() == 0 {
        let user = context.variable("SUDO_USER").unwrap_or_else(|| "NAME".to_owned());
        let way_out = format!("start it as yourself: `su - {}`", shell_word(&user));
        found.note(Area::Process, "this runs as root, and so do its hooks", Some(way_out));
    }
    let path = context.search_path().unwrap_or_default();
    if path.is_empty() {
        let what = "PATH is empty, so no program is found by its name";
        found.fault(
            Code::Environment,
            Area::Process,
            what,
            Some("`export PATH=/usr/local/bin:/usr/bin:/bin`".to_owned()),
        );
        return;
    }
    let (absolute, relative): (Vec<_>, Vec<_>) = std::env::split_paths(path).partition(|part| part.is_absolute());
    for relative in relative {
        let what = format!("PATH has `{}`, which is no absolute path; hooks do not look there", relative.display());
        let rest = std::env::join_paths(&absolute).unwrap_or_default();
        let way_out = format!("`export PATH={}`", shell_word(&rest.to_string_lossy()));
        found.fault(Code::Environment, Area::Process, what, Some(way_out));
    }
}

fn files(app: &App, found: &mut Examination) {
    found.saw(Area::Files, counted(app.extensions.iter().count(), "extension"));
    for problem in &app.problems {
        found.problem(Area::Files, problem, app.context());
    }
    snapshot(app.context(), found);
}

/// Checks the stored snapshot of the files.
fn snapshot(context: &AppContext, found: &mut Examination) {
    let Some(folder) = context.snapshots() else { return };
    let env = |name: &str| context.variable(name);
    let moment = Moment { kind: EventKind::SessionStart, subject: None };
    if is_snapshot_current(&folder, &context.places, &env, &context.overrides, &moment) == Some(false) {
        let what = "what is kept of the files is outdated; the next event reads them anew";
        found.note(Area::Files, what, None);
        found.mended_by(Fix::ForgetSnapshots);
    }
}

fn guards(app: &App, found: &mut Examination) {
    match app.what_is_off() {
        Some(off) => {
            let way_out = app.context().tell(&Remedy::ShowConfiguration("hooks"));
            found.fault(Code::GuardsOff, Area::Guards, off, Some(way_out));
        }
        None => found.saw(Area::Guards, "all on"),
    }
}

/// The Landlock version that prevents programs from signalling others.
const SIGNALS: i64 = 6;

fn look_at_box(app: &App, context: &AppContext, found: &mut Examination) {
    let status = CommandBox::new(context, &app.config).status();
    let of_programs = BoxStatus::of_programs();
    let landlock = ProcessBox::landlock_version().map(|version| format!("Landlock {version}"));
    let landlock = landlock.as_deref().unwrap_or("nothing");
    let means = match status {
        BoxStatus::On => "by namespaces",
        BoxStatus::Partial(_) => "by Landlock",
        BoxStatus::Unavailable(_) | BoxStatus::Off => "by nothing",
    };
    let (name, programs) = (status.name(), of_programs.name());
    let account = command_box::account_home(context).filter(|_| status != BoxStatus::Off);
    let also = account.map(|home| format!(", also for what is in {}", home.display())).unwrap_or_default();
    found.saw(Area::Box, format!("{name}, {means}{also}; hooks and servers: {programs}, by {landlock}"));
    if let Some(note) = status.note() {
        let way_out = match status {
            BoxStatus::Off => context.tell(&Remedy::Configure { key: "agent.box", value: Some("on") }),
            _ => kernel_switch().unwrap_or_else(|| context.tell(&Remedy::ShowConfiguration("agent"))),
        };
        told_of_box(&status, note, way_out, found);
    }
    if let Some(note) = command_box::foreign_project(context).filter(|_| status == BoxStatus::On) {
        found.note(Area::Box, note, None);
    }
    if let Some(note) = command_box::remote_place(context, &is_remote) {
        found.note(Area::Box, note, None);
    }
    let newer = "a newer kernel with Landlock holds all of it; `cat /sys/kernel/security/lsm` shows what this one has";
    if status == BoxStatus::On && ProcessBox::landlock_version().is_none_or(|version| version < SIGNALS) {
        let what = "a command in the box can signal your other programs; where it ends `ollm` itself, nothing is restored after it";
        found.note(Area::Box, what, Some(newer.to_owned()));
    }
    let what = match &of_programs {
        BoxStatus::Unavailable(reason) => {
            let what = "hooks and servers of projects and extensions run without a box";
            format!("{what}, and those that declare `permissions` fail: {reason}")
        }
        BoxStatus::Partial(reason) => format!("hooks and servers run in a partial box: {reason}"),
        BoxStatus::On | BoxStatus::Off => return,
    };
    told_of_box(&of_programs, what, newer.to_owned(), found);
}

/// Reports the state of a box. A missing box is a fault; a weak or switched-off one is a note.
fn told_of_box(status: &BoxStatus, what: String, way_out: String, found: &mut Examination) {
    match status {
        BoxStatus::Unavailable(_) => found.fault(Code::NoBox, Area::Box, what, Some(way_out)),
        _ => found.note(Area::Box, what, Some(way_out)),
    }
}

/// The kernel setting that forbids namespaces to programs, as the command that changes it.
fn kernel_switch() -> Option<String> {
    const SWITCHES: [(&str, &str, &str); 4] = [
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "15000"),
        ("user.max_mnt_namespaces", "0", "15000"),
    ];
    let is_set = |name: &str, value: &str| {
        let file = format!("/proc/sys/{}", name.replace('.', "/"));
        std::fs::read_to_string(file).is_ok_and(|found| found.trim() == value)
    };
    let (name, _, free) = SWITCHES.into_iter().find(|(name, value, _)| is_set(name, value))?;
    Some(format!("`sudo sysctl -w {name}={free}` allows namespaces"))
}

/// Folders within the project that are projects themselves, because they have a `.ollm`. Work in them also runs their
/// hooks.
fn nested_projects(context: &AppContext, found: &mut Examination) {
    let Some(project) = context.places.project.as_deref() else { return };
    let nested = ollm_catalog::nested_projects(project);
    for folder in &nested.folders {
        let what =
            format!("{} is in the project: work in that folder runs hooks of its own", folder.join(".ollm").display());
        let folder = folder.join(".ollm").display().to_string();
        let way_out = format!("if you did not put it there, `rm -r {}` removes it", shell_word(&folder));
        found.note(Area::Guards, what, Some(way_out));
    }
    if !nested.is_complete {
        let way_out = format!("`find {} -name .ollm` finds them", shell_word(&project.display().to_string()));
        let what = "the project has too many folders to look for others with hooks of their own";
        found.note(Area::Guards, what, Some(way_out));
    }
}

fn approvals(app: &App, context: &AppContext, found: &mut Examination) {
    let trust = &app.engine.trust;
    if let Some(trouble) = trust.trouble() {
        let (what, way_out) = parted(&trouble);
        let file = Remedy::OpenFile { file: context.approvals(), line: 0 };
        let way_out = with_command(way_out, &file, context);
        found.fault(Code::BrokenApprovals, Area::Approvals, format!("nothing is approved: {what}"), Some(way_out));
    }
    let signed = if trust.key().is_some() { ", signed" } else { "" };
    found.saw(Area::Approvals, format!("{}{signed}", trust.counting().list().len()));
}

fn hooks(app: &App, found: &mut Examination) {
    let hooks = app.hooks();
    let own = hooks.iter().filter(|hook| hook.spec.source != Source::Builtin);
    let (on, off): (Vec<_>, Vec<_>) = own.partition(|hook| hook.spec.enabled && hook.off.is_none());
    found.saw(Area::Hooks, format!("{} on, {} off", on.len(), off.len()));
    let mut faulty = BTreeSet::new();
    // What keeps several hooks from running is reported once.
    let mut kept: Vec<(String, Vec<&Arc<Hook>>)> = Vec::new();
    for hook in on {
        if let Some(why) = why_not(hook, app) {
            faulty.insert(hook.id().to_owned());
            match kept.iter_mut().find(|(other, _)| *other == why) {
                Some((_, hooks)) => hooks.push(hook),
                None => kept.push((why, vec![hook])),
            }
        }
    }
    for (why, hooks) in kept {
        let Some((hook, others)) = hooks.split_first() else { continue };
        let (what, way_out) = parted(&format!("`{}` {why}", hook.id()));
        let way_out = installing(hook, &what, way_out, app.context());
        let way_out = with_command(way_out, &mending(hook), app.context());
        let others: Vec<_> = others.iter().map(|other| format!("`{}`", other.id())).collect();
        let also = if others.is_empty() { String::new() } else { format!(" (also {})", others.join(", ")) };
        found.fault(Code::DoesNotRun, Area::Hooks, what + &also, Some(way_out));
    }
    // The reason why a hook does not work is reported once.
    for failing in trace::failing(app).into_iter().filter(|failing| !faulty.contains(&failing.id)) {
        let (what, way_out) = failing.parts(app);
        found.findings.push(Finding::new(Area::Hooks, Weight::Fault, what, Some(way_out)));
    }
    for event in unsent(hooks.iter().map(|hook| &**hook), app.context()) {
        let weight = if event.never { Weight::Fault } else { Weight::Note };
        let (what, way_out) = parted(&event.line);
        let code = Some(Code::NeverSent);
        found.findings.push(Finding { area: Area::Hooks, weight, code, what, way_out, fix: None, problem: None });
    }
    for script in &app.undeclared {
        let what = format!("{} is declared by no hook file and never runs", script.path.display());
        found.fault(Code::UndeclaredScript, Area::Hooks, what, Some(app.context().tell(&script.remedy())));
    }
}

/// The remedy for a hook that does not run. Of an unreadable hook only the location is known.
fn mending(hook: &Hook) -> Remedy {
    let Origin { file, line, .. } = &hook.spec.origin;
    match hook.broken {
        Some(_) => Remedy::OpenFile { file: file.clone(), line: *line },
        None => Remedy::EditHook(hook.id().to_owned()),
    }
}

/// The remedy, with how to install the first program that a hook lacks.
fn installing(hook: &Hook, what: &str, way_out: Option<String>, context: &AppContext) -> Option<String> {
    let program = match hook.spec.action.needs() {
        Needs::Program { program, .. } => Some(program),
        _ => None,
    };
    let needed = program.into_iter().chain(hook.spec.requires.commands.iter().map(String::as_str));
    with_installation(needed, what, way_out, context)
}

/// The remedy, or how to install the first of these programs that is missing, if that is what was reported.
fn with_installation<'n>(
    mut needed: impl Iterator<Item = &'n str>,
    what: &str,
    way_out: Option<String>,
    context: &AppContext,
) -> Option<String> {
    let path = context.search_path().unwrap_or_default();
    let is_told = way_out.as_deref().is_some_and(|way_out| way_out.contains("`ollm "));
    match needed.find(|name| !name.contains('/') && find_program(name, path).is_none()) {
        Some(missing) if !is_told && what.contains(&format!("`{missing}`")) => {
            Some(context.tell(&Remedy::InstallProgram(missing.to_owned())))
        }
        _ => way_out,
    }
}

/// The reason why a hook that is switched on would not run, or would fail, with the remedy.
fn why_not(hook: &Arc<Hook>, app: &App) -> Option<String> {
    if hook.broken.is_some() {
        return Some("refuses whatever it is for; mend its declaration, which `files` is about".to_owned());
    }
    let holds_up = if hook.is_gate() { " and holds them up" } else { "" };
    let fails = |why: &str| Some(format!("fails at each of its events{holds_up}: {why}"));
    match app.engine.obstacle(hook) {
        Ok(Some(why)) => fails(&why),
        // The guards already report that all hooks are off.
        Err(skip) if skip.reason == Reason::Disabled => None,
        Err(skip) => Some(format!("does not run: {}", skip.detail)),
        Ok(None) => match app.engine.unmet(hook)? {
            skip if hook.is_gate() => fails(&skip.detail),
            skip => Some(format!("does not run: {}", skip.detail)),
        },
    }
}

/// Splits a line into the problem and its remedy.
fn parted(line: &str) -> (String, Option<String>) {
    match line.split_once("; ") {
        Some((what, way_out)) => (what.to_owned(), Some(way_out.to_owned())),
        None => (line.to_owned(), None),
    }
}

fn look_at_servers(servers: &Servers<'_>, context: &AppContext, found: &mut Examination) {
    found.saw(Area::Servers, format!("{} declared", servers.all.len()));
    // Problems with other files were already reported.
    for problem in servers.problems().filter(|problem| !found.tells(problem)).collect::<Vec<_>>() {
        found.problem(Area::Servers, problem, context);
    }
    for known in servers.all.iter().filter(|known| known.spec.enabled) {
        if let Some((code, why)) = servers.obstacle(known) {
            let (what, way_out) = parted(&format!("`{}` is not started: {why}", known.spec.name));
            let program = match &known.spec.address {
                Address::Command { command, .. } => Some(command.as_str()),
                Address::Url { .. } => None,
            };
            let way_out = with_installation(program.into_iter(), &what, way_out, context);
            let file = Remedy::OpenFile { file: known.spec.origin.file.clone(), line: known.spec.origin.line };
            found.fault(code, Area::Servers, what, Some(with_command(way_out, &file, context)));
        }
    }
}

fn look_at_agents(context: &AppContext, found: &mut Examination) {
    let all = connect::agents(context);
    let linked: Vec<&AgentStatus> = all.iter().filter(|status| !status.links.is_empty()).collect();
    let connected = linked.iter().filter(|status| !status.askers.is_empty()).count();
    let asks = linked.iter().filter(|status| status.asks()).count();
    found.saw(Area::Agents, format!("{connected} connected, {asks} of them asked already"));
    for status in linked {
        let (name, title) = (status.agent.name, status.agent.title);
        for link in &status.links {
            let file = link.file.display();
            let what = match &link.state {
                // Tries the lines as they stand in the file, in the shell that the agent would use.
                LinkState::Connected => {
                    let why = match connect::try_lines(status.agent, link.scope, context) {
                        Ok(ReachedProgram::Us) => None,
                        Ok(ReachedProgram::Nobody) => {
                            Some("it ends well, but its event does not come to us".to_owned())
                        }
                        Err(why) => Some(why),
                    };
                    why.map(|why| format!("the line for {title} in {file} does not work: {why}"))
                }
                state => Some(format!("{title} by {file}: {state}")),
            };
            if let Some(what) = what {
                found.fault(Code::LineFails, Area::Agents, what, Some(way_out(name, link, context)));
                if can_reconnect(link) {
                    found.mended_by(Fix::reconnect(status.agent, link, context));
                }
            }
        }
        if status.askers.len() > 1 {
            let files = status.askers.iter().map(|asker| asker.file.display().to_string());
            let files = files.collect::<Vec<_>>().join(" and ");
            let what = format!("{title} asks more than once at an event, by {files}");
            let endings = status.askers.iter().map(|asker| {
                let is_project = asker.scope == Scope::Project;
                context.tell(&Remedy::DisconnectAgent { name: asker.agent, is_project })
            });
            found.fault(Code::Duplicate, Area::Agents, what, endings.last());
        }
    }
}

/// Whether writing our entries again fixes them. A person who removed them may not want them back.
fn can_reconnect(link: &Link) -> bool {
    match &link.state {
        LinkState::Moved(program) => program.contains('/'),
        LinkState::Incomplete | LinkState::Duplicated => true,
        LinkState::Connected | LinkState::Removed | LinkState::Broken(_) | LinkState::Ineffective(_) => false,
    }
}

/// The remedy that makes our entries work again.
fn way_out(agent: &'static str, link: &Link, context: &AppContext) -> String {
    match (&link.state, link.scope) {
        (LinkState::Broken(_) | LinkState::Ineffective(_), _) => {
            context.tell(&Remedy::OpenFile { file: link.file.clone(), line: 0 })
        }
        (LinkState::Moved(program), _) if !program.contains('/') => {
            let folder = context.program.as_deref().and_then(Path::parent);
            let folder = folder.map_or_else(|| "FOLDER".into(), |folder| folder.to_string_lossy());
            format!("`export PATH={}:\"$PATH\"` finds it", shell_word(&folder))
        }
        (_, Scope::User) => context.tell(&Remedy::ConnectAgent(agent)),
        (_, Scope::Project) => context.tell(&Remedy::ConnectInProject(agent)),
    }
}

fn look_at_model(app: &App, context: &AppContext, found: &mut Examination) {
    match model::open(None, &ModelConfig::of(&app.config), context) {
        Ok(model) => found.saw(Area::Model, model.name()),
        // Only our own agent needs a model.
        Err(error) => {
            let hints = (!error.hints.is_empty()).then(|| error.hints.join("; "));
            found.note(Area::Model, error.message, hints);
        }
    }
}
