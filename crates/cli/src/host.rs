//! The agent's ports, plugged in: hooks by the engine, questions by the terminal, sessions by the home folder.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use ollm_agent::{
    Approval, Approve, Cancel, Consent, Decision, Events, Header, Limits, Message, Model, Opening, Ports, Request,
    Said, Session, Settings, ShellSettings, Show, StartError, Transcript, meant_by, session_id,
};
use ollm_catalog::Positions;
use ollm_engine::{Approver, Choice, Engine, Outcome, Question, Reason};
use ollm_protocol::matcher::{Matcher, Pattern};
use ollm_protocol::{Event, Hook};
use ollm_store::{Redactor, cut, escape_for_people, looks_secret, read_bounded};

use crate::agent::refuse_agents;
use crate::app::App;
use crate::arguments::agent::AgentArguments;
use crate::command::hook::asked;
use crate::error::{Failure, Kind};
use crate::model;
use crate::output::{ask, one_line};
use crate::world::World;

/// What the model is told before everything else.
const SYSTEM_PROMPT: &str = "You are a careful assistant that works in a folder on the person's machine. Use the tools \
to look before you change anything, keep changes small, and say plainly what you did and what you could not do.";

/// The most of a script that is shown with a question.
const LONGEST_SCRIPT: u64 = 16 << 10;
/// The most of a tool's arguments that is shown with a question: what is cut off is approved unseen.
const LONGEST_CALL: usize = 16 << 10;

/// All hooks, ready for an agent of our own.
pub(crate) fn load(world: &World) -> Result<App, Failure> {
    let mut app = App::load_with(world, Positions::OnDemand, answer_to)?;
    // An agent may not approve hooks for itself, so it is not asked either.
    if refuse_agents(world, "approve hooks").is_ok() {
        app.engine.trust.approver = Some(Box::new(Terminal));
    }
    Ok(app)
}

/// Everything a session begins with but its ports.
pub(crate) struct Host {
    pub(crate) cancel: Cancel,
    /// What the person should know before it begins.
    pub(crate) notes: Vec<String>,
    settings: Settings,
    model: Box<dyn Model>,
    transcript: Option<Transcript>,
    messages: Vec<Message>,
}

impl Host {
    /// Gathers model, settings and what was said before.
    pub(crate) fn gather(arguments: &AgentArguments, world: &World) -> Result<Host, Failure> {
        let mut model = model::open(arguments.model.as_deref(), world)?;
        if let Some(file) = &arguments.record {
            model = model::record(model, &world.cwd.join(file))?;
        }
        let past = past(arguments, world, model.name())?;
        let settings = settings(arguments, world, &past.id)?;
        let cancel = Cancel::default();
        Ok(Host { cancel, notes: past.notes, settings, model, transcript: past.transcript, messages: past.messages })
    }

    /// The session's id.
    pub(crate) fn id(&self) -> &str {
        &self.settings.session_id
    }

    /// The model's name.
    pub(crate) fn model(&self) -> &str {
        self.model.name()
    }

    /// Begins the session.
    pub(crate) fn start<'a>(
        self,
        engine: &'a Engine,
        show: impl Show + 'a,
        hear: impl FnMut(&Event, &Decision) + 'a,
    ) -> Result<Session<'a>, StartError> {
        Session::start(Opening {
            settings: self.settings,
            ports: Ports {
                events: Box::new(Hooks { engine, told: BTreeSet::new(), hear: Box::new(hear) }),
                approve: Box::new(Terminal),
                show: Box::new(show),
                sources: Vec::new(),
                clock: SystemTime::now,
            },
            model: self.model,
            transcript: self.transcript,
            messages: self.messages,
            cancel: self.cancel,
        })
    }
}

/// Where conversations are kept.
pub(crate) fn sessions(world: &World) -> PathBuf {
    world.places.home.join("sessions")
}

/// What was said before, and where the rest will be written.
struct Past {
    id: String,
    transcript: Option<Transcript>,
    messages: Vec<Message>,
    notes: Vec<String>,
}

