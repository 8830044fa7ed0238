//! Looks over everything that is set up, and says what keeps it from working.
//!
//! It changes nothing and starts neither a hook nor a server; the lines by which other agents ask us are tried with an event that
//! no hook sees. Of the network it asks only where the model is.

use std::sync::Arc;

use ollm_catalog::{Moment, Problem, Severity, is_snapshot_current};
use ollm_protocol::units::counted;
use ollm_protocol::{Code, EventKind, Hook, Remedy, Source};

use crate::app::App;
use crate::app_context::AppContext;
use crate::command_box::{BoxStatus, CommandBox};
use crate::connect::{self, AgentStatus, Link, LinkState, Reached, Scope};
use crate::error::AppError;
use crate::model::{self, ModelConfig};
use crate::senders::unsent;
use crate::servers::Servers;
use crate::trace;

mod mend;

pub use mend::{Fix, mend};

/// What was looked at.
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

    /// The word for people.
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

/// Something that does not work, or not as somebody might think.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What it concerns.
    pub area: Area,
    /// How much it matters.
    pub weight: Weight,
    /// The stable code of what is wrong, where it has one.
    pub code: Option<Code>,
    /// What is wrong, in one sentence.
    pub what: String,
    /// What to do about it.
    pub way_out: Option<String>,
    /// How it can be mended without a person deciding anything.
    pub fix: Option<Fix>,
}

impl Finding {
    /// Something that was found, which only a person can mend.
    pub fn new(area: Area, weight: Weight, what: impl Into<String>, way_out: Option<String>) -> Finding {
        Finding { area, weight, code: None, what: what.into(), way_out, fix: None }
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

/// What was found, and what was looked at.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Examination {
    /// What is wrong, area by area.
    pub findings: Vec<Finding>,
    /// What there is, in a few words for each area that could be looked at.
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
        });
    }

    fn note(&mut self, area: Area, what: impl Into<String>, way_out: Option<String>) {
        self.findings.push(Finding::new(area, Weight::Note, what, way_out));
    }

    /// The last finding can be mended like this.
    fn mended_by(&mut self, fix: Fix) {
        if let Some(last) = self.findings.last_mut() {
            last.fix = Some(fix);
        }
    }

    fn problem(&mut self, area: Area, problem: &Problem) {
        let weight = if problem.severity == Severity::Warning { Weight::Note } else { Weight::Fault };
        self.findings.push(Finding {
            area,
            weight,
            code: Some(problem.code),
            what: problem.sentence(),
            way_out: None,
            fix: None,
        });
    }

    fn tells(&self, problem: &Problem) -> bool {
        let told = problem.sentence();
        self.findings.iter().any(|finding| finding.what == told)
    }
}

/// Looks over everything.
pub fn examine(context: &AppContext) -> Examination {
    let mut found = Examination::default();
    process(context, &mut found);
    match App::load(context) {
        Ok(app) => {
            files(&app, &mut found);
            guards(&app, &mut found);
            look_at_box(&app, context, &mut found);
            nested_projects(context, &mut found);
            approvals(&app, &mut found);
            hooks(&app, &mut found);
            look_at_model(&app, context, &mut found);
        }
        Err(error) => failed(Area::Files, &error, &mut found),
    }
    match Servers::load(context) {
        Ok(servers) => look_at_servers(&servers, &mut found),
        // The same file stopped the hooks, and was told there.
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
        found.fault(Code::Environment, Area::Process, oddity, None);
    }
    if ollm_store::current_uid() == 0 {
        let way_out = "start it as yourself".to_owned();
        found.note(Area::Process, "this runs as root, and so do its hooks", Some(way_out));
    }
    for relative in
        context.search_path().map(std::env::split_paths).into_iter().flatten().filter(|part| !part.is_absolute())
    {
        let what = format!("PATH has `{}`, which is no absolute path; hooks do not look there", relative.display());
        found.note(Area::Process, what, None);
    }
}

fn files(app: &App, found: &mut Examination) {
    found.saw(Area::Files, counted(app.extensions.iter().count(), "extension"));
    for problem in &app.problems {
        found.problem(Area::Files, problem);
    }
    snapshot(app.context(), found);
}

/// What was kept of the files for the next event.
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

fn look_at_box(app: &App, context: &AppContext, found: &mut Examination) {
    let status = CommandBox::new(context, &app.config).status();
    found.saw(Area::Box, status.name());
    if let Some(note) = status.note() {
        found.note(Area::Box, note, Some(context.tell(&Remedy::ShowConfiguration("agent"))));
    }
    match BoxStatus::of_programs() {
        BoxStatus::Unavailable(reason) => {
            let what = "hooks and servers of projects and extensions run without a box";
            found.note(Area::Box, format!("{what}, and those that declare `permissions` fail: {reason}"), None);
        }
        BoxStatus::Partial(reason) => {
            found.note(Area::Box, format!("hooks and servers run in a partial box: {reason}"), None);
        }
        BoxStatus::On | BoxStatus::Off => {}
    }
}

/// Folders within the project that are projects of their own by a `.ollm`: whoever works there has their hooks as well.
fn nested_projects(context: &AppContext, found: &mut Examination) {
    let Some(project) = context.places.project.as_deref() else { return };
    let nested = ollm_catalog::nested_projects(project);
    for folder in &nested.folders {
        let what = format!("{} is in the project and declares hooks of its own", folder.join(".ollm").display());
        found.note(Area::Guards, what, Some("remove it if you did not put it there".to_owned()));
    }
    if !nested.is_complete {
        found.note(Area::Guards, "the project has too many folders to look for others that declare hooks", None);
    }
}

