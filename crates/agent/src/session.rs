//! A session: the conversation with one model, with an event at every step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use ollm_process::Children;
use ollm_protocol::{EventKind, FileChange, Tool};
use serde_json::{Map, Value, json};

use crate::cancel::Cancel;
use crate::context::{Meter, SavedCounts};
use crate::conversation::Conversation;
use crate::instructions::Instructions;
use crate::message::Message;
use crate::port::{Approve, Clock, Decision, Events, NobodyAsked, Show, SilentShow, ToolSource};
use crate::provider::Model;
use crate::registry::Registry;
use crate::settings::{Approval, Settings};
use crate::time::seconds;
use crate::tool::todo;
use crate::transcript::Transcript;
use crate::workspace::{Workspace, WorkspaceError};
use ollm_protocol::units::iso;

mod call;
mod compress;
mod consent;
mod cycle;
mod emit;
mod foreign;
mod instruct;
mod model;
mod subagent;
mod turn;

/// The parts that the embedding program provides.
pub struct Ports<'a> {
    /// The hooks.
    pub events: Box<dyn Events + 'a>,
    /// Asks the person.
    pub approve: Box<dyn Approve + 'a>,
    /// Shows the person what happens.
    pub show: Box<dyn Show + 'a>,
    /// More tools.
    pub sources: Vec<Arc<dyn ToolSource>>,
    /// Tells the time.
    pub clock: Clock,
}

impl<'a> Ports<'a> {
    /// Only the given hooks: every question stays unanswered, nothing is shown, and the only tools are the built-in
    /// ones.
    pub fn new(events: impl Events + 'a, clock: Clock) -> Ports<'a> {
        let (approve, show) = (Box::new(NobodyAsked), Box::new(SilentShow));
        Ports { events: Box::new(events), approve, show, sources: Vec::new(), clock }
    }
}

/// A running session. Dropping it ends it properly.
pub struct Session<'a> {
    settings: Settings,
    ports: Ports<'a>,
    model: Box<dyn Model + 'a>,
    workspace: Workspace,
    children: Children,
    registry: Registry,
    talk: Conversation,
    meter: Meter,
    /// The bytes of the offered tools.
    overhead: usize,
    transcript: Option<Transcript>,
    cancel: Cancel,
    started: SystemTime,
    /// Prompts of hooks that wait for their turn.
    queue: VecDeque<Prompt>,
    /// How many more prompts hooks may add.
    asked_left: usize,
    /// Prompts that were dropped since the person was told, each with its count.
    left_out: BTreeMap<String, usize>,
    /// The length of the chain of hook prompts that led from a prompt of the person to the present turn.
    chain: u32,
    /// The same number for the latest turn.
    last_chain: u32,
    /// The latest prompt of the person.
    user_input: Option<String>,
    /// The hook that ended the present turn, and why.
    halted: Option<(String, String)>,
    /// Operations that the person has allowed until the session ends.
    allowed: BTreeSet<String>,
    todos: Vec<todo::Item>,
    /// The running sub-agents, each started by the one before.
    agents: Vec<String>,
    /// How many sub-agents have begun.
    agents_begun: usize,
    /// The project's own instructions read so far.
    instructions: Instructions,
    stage: Stage,
}

/// The stage of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Refused,
    Running,
    Ended,
}

/// Who changed a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangedBy {
    /// The agent, during a turn, but not with its file tools.
    Agent,
    /// Another program or a person.
    Others,
}

/// A prompt of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Prompt {
    text: String,
    chain: u32,
}

/// The result of a turn.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Turn {
    /// The prompt.
    pub prompt: String,
    /// How it ended.
    pub end: TurnEnd,
    /// The model's last answer.
    pub response: String,
    /// Whether that answer was cut at the most bytes that are kept.
    pub truncated: bool,
    /// The tool calls that were made, with their arguments.
    pub calls: Vec<Value>,
    /// Tokens used, where the provider counts them.
    pub tokens: Option<u64>,
    /// How long it took, in seconds.
    pub duration: f64,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TurnEnd {
    /// The model had nothing more to do.
    Done,
    /// A hook refused the prompt, the tools, the model call or the answer.
    Refused {
        /// At which event.
        event: EventKind,
        /// The hook.
        hook: String,
        /// Its reason.
        reason: String,
    },
    /// A hook halted the turn.
    Halted {
        /// The hook.
        hook: String,
        /// Its reason.
        reason: String,
    },
    /// The model could not be asked, or its answer was unusable.
    Failed {
        /// A short name of the failure.
        code: &'static str,
        /// What happened, and what to do.
        message: String,
    },
    /// A limit was reached.
    Bounded(String),
    /// The person interrupted.
    Interrupted,
}

