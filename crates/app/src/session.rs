//! Connects the agent's ports: hooks to the engine, questions to the terminal, sessions to the home folder.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ollm_agent::{
    Approval, Approve, Cancel, Header, Limits, Message, Model, Opening, Ports, SavedCounts, SavedSession, Session,
    Settings, ShellSettings, Show, StartError, ToolSource, Transcript, TranscriptError, UserData, session_id,
};
use ollm_catalog::Config;
use ollm_protocol::{Code, Remedy};
use ollm_store::{Redactor, looks_secret};
use ollm_trust::Approver;

use crate::agent_signs::refuse_agents;
use crate::app::{App, LoadOptions};
use crate::app_context::AppContext;
use crate::command_box::{BoxStatus, CommandBox};
use crate::complete::user_data;
use crate::error::AppError;
use crate::model::{self, ModelConfig, OpenedModel};
use crate::nested::refuse_too_deep;
use crate::port::Notices;
use crate::questions::{Questions, Sampler};
use crate::servers::DECLARED;
use crate::telemetry::Telemetry;
use crate::trace;

mod hooks;
mod late;
mod prompt;

pub(crate) use hooks::Hooks;
pub use hooks::{EventListener, HookContext};
pub use prompt::{PromptOutcome, PromptPorts, run_prompt};

/// The system prompt of the model.
const SYSTEM_PROMPT: &str = "You are a careful assistant that works in a folder on the person's machine. Use the tools \
to look before you change anything, keep changes small, and say plainly what you did and what you could not do.";

/// The limit on a call of another source's tool; the source has limits of its own.
const LONGEST_CALL: Duration = Duration::from_hours(1);

/// How long an agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionKind {
    /// For one task: async hooks may run longer, and another process takes them over.
    Prompt,
    /// For a conversation: async hooks run beside it.
    Chat,
}

impl SessionKind {
    /// The agent's mode, as hooks see it.
    pub fn name(self) -> &'static str {
        match self {
            SessionKind::Prompt => "run",
            SessionKind::Chat => "chat",
        }
    }
}

/// Options of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionOptions {
    /// The model, as `PROVIDER:NAME[@BASE_URL]`; else the environment's, else the configured one.
    pub model: Option<String>,
    /// When to ask before a tool runs.
    pub approval: Approval,
    /// More folders that tools may use.
    pub allow: Vec<PathBuf>,
    /// The file that records the model's answers.
    pub record: Option<PathBuf>,
    /// The earlier conversation to continue.
    pub resume: Option<Resume>,
    /// How long the agent runs; hooks see it as the agent's mode.
    pub kind: SessionKind,
}

/// The conversation to continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The conversation with this id, or whose id begins so.
    Id(String),
    /// The latest conversation in this folder.
    Latest,
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions {
            model: None,
            approval: Approval::Ask,
            allow: Vec::new(),
            record: None,
            resume: None,
            kind: SessionKind::Prompt,
        }
    }
}

/// Loads all hooks for our own agent. The approver is asked about hooks without an approval.
pub fn load(context: &AppContext, visit: SessionKind, approver: Option<Box<dyn Approver>>) -> Result<App, AppError> {
    refuse_too_deep("no session begins", context)?;
    let mut stay = LoadOptions::short(context);
    stay.background = stay.background.filter(|_| visit == SessionKind::Prompt);
    let mut app = read(context, stay)?;
    app.tools(context);
    let (telemetry, troubles) =
        Telemetry::start(&app.config.telemetry(), &context.network, &|name| context.variable(name));
    app.telemetry = telemetry.map(Arc::new);
    trace::listen(&mut app);
    app.troubles = troubles;
    // An agent may not approve hooks for itself, so it is not asked.
    if refuse_agents(context, "approve hooks").is_ok() {
        app.engine.trust.approver = approver;
    }
    Ok(app)
}

/// Reloads all hooks for an agent that is already running.
pub fn load_again(context: &AppContext, previous: &App) -> Result<App, AppError> {
    read(context, LoadOptions { background: None, previous: Some(previous), ..LoadOptions::short(context) })
}

fn read(context: &AppContext, stay: LoadOptions<'_>) -> Result<App, AppError> {
    let mut app = App::load_with(context, stay)?;
    // The reader of all server declarations reports their problems.
    app.problems.retain(|problem| !problem.field.starts_with(DECLARED));
    Ok(app)
}

