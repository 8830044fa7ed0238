//! The dialects of other agents, as data.
//!
//! Each agent has a file that declares its events, its fields, its timeouts, and per event what it can express and how.
//! One codec reads those declarations: `events.rs` for what an agent sends and its hooks read, `reply.rs` for what an agent
//! is answered, `hear.rs` for what its hooks answer. Nothing is taken over from one agent to another unsaid.

use std::time::Duration;

use serde_json::Value;

use super::{Addressee, Answer, Defaults, Dialect, DialectError, Output, Reply, Request};
use crate::event::{Event, EventKind};
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

/// How one agent speaks with its hooks.
#[derive(Debug)]
pub struct AgentDialect {
    /// Its name in configuration.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What the declaration was held against.
    pub checked: &'static str,
    /// The fields that may name the event; the first is written.
    pub event_fields: &'static [&'static str],
    /// Its events. Of several for one kind the first that fits is written.
    pub events: &'static [AgentEvent],
    /// The fields that all events have.
    pub fields: &'static [Field],
    /// How it names the tools of MCP servers.
    pub mcp: McpName,
    /// Its tools that do more than those of other agents with the same name, or are named as those of servers are, and what
    /// they are here.
    pub own_tools: &'static [(&'static str, &'static str)],
    /// Whether all hooks of one event are told the same time, to the millisecond, and those of the next another.
    pub stamps_events: bool,
    /// The length of one unit of a bare `timeout` number.
    pub timeout_unit: Duration,
    /// How long it waits for a hook that does not say otherwise, where that is known.
    pub timeout: Option<Duration>,
    /// How it is refused what it did not name.
    pub refusal: Way,
    /// What it hears when there is nothing to say.
    pub nothing: &'static str,
    /// Where it reads its hooks, and how it is told to ask us.
    pub home: Home,
    /// Whether a hook of it refuses by this exit status.
    pub refusing: fn(EventKind, i32) -> bool,
}

/// One event of an agent.
#[derive(Clone, Copy, Debug)]
pub struct AgentEvent {
    /// What the agent calls it.
    pub name: &'static str,
    /// The event of which it is only another name, where the agent is asked to tell that one.
    pub asked_as: Option<&'static str>,
    /// What it is; [`EventKind::Custom`] where we have no such event.
    pub kind: EventKind,
    /// Which events of the kind are meant.
    pub pick: Pick,
    /// The fields that only this event has.
    pub fields: &'static [&'static [Field]],
    /// How long the agent waits, where it differs from its usual patience.
    pub timeout: Option<Duration>,
    /// What the agent does with an answer.
    pub can: Capabilities,
    /// Whether a hook's plain text is context for the model.
    pub text_is_context: bool,
    /// The agent whose names of tools it uses, where those are not its own.
    pub vocabulary: Option<&'static str>,
}

/// Which events of a kind an agent's event stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// All of them.
    Any,
    /// Those that have this field.
    With(&'static str),
    /// Those about this tool, which the event does not name by itself.
    Tool(&'static str),
    /// Those about tools of MCP servers.
    Mcp,
    /// Those that the agent marks by a field with this word.
    Marked(&'static str, &'static str),
    /// Those that come with this field on the wire; none is written so.
    Shaped(&'static str),
}

/// A field on the wire and the canonical one that it carries; a dot leads one level down.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Where it stands on the wire.
    pub wire: &'static str,
    /// Where it stands in the event.
    pub canonical: &'static str,
    /// How the values differ.
    pub form: FieldForm,
}

/// How a value on the wire differs from the canonical one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldForm {
    /// Not at all.
    Same,
    /// Milliseconds since 1970 instead of a timestamp.
    Millis,
    /// Whether there was an attempt before, instead of how many.
    Again,
    /// The first of a list; the list stays.
    First,
    /// The message of an error instead of all of it.
    Message,
    /// The text of the first candidate of a model's answer.
    Candidate,
    /// The text of a list of parts; the list stays.
    Parts,
}