/// A session that was not allowed to start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hook `{hook}` refused the session: {reason}")]
#[non_exhaustive]
pub struct SessionRefused {
    /// The hook.
    pub hook: String,
    /// Its reason.
    pub reason: String,
}

/// Everything a session begins with.
pub struct Opening<'a> {
    /// Its settings.
    pub settings: Settings,
    /// Its ports.
    pub ports: Ports<'a>,
    /// The model that answers.
    pub model: Box<dyn Model + 'a>,
    /// The file that it is saved in.
    pub transcript: Option<Transcript>,
    /// The earlier messages, when a session is resumed.
    pub messages: Vec<Message>,
    /// What was learnt of the model's window and of its server's counts, when a session is resumed.
    pub counts: Option<SavedCounts>,
    /// The request to stop.
    pub cancel: Cancel,
}

impl<'a> Opening<'a> {
    /// A new session that is not saved.
    pub fn new(settings: Settings, ports: Ports<'a>, model: impl Model + 'a) -> Opening<'a> {
        let (messages, cancel) = (Vec::new(), Cancel::default());
        Opening { settings, ports, model: Box::new(model), transcript: None, messages, counts: None, cancel }
    }
}

/// Why a session did not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A hook refused.
    #[error(transparent)]
    Refused(#[from] SessionRefused),
    /// The person interrupted before the hooks had decided.
    #[error("interrupted before the session began")]
    Interrupted,
    /// The folder to work in cannot be used.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}

impl<'a> Session<'a> {
    /// Begins a session, unless a hook refuses.
    pub fn start(opening: Opening<'a>) -> Result<Session<'a>, StartError> {
        let Opening { settings, mut ports, model, transcript, messages, counts, cancel } = opening;
        let workspace = Workspace::new(&settings.cwd, &settings.allowed)?;
        let registry = Registry { sources: std::mem::take(&mut ports.sources) };
        let mut session = Session {
            started: (ports.clock)(),
            asked_left: settings.limits.asked,
            left_out: BTreeMap::new(),
            settings,
            ports,
            meter: Meter::recalled(counts, model.name(), model.server()),
            model,
            workspace,
            children: Children::new(),
            registry,
            talk: Conversation::new(messages),
            overhead: 0,
            transcript,
            cancel,
            queue: VecDeque::new(),
            chain: 0,
            last_chain: 0,
            user_input: None,
            halted: None,
            allowed: BTreeSet::new(),
            todos: Vec::new(),
            agents: Vec::new(),
            agents_begun: 0,
            instructions: Instructions::default(),
            stage: Stage::Refused,
        };
        session.open()?;
        Ok(session)
    }

    fn open(&mut self) -> Result<(), StartError> {
        let decision = self.emit(EventKind::SessionStart, []);
        if let Err(refusal) = self.passes(EventKind::SessionStart, &decision) {
            if self.cancel.is_set() {
                return Err(StartError::Interrupted);
            }
            return Err(SessionRefused { hook: refusal.who().to_owned(), reason: refusal.reason }.into());
        }
        self.stage = Stage::Running;
        self.halted = None;
        let is_new = self.talk.messages.is_empty();
        self.talk.forget_repeated();
        if is_new && !self.settings.system_prompt.is_empty() {
            let prompt = self.settings.system_prompt.clone();
            self.push(Message::System(prompt));
        }
        self.read_instructions(is_new);
        Ok(())
    }

    /// Gives the model a prompt, with context if there is any, and then the prompts of hooks.
    ///
    /// The first turn is the person's; the others are those of hooks.
    pub fn say(&mut self, prompt: &str, context: Option<&str>) -> Vec<Turn> {
        self.asked_left = self.settings.limits.asked;
        self.user_input = Some(prompt.to_owned());
        let mut turns = vec![self.turn(prompt, context, 0)];
        self.drain(&mut turns);
        turns
    }

    /// Emits an event that the person triggered; then runs the prompts of hooks.
    pub fn trigger(&mut self, name: &str, data: Value) -> (Decision, Vec<Turn>) {
        self.asked_left = self.settings.limits.asked;
        let decision = self
            .emit(EventKind::UserTriggered, [("eventName", name.into()), ("data", data), ("source", "user".into())]);
        let mut turns = Vec::new();
        self.drain(&mut turns);
        (decision, turns)
    }

    /// Emits a custom event; then runs the prompts of hooks.
    pub fn custom(&mut self, name: &str, data: Value, source: Option<&str>) -> (Decision, Vec<Turn>) {
        self.asked_left = self.settings.limits.asked;
        let mut fields = vec![("eventName", name.into()), ("data", data)];
        fields.extend(source.map(|source| ("source", source.into())));
        let decision = self.emit(EventKind::Custom, fields);
        let mut turns = Vec::new();
        self.drain(&mut turns);
        (decision, turns)
    }

    /// Tells hooks about a change of a file. Their prompts wait for [`Session::answer_hooks`].
    pub fn file_changed(&mut self, change: FileChange, by: ChangedBy) -> Decision {
        match by {
            // A prompt about the agent's change continues the chain of prompts that led to the change.
            ChangedBy::Agent => self.chain = self.last_chain,
            ChangedBy::Others if self.queue.is_empty() => self.asked_left = self.settings.limits.asked,
            ChangedBy::Others => {}
        }
        let decision = self.emit(change.kind, change.fields());
        self.tell_late_failures();
        self.chain = 0;
        decision
    }

    /// Runs the prompts of hooks that have come since the last turn.
    pub fn answer_hooks(&mut self) -> Vec<Turn> {
        let mut turns = Vec::new();
        self.drain(&mut turns);
        turns
    }

    /// The conversation so far.
    pub fn messages(&self) -> &[Message] {
        &self.talk.messages
    }

    /// The tools that are available now.
    pub fn tools(&self) -> Vec<Tool> {
        self.registry.tools()
    }

    /// The model's name.
    pub fn model(&self) -> &str {
        self.model.name()
    }

    /// When the person is asked before a tool runs.
    pub fn approval(&self) -> Approval {
        self.settings.approval
    }

    /// Changes the approval mode. Earlier permissions for the session stay.
    pub fn set_approval(&mut self, approval: Approval) {
        self.settings.approval = approval;
    }

    /// Continues with another model.
    pub fn set_model(&mut self, model: Box<dyn Model + 'a>) {
        self.model = model;
        self.meter.reset();
    }

    /// Ends the session.
    pub fn end(mut self) {
        self.close();
    }

    fn drain(&mut self, turns: &mut Vec<Turn>) {
        self.count_left_out();
        while let Some(prompt) = self.queue.pop_front() {
            if self.cancel.is_set() {
                self.queue.clear();
                return;
            }
            let turn = self.turn(&prompt.text, None, prompt.chain);
            turns.push(turn);
        }
        self.count_left_out();
        self.chain = 0;
    }

    fn close(&mut self) {
        if self.stage != Stage::Running {
            return;
        }
        self.tell_late_failures();
        // Hooks' messages since the last answer belong to the next question, whenever it comes.
        self.flush();
        self.stage = Stage::Ended;
        let now = (self.ports.clock)();
        let mut session = self.session_data();
        session.insert("endTime".to_owned(), iso(now).into());
        session.insert("duration".to_owned(), seconds(self.started, now).into());
        session.insert("messageCount".to_owned(), self.talk.messages.len().into());
        // This comes before the event: if it fails, the hooks learn of that within the session.
        self.note(json!({"end": iso(now)}));
        self.emit_talk(EventKind::SessionEnd, [("session", session.into())]);
    }

    /// The session's data in every event.
    fn session_data(&self) -> Map<String, Value> {
        let mut session = Map::new();
        session.insert("id".to_owned(), self.settings.session_id.clone().into());
        if let Some(user) = &self.settings.user {
            session.insert("user".to_owned(), user.clone().into());
        }
        session.insert("startTime".to_owned(), iso(self.started).into());
        session.insert(
            "config".to_owned(),
            json!({"model": self.model.name(), "approval": self.settings.approval.name()}),
        );
        session
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.settings.session_id)
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