/// Everything a session starts with, except its ports.
pub struct SessionSetup {
    /// Interrupts the running work.
    pub cancel: Cancel,
    /// Notes for the person before it starts.
    pub notes: Vec<String>,
    /// The box of its shell commands.
    pub shell_box: BoxStatus,
    settings: Settings,
    model: Box<dyn Model>,
    transcript: Option<Transcript>,
    messages: Vec<Message>,
    counts: Option<SavedCounts>,
}

impl SessionSetup {
    /// Collects the model, the settings and the earlier conversation.
    pub fn gather(options: &SessionOptions, app: &App, cancel: &Cancel) -> Result<SessionSetup, AppError> {
        let context = app.context();
        // Looking for the conversation is quick; the model may take a while.
        let past = resumed(options, app, context)?;
        let wish = ModelConfig::of(&app.config);
        let OpenedModel { mut model, why } = model::choose(options.model.as_deref(), &wish, context)?;
        if let Some(file) = &options.record {
            model = model::record(model, &context.cwd.join(file))?;
        }
        if let Some(mcp_tools) = &app.mcp_tools
            && let Some(questions) = Questions::new(context, Sampler::new(&app.config, options.model.as_deref()))
        {
            mcp_tools.answer_with(questions);
        }
        let past = past.unwrap_or_else(|| begun(app, context, model.name()));
        let mut settings = Settings {
            limits: limits(&wish, &app.config),
            user_data: user_data(&app.config),
            ..settings(options, &wish, context, &past.id)
        };
        let command_box = CommandBox::new(context, &app.config);
        let shell_box = command_box.status();
        settings.shell.shell_box = Some(Arc::new(command_box));
        let mut notes = past.notes;
        notes.extend(shell_box.note());
        notes.extend(why.map(|why| format!("no model is named, so {} answers, {why}", model.name())));
        let cancel = cancel.clone();
        Ok(SessionSetup {
            cancel,
            notes,
            shell_box,
            settings,
            model,
            transcript: past.transcript,
            messages: past.messages,
            counts: past.counts,
        })
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.settings.session_id
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        self.model.name()
    }

    /// Begins the session.
    pub fn start<'a, 'o: 'a>(
        self,
        hook_context: HookContext<'a, 'o>,
        approve: Box<dyn Approve + 'a>,
        show: Box<dyn Show + 'a>,
        hear: EventListener<'a>,
    ) -> Result<Session<'a>, StartError> {
        let sources = sources(&hook_context.app.read(), &mut *hook_context.notices.lock());
        Session::start(Opening {
            settings: self.settings,
            ports: Ports {
                events: Box::new(Hooks::new(hook_context, self.cancel.clone(), hear)),
                approve,
                show,
                sources,
                clock: SystemTime::now,
            },
            model: self.model,
            transcript: self.transcript,
            messages: self.messages,
            counts: self.counts,
            cancel: self.cancel,
        })
    }
}

/// The tools of MCP servers, which begin to start here.
fn sources(app: &App, notices: &mut dyn Notices) -> Vec<Arc<dyn ToolSource>> {
    app.mcp_tools.iter().for_each(|mcp_tools| mcp_tools.begin(notices));
    app.mcp_tools.iter().cloned().map(|mcp_tools| mcp_tools as Arc<dyn ToolSource>).collect()
}

/// The folder of the conversations.
pub fn sessions(context: &AppContext) -> PathBuf {
    context.places.home.join("sessions")
}

/// The earlier messages, and the file for the new ones.
struct SessionPast {
    id: String,
    transcript: Option<Transcript>,
    messages: Vec<Message>,
    counts: Option<SavedCounts>,
    notes: Vec<String>,
}

/// The conversation to continue, if there is one.
fn resumed(options: &SessionOptions, app: &App, context: &AppContext) -> Result<Option<SessionPast>, AppError> {
    let id = match &options.resume {
        Some(Resume::Id(id)) => id.clone(),
        Some(Resume::Latest) => latest(context)?,
        None => return Ok(None),
    };
    let resumed = Transcript::resume(&sessions(context), &id, redactor(app, context));
    let (transcript, saved) = resumed.map_err(|error| no_transcript(&error, context))?;
    let SavedSession { header, messages, counts, notes, .. } = saved;
    Ok(Some(SessionPast { id: header.id, transcript: Some(transcript), messages, counts, notes }))
}

/// The error for a conversation that cannot be read.
pub fn no_transcript(error: &TranscriptError, context: &AppContext) -> AppError {
    let failure = AppError::new(Code::UnknownSession, error.to_string());
    match error {
        TranscriptError::Unknown(_) => failure.hint(context.tell(&Remedy::ListSessions)),
        _ => failure,
    }
}