/// How an agent names the tools of MCP servers. The canonical name is `mcp__SERVER__TOOL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpName {
    /// `mcp__SERVER__TOOL`.
    Canonical,
    /// `mcp_SERVER_TOOL`, with the two apart in `mcp_context`.
    Gemini,
    /// `@SERVER/TOOL`.
    At,
    /// `MCP:TOOL`.
    Colon,
    /// `SERVER__TOOL`.
    Bare,
    /// One tool of this name for all of them, with `server_name` and `tool_name` among its arguments; or `SERVER__TOOL`.
    Arguments(&'static str),
    /// `SERVER` and `TOOL` with this sign between them, which either may have, too; the tools of the agent itself have none.
    Joined(char),
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
        }
    }

    /// The same event, which comes where the agent is asked to tell another.
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

    /// The same event with a patience of its own.
    const fn within(self, millis: u64) -> AgentEvent {
        AgentEvent { timeout: Some(Duration::from_millis(millis)), ..self }
    }

    /// The same event with another agent's names of tools.
    const fn naming_tools_like(self, agent: &'static str) -> AgentEvent {
        AgentEvent { vocabulary: Some(agent), ..self }
    }

    /// The same event, at which plain text is context.
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

    /// How long the agent waits for the reply to a request, where that is known.
    pub fn patience(&self, request: &Request) -> Option<Duration> {
        self.asked(request).and_then(|event| event.timeout).or(self.timeout)
    }

    /// How long the agent waits for us at an event by its own name for it, where that is known.
    pub fn patience_at(&self, event: Option<&str>) -> Option<Duration> {
        let own = event.and_then(|name| self.events.iter().find(|known| known.name == name)?.timeout);
        own.or(self.timeout)
    }

    /// Whether a connected agent asks us at one of its events.
    pub fn asks_at(&self, event: &AgentEvent) -> bool {
        self.home.events.contains(&event.asked_as.unwrap_or(event.name))
    }

    /// What tells the event of a request apart from every other one of its session: the number of a call, or the moment.
    pub fn number<'r>(&self, request: &'r Request) -> Option<&'r str> {
        let numbered = self.asked(request).is_some_and(|event| self.numbers_calls_at(event));
        let number = request.event.text("call_id").filter(|number| numbered && !number.is_empty());
        // Seconds would be too coarse.
        let stamp = || request.event.text("timestamp").filter(|stamp| self.stamps_events && stamp.contains('.'));
        number.or_else(stamp)
    }

    /// Whether the agent numbers its calls of tools at one of its events.
    pub fn numbers_calls_at(&self, event: &'static AgentEvent) -> bool {
        self.fields_of(Some(event)).any(|field| field.canonical == "call_id")
    }

    /// The agent's event that a request is about.
    fn asked(&self, request: &Request) -> Option<&'static AgentEvent> {
        if request.spelling.event.is_empty() {
            return self.event_for(&request.event);
        }
        let kind = request.event.kind;
        self.events.iter().find(|event| event.name == request.spelling.event && event.kind == kind)
    }

    /// How long the agent is told to wait for us at an event; nothing where that is not in our hands, or it would wait too
    /// long.
    pub fn told_to_wait(&self, event: &str) -> Option<Duration> {
        let own = self.events.iter().find(|known| known.name == event).and_then(|known| known.timeout);
        let is_short = own.zip(self.timeout).is_some_and(|(own, usual)| own < usual);
        let has_key = match self.home.form {
            home::Form::Groups => true,
            home::Form::Flat(entry) => entry.timeout.is_some(),
            // In files of our own nothing says how long to wait, so it is the agent that may give up.
            home::Form::Own(_) => self.timeout.is_none(),
        };
        (has_key && !is_short).then_some(home::WAIT)
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

    fn write_event(&self, event: &Event, _hook: &Addressee<'_>) -> Vec<u8> {
        self.write(event)
    }

    fn read_verdict(&self, kind: EventKind, output: &Output<'_>) -> Answer {
        self.hear(kind, output)
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

    fn answer_schema(&self, kind: EventKind) -> Value {
        super::schema::answer(self, kind, schema::answer(self, kind))
    }
}