fn approvals(app: &App, found: &mut Examination) {
    let trust = &app.engine.trust;
    if let Some(trouble) = trust.trouble() {
        found.fault(Code::BrokenApprovals, Area::Approvals, format!("nothing is approved: {trouble}"), None);
    }
    let signed = if trust.key().is_some() { ", signed" } else { "" };
    found.saw(Area::Approvals, format!("{}{signed}", trust.counting().list().len()));
}

fn hooks(app: &App, found: &mut Examination) {
    let hooks = app.hooks();
    let own = hooks.iter().filter(|hook| hook.spec.source != Source::Builtin);
    let (on, off): (Vec<_>, Vec<_>) = own.partition(|hook| hook.spec.enabled && hook.off.is_none());
    found.saw(Area::Hooks, format!("{} on, {} off", on.len(), off.len()));
    for hook in on {
        if let Some(why) = why_not(hook, app) {
            found.fault(Code::DoesNotRun, Area::Hooks, format!("`{}` does not run: {why}", hook.id()), None);
        }
    }
    for failing in trace::failing(app) {
        found.note(Area::Hooks, failing.line(app), None);
    }
    for event in unsent(hooks.iter().map(|hook| &**hook), app.context()) {
        let weight = if event.never { Weight::Fault } else { Weight::Note };
        found.findings.push(Finding {
            area: Area::Hooks,
            weight,
            code: Some(Code::NeverSent),
            what: event.line,
            way_out: None,
            fix: None,
        });
    }
    for script in &app.undeclared {
        let what = format!("{} is declared by no hook file and never runs", script.path.display());
        found.note(Area::Hooks, what, Some(app.context().tell(&script.remedy())));
    }
}

/// Why a hook that is switched on would not run, with the way out.
fn why_not(hook: &Arc<Hook>, app: &App) -> Option<String> {
    let refused = || app.engine.trust.forecast(hook, &app.engine.environment().trust_context());
    let refused = || refused().map(|refusal| refusal.detail);
    hook.broken.clone().or_else(refused).or_else(|| app.engine.unmet(hook).map(|skip| skip.detail))
}

fn look_at_servers(servers: &Servers<'_>, found: &mut Examination) {
    found.saw(Area::Servers, format!("{} declared", servers.all.len()));
    // What is wrong with other files was told already.
    for problem in servers.problems().filter(|problem| !found.tells(problem)).collect::<Vec<_>>() {
        found.problem(Area::Servers, problem);
    }
    for known in servers.all.iter().filter(|known| known.spec.enabled) {
        if let Some((code, why)) = servers.obstacle(known) {
            found.fault(code, Area::Servers, format!("`{}` is not started: {why}", known.spec.name), None);
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
            let what = match (&link.state, context.program.as_deref()) {
                (LinkState::Connected, Some(program)) => {
                    // The line as it stands there, through the shell that the agent would use.
                    let tried = connect::try_line(status.agent, link.scope, program, context);
                    let why = match tried {
                        Ok(Reached::Us) => None,
                        Ok(Reached::Nobody) => Some("it ends well, but its event does not come to us".to_owned()),
                        Err(why) => Some(why),
                    };
                    why.map(|why| format!("the line for {title} in {file} does not work: {why}"))
                }
                (LinkState::Connected, None) => None,
                (state, _) => Some(format!("{title} by {file}: {state}")),
            };
            if let Some(what) = what {
                found.fault(Code::LineFails, Area::Agents, what, Some(way_out(name, link, context)));
                if can_reconnect(link) {
                    found.mended_by(Fix::reconnect(status.agent, link));
                }
            }
        }
        if status.askers.len() > 1 {
            let files = status.askers.iter().map(|asker| asker.file.display().to_string());
            let files = files.collect::<Vec<_>>().join(" and ");
            found.fault(
                Code::Duplicate,
                Area::Agents,
                format!("{title} asks more than once at an event, by {files}"),
                None,
            );
        }
    }
}

/// Whether writing our entries once more mends them. Who took them out may not want them back.
fn can_reconnect(link: &Link) -> bool {
    match &link.state {
        LinkState::Moved(program) => program.contains('/'),
        LinkState::Incomplete | LinkState::Duplicated => true,
        LinkState::Connected | LinkState::Removed | LinkState::Broken(_) | LinkState::Ineffective(_) => false,
    }
}

/// How entries of ours work again.
fn way_out(agent: &'static str, link: &Link, context: &AppContext) -> String {
    match (&link.state, link.scope) {
        (LinkState::Broken(_) | LinkState::Ineffective(_), _) => "mend the file".to_owned(),
        (LinkState::Moved(program), _) if !program.contains('/') => "put its folder on your PATH".to_owned(),
        (_, Scope::User) => context.tell(&Remedy::ConnectAgent(agent)),
        (_, Scope::Project) => context.tell(&Remedy::ConnectInProject(agent)),
    }
}

fn look_at_model(app: &App, context: &AppContext, found: &mut Examination) {
    match model::open(None, &ModelConfig::of(&app.config), context) {
        Ok(model) => found.saw(Area::Model, model.name()),
        // Only the agent of our own needs one.
        Err(error) => {
            let hints = (!error.hints.is_empty()).then(|| error.hints.join("; "));
            found.note(Area::Model, error.message, hints);
        }
    }
}