/// A new conversation.
fn begun(app: &App, context: &AppContext, model: &str) -> SessionPast {
    let now = SystemTime::now();
    let header = Header {
        id: session_id(now),
        started: ollm_protocol::units::iso(now),
        cwd: context.cwd.display().to_string(),
        model: model.to_owned(),
    };
    let (transcript, notes) = match Transcript::create(&sessions(context), &header, redactor(app, context)) {
        Ok(transcript) => (Some(transcript), Vec::new()),
        Err(error) => (None, vec![format!("{error}; the session is not saved")]),
    };
    SessionPast { id: header.id, transcript, messages: Vec::new(), counts: None, notes }
}

fn redactor(app: &App, context: &AppContext) -> Arc<Redactor> {
    Arc::new(Redactor::new(secrets(app, context)))
}

fn latest(context: &AppContext) -> Result<String, AppError> {
    let listed = ollm_agent::list(&sessions(context));
    let (list, _) = listed.map_err(|error| AppError::new(Code::Unreadable, error.to_string()))?;
    let here = context.cwd.display().to_string();
    let found = list.into_iter().find(|summary| summary.header.cwd == here);
    found.map(|summary| summary.header.id).ok_or_else(|| {
        AppError::new(Code::UnknownSession, "there is no earlier conversation in this folder")
            .hint(context.tell(&Remedy::ListSessions))
    })
}

fn settings(options: &SessionOptions, wish: &ModelConfig, context: &AppContext, id: &str) -> Settings {
    let spill = context.places.home.join("state/output");
    // If the folder cannot be made, the shell tool reports it when it needs the folder.
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&spill).is_ok();
    let kept = context.variables.iter().filter(|(name, _)| !name.to_str().is_some_and(looks_secret));
    let mut shell = ShellSettings::new(kept.cloned().collect(), &spill);
    id.clone_into(&mut shell.agent);
    let mut allowed: Vec<PathBuf> = options.allow.iter().map(|folder| context.cwd.join(folder)).collect();
    allowed.extend(made.then_some(spill));
    // Results of server tools that are too long are saved there, and the model is told.
    let results = context.state().join("mcp-results");
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&results).is_ok();
    allowed.extend(made.then_some(results));
    Settings {
        session_id: id.to_owned(),
        user: context.variable("USER"),
        user_data: UserData::default(),
        mode: options.kind.name().to_owned(),
        cwd: context.cwd.clone(),
        allowed,
        system_prompt: SYSTEM_PROMPT.to_owned(),
        instructions: instruction_folders(context),
        temperature: wish.temperature,
        approval: options.approval,
        shell,
        limits: Limits::default(),
    }
}

/// The folders whose instructions count, outermost first: the projects around the working folder, and the person's own
/// folders around them. Another user may have written instructions elsewhere.
fn instruction_folders(context: &AppContext) -> Vec<PathBuf> {
    let cwd = context.cwd.canonicalize().unwrap_or_else(|_| context.cwd.clone());
    let real = |path: &Path| path.canonicalize().ok();
    let outermost = context.places.projects().next().and_then(real);
    let tops: Vec<PathBuf> = context.places.user_home.as_deref().and_then(real).into_iter().chain(outermost).collect();
    let counts = |folder: &&Path| *folder == cwd || tops.iter().any(|top| folder.starts_with(top));
    let mut folders: Vec<PathBuf> = cwd.ancestors().take_while(counts).map(Path::to_owned).collect();
    folders.reverse();
    folders
}

/// The limits of a session with this model.
fn limits(wish: &ModelConfig, config: &Config) -> Limits {
    let usual = Limits::default();
    let refusals = config.get("hooks.maxContinuations").and_then(|setting| setting.value.as_u64());
    let refusals = refusals.and_then(|most| usize::try_from(most).ok()).unwrap_or(usual.refusals);
    let repeats = wish.max_repeats.and_then(|most| usize::try_from(most).ok()).unwrap_or(usual.repeats);
    Limits { context: wish.context_window, repeats, refusals, source_call: LONGEST_CALL, ..usual }
}

/// The values of variables that look like secrets, and the sensitive settings of extensions.
fn secrets(app: &App, context: &AppContext) -> Vec<(String, String)> {
    let settings = app.extensions.iter().flat_map(ollm_catalog::Extension::variables).filter(|one| one.secret);
    context.hidden.add(settings.filter_map(|one| Some((one.name, one.value.get().ok()?.to_owned()))));
    context.secrets()
}
