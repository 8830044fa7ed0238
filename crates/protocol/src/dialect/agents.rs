//! The dialects of other agents, as data.
//!
//! Each agent has a file that declares its events, its fields, its timeouts, and what it can express per event and how.
//! One codec reads those declarations: `events.rs` for the events that an agent sends and its hooks read, `reply.rs`
//! for our answers to an agent, `hear.rs` for the answers of its hooks. Each agent declares everything itself; no agent
//! inherits from another.

use std::time::Duration;

use serde_json::Value;

use super::{Addressee, Defaults, Dialect, DialectError, HookAnswer, Output, Reply, Request};
use crate::event::{Event, EventKind};
use crate::protected::Row;
use crate::verdict::Verdict;

mod capability;
mod changes;
mod claude;
mod cline;
mod codex;
mod copilot;
mod cursor;
mod droid;
mod events;
mod field;
mod forms;
mod gemini;
mod goose;
mod hear;
pub mod home;
mod kiro;
mod opencode;
mod qwen;
mod reply;
mod schema;
mod sender;
mod unheard;
mod windsurf;

use home::Home;

pub use capability::{Capabilities, Form, Part, Way};
pub use sender::sender_of;

/// Every agent whose events we read.
pub static AGENTS: &[&AgentDialect] = &[
    &claude::CLAUDE,
    &codex::CODEX,
    &gemini::GEMINI,
    &qwen::QWEN,
    &droid::DROID,
    &goose::GOOSE,
    &cursor::CURSOR,
    &copilot::COPILOT,
    &kiro::KIRO,
    &windsurf::WINDSURF,
    &cline::CLINE,
    &opencode::OPENCODE,
];

/// How one agent communicates with its hooks.
#[derive(Debug)]
pub struct AgentDialect {
    /// Its name in configuration.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The version or document that the declaration was checked against.
    pub checked: &'static str,
    /// The fields that may name the event; the first is written.
    pub event_fields: &'static [&'static str],
    /// Its events. If several fit one event, the first of them is written.
    pub events: &'static [AgentEvent],
    /// The fields that all events have.
    pub fields: &'static [Field],
    /// How it names the tools of MCP servers.
    pub mcp: McpName,
    /// Its tools that need a declaration of their own, each with our canonical tool. They do more than tools of the
    /// same name elsewhere, or have a name like a server's tool.
    pub own_tools: &'static [(&'static str, &'static str)],
    /// Whether a hook that changes arguments gives all of them. Else the agent keeps those that the hook leaves out.
    pub replaces_args: bool,
    /// Whether all hooks of one event get the same timestamp in milliseconds, and other events another one.
    pub stamps_events: bool,
    /// The length of one unit of a bare `timeout` number.
    pub timeout_unit: Duration,
    /// Its default timeout for hooks, if known.
    pub timeout: Option<Duration>,
    /// How to refuse an operation at an event that it does not name.
    pub refusal: Way,
    /// The reply if there is nothing to say.
    pub nothing: &'static str,
    /// Where it reads its hooks, and how we register with it.
    pub home: Home,
    /// The files that decide which of its hooks run.
    pub protected: Row,
    /// Whether a hook's exit status refuses the operation.
    pub refusing: fn(EventKind, i32) -> bool,
}

/// One event of an agent.
#[derive(Clone, Copy, Debug)]
pub struct AgentEvent {
    /// The agent's name for it.
    pub name: &'static str,
    /// The event for which this is only another name, if the agent is registered for that one.
    pub asked_as: Option<&'static str>,
    /// Our event; [`EventKind::Custom`] if we have no such event.
    pub kind: EventKind,
    /// The events of this kind that it covers.
    pub pick: Pick,
    /// The fields that only this event has.
    pub fields: &'static [&'static [Field]],
    /// How long the agent waits, if that differs from its default.
    pub timeout: Option<Duration>,
    /// What the agent can be told in reply.
    pub can: Capabilities,
    /// Whether a hook's plain text is context for the model.
    pub text_is_context: bool,
    /// The agent whose tool names it uses, if not its own.
    pub vocabulary: Option<&'static str>,
    /// Where the event gives its name to hooks.
    pub named: NameField,
}

/// Where an event gives its name to a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameField {
    /// In the agent's usual field.
    Usual,
    /// In this field.
    Other(&'static str),
    /// Nowhere: the hook knows which event it was registered for.
    None,
}