fn past(arguments: &AgentArguments, world: &World, model: &str) -> Result<Past, Failure> {
    let redactor = Arc::new(Redactor::new(secrets(world)));
    let resumed = match &arguments.resume {
        Some(id) => Some(id.clone()),
        None if arguments.continue_last => Some(latest(world)?),
        None => None,
    };
    if let Some(id) = resumed {
        let resumed = Transcript::resume(&sessions(world), &id, redactor);
        let (transcript, saved) = resumed.map_err(|error| Failure::new(Kind::Usage, error.to_string()))?;
        let (id, messages, notes) = (saved.header.id, saved.messages, saved.notes);
        return Ok(Past { id, transcript: Some(transcript), messages, notes });
    }
    let now = SystemTime::now();
    let header = Header {
        id: session_id(now),
        started: ollm_agent::iso(now),
        cwd: world.cwd.display().to_string(),
        model: model.to_owned(),
    };
    let (transcript, notes) = match Transcript::create(&sessions(world), &header, redactor) {
        Ok(transcript) => (Some(transcript), Vec::new()),
        Err(error) => (None, vec![format!("{error}; the session is not saved")]),
    };
    Ok(Past { id: header.id, transcript, messages: Vec::new(), notes })
}

fn latest(world: &World) -> Result<String, Failure> {
    let listed = ollm_agent::list(&sessions(world));
    let (list, _) = listed.map_err(|error| Failure::new(Kind::Environment, error.to_string()))?;
    let here = world.cwd.display().to_string();
    let found = list.into_iter().find(|summary| summary.header.cwd == here);
    found.map(|summary| summary.header.id).ok_or_else(|| {
        Failure::new(Kind::Usage, "there is no earlier conversation in this folder")
            .hint("`ollm session list` shows those of other folders; go on with one by --resume ID")
    })
}

fn settings(arguments: &AgentArguments, world: &World, id: &str) -> Result<Settings, Failure> {
    let spill = world.places.home.join("state/output");
    // What cannot be made cannot be filled; the shell tool says so when it needs it.
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&spill).is_ok();
    let approval = Approval::ALL.iter().find(|(name, _)| *name == arguments.approval);
    let (_, approval) =
        approval.ok_or_else(|| Failure::usage(format!("--approval {}: no such mode", arguments.approval)))?;
    let kept = world.variables.iter().filter(|(name, _)| !name.to_str().is_some_and(looks_secret));
    let mut shell = ShellSettings::new(kept.cloned().collect(), &spill);
    id.clone_into(&mut shell.agent);
    let mut allowed: Vec<PathBuf> = arguments.allow.iter().map(|folder| world.cwd.join(folder)).collect();
    allowed.extend(made.then_some(spill));
    Ok(Settings {
        session_id: id.to_owned(),
        user: world.variable("USER"),
        cwd: world.cwd.clone(),
        allowed,
        system_prompt: SYSTEM_PROMPT.to_owned(),
        temperature: None,
        approval: *approval,
        shell,
        limits: Limits::default(),
    })
}

/// The values of variables that look like secrets.
fn secrets(world: &World) -> Vec<(String, String)> {
    let texts = world.variables.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    texts.filter(|(name, _)| looks_secret(name)).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The same hook, which also answers when one of our tools is called by the name it is known by elsewhere.
fn answer_to(mut hook: Hook) -> Hook {
    if let Matcher::List(patterns) = &mut hook.matcher {
        let meant = |pattern: &Pattern| match pattern {
            Pattern::Exact(name) => meant_by(name).map(|name| Pattern::Exact(name.to_owned())),
            Pattern::Prefix(_) | Pattern::Builtin => None,
        };
        let more: Vec<Pattern> = patterns.iter().filter_map(meant).collect();
        patterns.extend(more);
    }
    hook
}

type Hear<'a> = Box<dyn FnMut(&Event, &Decision) + 'a>;

/// The engine as the agent sees it.
struct Hooks<'a> {
    engine: &'a Engine,
    /// Hooks that did not run and that the person knows about.
    told: BTreeSet<String>,
    hear: Hear<'a>,
}

impl Events for Hooks<'_> {
    fn dispatch(&mut self, event: &Event) -> Decision {
        let outcome = self.engine.dispatch(event);
        let mut decision = decision(&outcome);
        decision.messages.extend(self.news(&outcome));
        (self.hear)(event, &decision);
        decision
    }
}