/// The events of a kind that an agent's event covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// All events of the kind.
    Any,
    /// Events with this field.
    With(&'static str),
    /// Events about this tool, which the agent's event itself does not name.
    Tool(&'static str),
    /// Events about tools of MCP servers.
    Mcp,
    /// Events that the agent marks with this word in this field.
    Marked(&'static str, &'static str),
    /// Events that have this field on the wire; never used for writing.
    Shaped(&'static str),
}

/// A field on the wire and its canonical field; a dot leads one level down.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its path on the wire.
    pub wire: &'static str,
    /// Its path in the event.
    pub canonical: &'static str,
    /// The difference between the values.
    pub form: FieldForm,
}

/// The difference between a value on the wire and the canonical value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldForm {
    /// None.
    Same,
    /// Milliseconds since 1970 instead of an ISO timestamp.
    Millis,
    /// Whether there was an earlier attempt, instead of how many.
    Again,
    /// The first item of a list; the list stays, too.
    First,
    /// The message of an error instead of the whole error.
    Message,
    /// The text of the first candidate of a model's answer.
    Candidate,
    /// The message of an error, which stays where it is; nothing if the error is null.
    MessageOf,
    /// The text of a JSON value. Only used for writing; the reader keeps the text.
    JsonText,
    /// The text of a list of parts; the list stays, too.
    Parts,
    /// The same, if no other field has the text; only used for reading.
    PartsIfNone,
}

/// How an agent names the tools of MCP servers. The canonical name is `mcp__SERVER__TOOL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpName {
    /// `mcp__SERVER__TOOL`.
    Canonical,
    /// `mcp_SERVER_TOOL`, with server and tool in separate fields of `mcp_context`.
    Gemini,
    /// `@SERVER/TOOL`.
    At,
    /// `MCP:TOOL`.
    Colon,
    /// One tool with this name for all server tools, with `server_name` and `tool_name` among its arguments; or
    /// `SERVER__TOOL`.
    Arguments(&'static str),
    /// `SERVER` and `TOOL` with this separator, which either may also contain. The agent's own tools have none.
    Joined(&'static str),
}

impl AgentEvent {
    const fn new(name: &'static str, kind: EventKind, can: Capabilities) -> AgentEvent {
        AgentEvent {
            name,
            asked_as: None,
            kind,
            pick: Pick::Any,
            fields: &[],
            timeout: None,
            can,
            text_is_context: false,
            vocabulary: None,
            named: NameField::Usual,
        }
    }

    /// The same event, which the agent sends if it is registered for another one.
    const fn asked_as(self, name: &'static str) -> AgentEvent {
        AgentEvent { asked_as: Some(name), ..self }
    }

    /// The same event with fields of its own.
    const fn with(self, fields: &'static [&'static [Field]]) -> AgentEvent {
        AgentEvent { fields, ..self }
    }

    /// The same event, for some events of its kind.
    const fn only(self, pick: Pick) -> AgentEvent {
        AgentEvent { pick, ..self }
    }

    /// The same event with its own timeout.
    const fn within(self, millis: u64) -> AgentEvent {
        AgentEvent { timeout: Some(Duration::from_millis(millis)), ..self }
    }

    /// The same event with another agent's tool names.
    const fn naming_tools_like(self, agent: &'static str) -> AgentEvent {
        AgentEvent { vocabulary: Some(agent), ..self }
    }

    /// The same event, which gives its name elsewhere, or nowhere.
    const fn named(self, named: NameField) -> AgentEvent {
        AgentEvent { named, ..self }
    }

    /// The same event, for which plain text is context.
    const fn reading_text(self) -> AgentEvent {
        AgentEvent { text_is_context: true, ..self }
    }
}

const fn field(wire: &'static str, canonical: &'static str) -> Field {
    Field { wire, canonical, form: FieldForm::Same }
}

const fn formed(wire: &'static str, canonical: &'static str, form: FieldForm) -> Field {
    Field { wire, canonical, form }
}

impl AgentDialect {
    /// What the agent can be told in reply to a request.
    pub fn capabilities(&self, request: &Request) -> Capabilities {
        let unknown = Capabilities { block: self.refusal, ..Capabilities::NONE };
        self.asked(request).map_or(unknown, |event| event.can)
    }

    /// How long the agent waits for the reply to a request, if known.
    pub fn patience(&self, request: &Request) -> Option<Duration> {
        self.asked(request).and_then(|event| event.timeout).or(self.timeout)
    }

    /// How long the agent waits for us at an event, by the agent's name for it, if known.
    pub fn patience_at(&self, event: Option<&str>) -> Option<Duration> {
        let own = event.and_then(|name| self.events.iter().find(|known| known.name == name)?.timeout);
        own.or(self.timeout)
    }

    /// Whether a connected agent asks us at this event.
    pub fn asks_at(&self, event: &AgentEvent) -> bool {
        self.home.events.contains(&event.asked_as.unwrap_or(event.name))
    }