impl Hooks<'_> {
    /// What a person should know about hooks that did not run, once, and about those that failed.
    fn news(&mut self, outcome: &Outcome) -> Vec<Said> {
        let mut news = Vec::new();
        for skip in &outcome.skipped {
            let matters =
                matches!(skip.reason, Reason::Untrusted | Reason::Modified | Reason::Unsafe | Reason::Missing);
            if matters && self.told.insert(skip.hook.id().to_owned()) {
                news.push(said(&skip.hook.spec.name, &format!("did not run: {}", skip.detail)));
            }
        }
        for report in &outcome.reports {
            if let Some(error) = &report.error {
                news.push(said(&report.hook.spec.name, &format!("failed: {error}")));
            }
        }
        news
    }
}

fn decision(outcome: &Outcome) -> Decision {
    let verdict = &outcome.verdict;
    let stands = outcome.reports.iter().find(|report| report.verdict.flow == verdict.flow);
    // Without a report it is the approval that is missing.
    let name = stands.map(|report| &report.hook).or_else(|| outcome.skipped.first().map(|skip| &skip.hook));
    Decision {
        flow: verdict.flow,
        reason: verdict.reason(),
        refused_by: name.filter(|_| !verdict.flow.continues()).map(|hook| hook.spec.name.clone()),
        system_messages: verdict.system_messages.clone(),
        messages: by_hook(outcome, |verdict| &verdict.messages),
        context: verdict.context.clone(),
        args: outcome.modified_args.clone(),
        result: verdict.result.clone(),
        tools: verdict.tools.clone(),
        prompts: by_hook(outcome, |verdict| &verdict.prompts),
        data: verdict.data.clone(),
    }
}

fn by_hook(outcome: &Outcome, texts: fn(&ollm_protocol::Verdict) -> &Vec<String>) -> Vec<Said> {
    let reports = outcome.reports.iter();
    reports.flat_map(|report| texts(&report.verdict).iter().map(|text| said(&report.hook.spec.name, text))).collect()
}

fn said(hook: &str, text: &str) -> Said {
    Said { hook: hook.to_owned(), text: text.to_owned() }
}

/// The person at the terminal, if there is one.
#[derive(Debug)]
struct Terminal;

impl Approve for Terminal {
    fn ask(&mut self, request: &Request) -> Consent {
        let mut question = format!("\n{}", one_line(&request.operation));
        if let Some(args) = request.details.get("args") {
            let _ = write!(question, " {}", one_line(&cut(&args.to_string(), LONGEST_CALL)));
        }
        if let Some(reason) = &request.reason {
            let _ = write!(question, "\n  a hook wants you to decide: {}", one_line(reason));
        }
        question.push_str("\n  May it run? [y]es, [a]lways in this session, [N]o: ");
        match ask(&question).map(|answer| answer.to_lowercase()).as_deref() {
            Some("y" | "yes") => Consent::Yes,
            Some("a" | "always") => Consent::Always,
            Some(_) => Consent::No,
            None => Consent::Nobody,
        }
    }
}

impl Approver for Terminal {
    fn ask(&self, question: &Question<'_>) -> Choice {
        let hook = question.hook;
        let standing = if question.changed { "changed since it was approved" } else { "not approved yet" };
        let mut text = format!("\nThe {} hook `{}` is {standing}.\n", hook.spec.source.name(), one_line(hook.id()));
        for file in hook.spec.script().into_iter().chain(&hook.spec.inputs) {
            let content = read_bounded(file, LONGEST_SCRIPT).ok().flatten();
            let shown = content.map_or_else(
                || "(not shown: it is missing or too long; read it before you approve it)".to_owned(),
                |bytes| escape_for_people(&String::from_utf8_lossy(&bytes)).into_owned(),
            );
            let _ = write!(text, "--- {}\n{shown}\n---\n", one_line(&file.display().to_string()));
        }
        // Variables, headers and the folder decide what runs as much as the command does.
        let details = asked(hook, question.identity.digest.to_string(), question.changed);
        text.push_str(&escape_for_people(&details));
        text.push_str("To approve it for good: `ollm hook trust`.\n");
        text.push_str("May it run, as long as nothing of it changes? [o]nce, one [s]ession, [N]o: ");
        match ask(&text).map(|answer| answer.to_lowercase()).as_deref() {
            Some("o" | "once") => Choice::Once,
            Some("s" | "session") => Choice::Session,
            _ => Choice::No,
        }
    }
}