    /// The first event of a session whose reply can report hooks that failed or did not run. `None` if neither the
    /// person nor the model sees anything of such replies.
    pub fn tells_news_at(&self) -> Option<EventKind> {
        let shows = |event: &&AgentEvent| event.can.message.is_possible() || event.can.context.is_possible();
        let asked = |kind| self.events.iter().any(|event| event.kind == kind && self.asks_at(event) && shows(&event));
        [EventKind::SessionStart, EventKind::BeforeAgent].into_iter().find(|kind| asked(*kind))
    }

    /// A value that identifies the event of a request within its session: the call's id, or a timestamp.
    pub fn number<'r>(&self, request: &'r Request) -> Option<&'r str> {
        let numbered = self.asked(request).is_some_and(|event| self.numbers_calls_at(event));
        let number = request.event.text("call_id").filter(|number| numbered && !number.is_empty());
        // A timestamp in whole seconds would be too coarse.
        let stamp = || request.event.text("timestamp").filter(|stamp| self.stamps_events && stamp.contains('.'));
        number.or_else(stamp)
    }

    /// Whether the agent gives ids to tool calls at this event.
    pub fn numbers_calls_at(&self, event: &'static AgentEvent) -> bool {
        self.fields_of(Some(event)).any(|field| field.canonical == "call_id")
    }

    /// The agent's event that a request is about.
    fn asked(&self, request: &Request) -> Option<&'static AgentEvent> {
        if request.spelling.event.is_empty() {
            return self.event_for(&request.event, None);
        }
        let kind = request.event.kind;
        self.events.iter().find(|event| event.name == request.spelling.event && event.kind == kind)
    }

    /// The timeout that we register for an event. `None` if we cannot set one, or the agent would wait too long.
    pub fn told_to_wait(&self, event: &str) -> Option<Duration> {
        let own = self.events.iter().find(|known| known.name == event).and_then(|known| known.timeout);
        let is_short = own.zip(self.timeout).is_some_and(|(own, usual)| own < usual);
        let has_key = match self.home.form {
            home::Form::Groups => true,
            home::Form::Flat(entry) => entry.timeout.is_some(),
            // In a file of our own, no timeout can be set, so the agent may give up first.
            home::Form::Own(_) => self.timeout.is_none(),
        };
        (has_key && !is_short).then_some(home::WAIT)
    }

    /// The agent's event that a hook was written for, if the event's kind does not determine it. That is so if other
    /// events of the kind look different, or the event does not give its name.
    pub fn spoken_as(&self, event: &AgentEvent) -> Option<&'static AgentEvent> {
        let is_failure = |event: &AgentEvent| matches!(event.pick, Pick::With(_));
        let alike = || self.events_of(event.kind).filter(|other| is_failure(other) == is_failure(event));
        let sent = alike().find(|sent| sent.asked_as == Some(event.name));
        let sent = sent.or_else(|| alike().find(|sent| sent.name == event.name));
        let has_rival =
            |sent: &AgentEvent| event.kind != EventKind::Custom && alike().any(|other| other.name != sent.name);
        sent.filter(|sent| sent.named != NameField::Usual || has_rival(sent))
    }

    fn events_of(&self, kind: EventKind) -> impl Iterator<Item = &'static AgentEvent> {
        self.events.iter().filter(move |event| event.kind == kind)
    }
}

impl Dialect for AgentDialect {
    fn name(&self) -> &'static str {
        self.name
    }

    fn defaults(&self) -> Defaults {
        Defaults { runs_on_after_refusal: true, timeout_unit: self.timeout_unit, ..Defaults::USUAL }
    }

    fn spell(&self, kind: EventKind) -> &'static str {
        let events = || self.events_of(kind).filter(|_| kind != EventKind::Custom);
        let usual = events().find(|event| event.pick == Pick::Any);
        usual.or_else(|| events().next()).map_or_else(|| kind.name(), |event| event.name)
    }

    fn write_event(&self, event: &Event, hook: &Addressee<'_>) -> Vec<u8> {
        self.write(event, hook.spoken_as)
    }

    fn read_verdict(&self, kind: EventKind, output: &Output<'_>) -> HookAnswer {
        self.hear(kind, None, output)
    }

    fn read_verdict_of(&self, event: &str, kind: EventKind, output: &Output<'_>) -> HookAnswer {
        self.hear(kind, Some(event), output)
    }

    fn read_event(&self, bytes: &[u8]) -> Result<Request, DialectError> {
        self.read(bytes, None)
    }

    fn read_event_named(&self, name: &str, bytes: &[u8]) -> Result<Request, DialectError> {
        self.read(bytes, Some(name))
    }

    fn write_verdict(&self, request: &Request, verdict: &Verdict) -> Reply {
        self.reply(request, verdict)
    }

    fn replaces_args(&self) -> bool {
        self.replaces_args
    }

    fn answer_schema(&self, kind: EventKind) -> Value {
        super::schema::answer(self, kind, schema::answer(self, kind))
    }
}
