//! The dialects: how events and verdicts are spelled on the wire.
//!
//! A dialect reads and writes both. [`Dialect::write_event`] and [`Dialect::read_verdict`] speak to a hook;
//! [`Dialect::read_event`] and [`Dialect::write_verdict`] speak to a host, as a hook would. A dialect owns its spelling
//! and its defaults. No code outside this folder knows a wire field name.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::event::{Event, EventKind};
use crate::hook::{OnFailure, Reach};
use crate::json;
use crate::verdict::Verdict;

mod agent;
pub mod agents;
mod answer;
mod call;
mod gate;
mod ollm;
mod rpc;
mod schema;

pub use agents::{AGENTS, AgentDialect};

/// The dialect of plain `continue` answers.
pub static OLLM: &dyn Dialect = &ollm::Ollm;
/// The dialect of `allow` answers, which blocks if an answer is in doubt.
pub static GATE: &dyn Dialect = &gate::Gate;
/// The dialect of JSON-RPC requests.
pub static RPC: &dyn Dialect = &rpc::Rpc;
/// The dialect of shell commands, exit codes and `decision` answers.
pub static AGENT: &dyn Dialect = &agent::Agent;

/// Our own dialects. Hook files may use their names for events.
pub static DIALECTS: &[&dyn Dialect] = &[&ollm::Ollm, &gate::Gate, &rpc::Rpc, &agent::Agent];

/// Every dialect: our own, and those of other agents.
pub fn all() -> impl Iterator<Item = &'static dyn Dialect> + Clone {
    DIALECTS.iter().copied().chain(AGENTS.iter().map(|&agent| agent as &dyn Dialect))
}

/// A way to spell events and verdicts.
pub trait Dialect: Sync + fmt::Debug {
    /// Its name in configuration.
    fn name(&self) -> &'static str;

    /// The defaults for a hook of this dialect.
    fn defaults(&self) -> Defaults;

    /// Its names for events in hook files. Other events have their canonical name there.
    fn names(&self) -> &'static [(EventKind, &'static str)] {
        &[]
    }

    /// Host to hook: the text for the hook's standard input.
    fn write_event(&self, event: &Event, hook: &Addressee<'_>) -> Vec<u8>;

    /// Hook to host: reads the hook's output and exit.
    fn read_verdict(&self, kind: EventKind, output: &Output<'_>) -> HookAnswer;

    /// Hook to host: the same for a hook that was written for one event of an agent, named by the agent's name for it.
    fn read_verdict_of(&self, _event: &str, kind: EventKind, output: &Output<'_>) -> HookAnswer {
        self.read_verdict(kind, output)
    }

    /// Whether changed arguments in a hook's answer replace the whole object that the hook read. Else they are merged.
    fn replaces_args(&self) -> bool {
        false
    }

    /// Host to us: reads the event that a host sent.
    fn read_event(&self, bytes: &[u8]) -> Result<Request, DialectError>;

    /// Host to us: reads an event whose text does not contain its name.
    fn read_event_named(&self, _name: &str, bytes: &[u8]) -> Result<Request, DialectError> {
        self.read_event(bytes)
    }

    /// Renames the fields of an event of this dialect to their canonical names, and returns the precise event kind.
    fn canonical(&self, kind: EventKind, _data: &mut Map<String, Value>) -> EventKind {
        kind
    }

    /// Adds to an event's data the fields that this dialect puts beside the data, in `beside`.
    fn take_in(&self, _beside: &mut Map<String, Value>, _data: &mut Map<String, Value>) {}

    /// Us to host: writes the verdict as that host expects it.
    fn write_verdict(&self, request: &Request, verdict: &Verdict) -> Reply;

    /// The JSON Schema of a hook's answer to an event.
    fn answer_schema(&self, kind: EventKind) -> Value;

    /// This dialect's name for an event.
    fn spell(&self, kind: EventKind) -> &'static str {
        self.names().iter().find(|(named, _)| *named == kind).map_or_else(|| kind.name(), |(_, name)| name)
    }
}

/// The JSON Schema of the event that a hook of a dialect reads.
pub fn event_schema(dialect: &dyn Dialect, kind: EventKind) -> Value {
    schema::event(dialect, kind)
}

/// The defaults of a dialect, for hooks that do not declare a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// How long a hook may take.
    pub timeout: Duration,
    /// How a failed hook affects the operation.
    pub on_failure: OnFailure,
    /// Whether the remaining hooks still run after a refusal.
    pub runs_on_after_refusal: bool,
    /// The length of one unit of a bare `timeout` number in this dialect's files.
    pub timeout_unit: Duration,
    /// The agents of a session for which a hook runs.
    pub reach: Reach,
    /// The events at which hooks run in the background.
    pub detached: &'static [EventKind],
}

impl Defaults {
    /// The defaults that most dialects share.
    const USUAL: Defaults = Defaults {
        timeout: Duration::from_secs(30),
        on_failure: OnFailure::Allow,
        runs_on_after_refusal: false,
        timeout_unit: Duration::from_millis(1),
        reach: Reach::All,
        detached: &[],
    };
}

/// The hook that an event is written for.
#[derive(Clone, Copy, Debug)]
pub struct Addressee<'a> {
    /// The hook's name.
    pub name: &'a str,
    /// The hook's version.
    pub version: &'a str,
    /// The agent's name for the event that the hook was written for, if it was written for one.
    pub spoken_as: Option<&'a str>,
}

impl<'a> Addressee<'a> {
    /// A hook that was not written for a particular event of an agent.
    pub const fn new(name: &'a str, version: &'a str) -> Addressee<'a> {
        Addressee { name, version, spoken_as: None }
    }
}

/// How a hook's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with a status.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// We ended it at its deadline.
    TimedOut(Duration),
    /// We ended it because it wrote more than its limit in bytes.
    Overflowed(usize),
}

/// The output and end of a hook's process.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// How its process ended.
    pub end: End,
    /// What it wrote on standard output.
    pub stdout: &'a [u8],
    /// What it wrote on standard error.
    pub stderr: &'a [u8],
}

/// The meaning of a hook's output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookAnswer {
    /// Its decision, as far as it is readable.
    pub verdict: Verdict,
    /// Why the hook counts as failed; `None` if it does not.
    pub failure: Option<String>,
    /// Oddities that were accepted.
    pub warnings: Vec<String>,
}

/// An event from a host, with the data that the reply needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The event.
    pub event: Event,
    /// The id that the reply must repeat, in dialects that have one.
    pub id: Value,
    /// How the host spelled the event; the reply uses the same spelling.
    pub spelling: Spelling,
}

/// The differences between an agent's spelling of an event and ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spelling {
    /// The agent's name for the event; empty if it does not matter.
    pub event: String,
    /// Canonical argument names that were added beside the agent's own.
    pub added_args: Vec<&'static str>,
    /// Whether the agent calls all server tools through one tool, with the real tool and its arguments inside.
    pub wraps_call: bool,
}

impl Request {
    /// A request with nothing but the event.
    pub fn new(event: Event) -> Request {
        Request { event, id: Value::Null, spelling: Spelling::default() }
    }
}

/// A verdict in the form that a host expects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// For standard output.
    pub stdout: Vec<u8>,
    /// For standard error.
    pub stderr: Vec<u8>,
    /// The exit status.
    pub exit: u8,
}

/// A request that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DialectError {
    /// The bytes are not JSON.
    #[error("the event is not valid JSON: {0}")]
    NotJson(String),
    /// A required field is missing.
    #[error("the event has no `{0}`")]
    Missing(&'static str),
    /// A field has the wrong type.
    #[error("`{field}` of the event must be {expected}")]
    WrongType {
        /// The field.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// Two fields with the same meaning have different values.
    #[error("`{first}` and `{second}` of the event say different things; send one of them")]
    Contradiction {
        /// One field.
        first: &'static str,
        /// The other field.
        second: &'static str,
    },
    /// No dialect has an event with this name.
    #[error(transparent)]
    UnknownEvent(#[from] UnknownEvent),
    /// The protocol version is not supported.
    #[error("protocol version `{0}` is not supported; this program speaks 1.x")]
    Version(String),
}

/// A name that is not an event in any dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown event `{name}`{}", nearest.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
pub struct UnknownEvent {
    /// What was written.
    pub name: String,
    /// The most similar known name.
    pub nearest: Option<&'static str>,
}

/// The events that a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEvents {
    /// The events; a name for all file changes means three.
    pub kinds: Vec<EventKind>,
    /// The name of a custom event, written `custom:NAME`.
    pub custom: Option<String>,
}

/// The events that a name means, in the spelling of any dialect.
///
/// ```
/// use ollm_protocol::{EventKind, dialect};
/// assert_eq!(dialect::event_named("PreToolUse").unwrap().kinds, [EventKind::BeforeTool]);
/// assert_eq!(dialect::event_named("on-file-change").unwrap().kinds.len(), 3);
/// ```
pub fn event_named(name: &str) -> Result<NamedEvents, UnknownEvent> {
    if let Some(custom) = name.strip_prefix("custom:").filter(|custom| !custom.is_empty()) {
        return Ok(NamedEvents { kinds: vec![EventKind::Custom], custom: Some(custom.to_owned()) });
    }
    let kinds = kinds_spelled(name);
    if kinds.is_empty() {
        return Err(UnknownEvent { name: name.to_owned(), nearest: nearest(name) });
    }
    Ok(NamedEvents { kinds, custom: None })
}

/// Whether a name means events; faster than [`event_named`] if it does not.
pub fn is_event(name: &str) -> bool {
    name.strip_prefix("custom:").is_some_and(|custom| !custom.is_empty()) || !kinds_spelled(name).is_empty()
}

fn kinds_spelled(name: &str) -> Vec<EventKind> {
    if let Some(kind) = EventKind::from_name(name) {
        return vec![kind];
    }
    let mut kinds: Vec<EventKind> = spellings().filter(|(_, spelled)| *spelled == name).map(|(kind, _)| kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn spellings() -> impl Iterator<Item = (EventKind, &'static str)> {
    DIALECTS.iter().flat_map(|dialect| dialect.names()).copied()
}

fn nearest(name: &str) -> Option<&'static str> {
    ollm_condition::nearest(name, EventKind::all().map(EventKind::name).chain(spellings().map(|(_, spelled)| spelled)))
}

/// The dialect with this name.
pub fn by_name(name: &str) -> Option<&'static dyn Dialect> {
    all().find(|dialect| dialect.name() == name)
}

/// The dialect of the other agent with this name.
pub fn agent_named(name: &str) -> Option<&'static AgentDialect> {
    AGENTS.iter().copied().find(|agent| agent.name == name)
}

/// The dialect that uses this spelling of an event key.
pub fn by_spelling(event_key: &str) -> &'static dyn Dialect {
    if event_key.starts_with("custom:") {
        return OLLM;
    }
    if event_key.contains('-') {
        return GATE;
    }
    if event_key.starts_with(|first: char| first.is_ascii_uppercase()) {
        return AGENT;
    }
    if event_key.contains(|letter: char| letter.is_ascii_uppercase()) {
        return RPC;
    }
    OLLM
}

impl End {
    /// Why a process that did not exit cleanly counts as failed, with its last output.
    pub fn failure(self, stderr: &[u8]) -> Option<String> {
        let what = match self {
            End::Exited(0) => return None,
            End::Exited(status) => format!("exited with status {status}"),
            End::Signalled(signal) => format!("was killed by signal {signal}"),
            End::TimedOut(after) => return Some(format!("did not answer within {after:?} and was stopped")),
            End::Overflowed(limit) => {
                return Some(format!("wrote more than its limit `output` of {limit} bytes and was stopped"));
            }
        };
        let words = last_line(stderr);
        Some(if words.is_empty() { what } else { format!("{what}: {words}") })
    }
}

fn last_line(bytes: &[u8]) -> String {
    let tail = bytes.get(bytes.len().saturating_sub(4096)..).unwrap_or(bytes);
    let text = String::from_utf8_lossy(tail);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.trim().chars().take(300).collect()
}

/// Reads the JSON object of a request.
fn request_object(bytes: &[u8]) -> Result<Map<String, Value>, DialectError> {
    json::request(bytes).map_err(|error| DialectError::NotJson(error.to_string()))
}

/// Removes and returns a field that must be text.
fn take_text(object: &mut Map<String, Value>, field: &'static str) -> Result<String, DialectError> {
    match object.shift_remove(field) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(DialectError::WrongType { field, expected: "text" }),
        None => Err(DialectError::Missing(field)),
    }
}

/// Removes and returns a field that must be an object; empty if it is absent or null.
fn take_object(object: &mut Map<String, Value>, field: &'static str) -> Result<Map<String, Value>, DialectError> {
    match object.shift_remove(field) {
        Some(Value::Object(map)) => Ok(map),
        Some(Value::Null) | None => Ok(Map::new()),
        Some(_) => Err(DialectError::WrongType { field, expected: "an object" }),
    }
}

/// Renames a field, and replaces an existing field of the new name.
fn rename(object: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = object.shift_remove(from) {
        object.insert(to.to_owned(), value);
    }
}

/// The kinds of file change, as `changes.type` spells them.
const CHANGES: &[(EventKind, &str)] =
    &[(EventKind::FileCreated, "created"), (EventKind::FileEdited, "modified"), (EventKind::FileDeleted, "deleted")];

/// The event with this name. If the name is ambiguous, the data decides.
fn kind_of(name: &str, data: &mut Map<String, Value>) -> Result<EventKind, DialectError> {
    let named = event_named(name)?;
    if let Some(custom) = named.custom {
        data.insert("eventName".to_owned(), custom.into());
    }
    if let [kind] = named.kinds.as_slice() {
        return Ok(*kind);
    }
    let changes = data.get("changes");
    let change = changes.and_then(|changes| changes.get("type").unwrap_or(changes).as_str());
    let kind = CHANGES.iter().find(|(_, word)| Some(*word) == change).map(|(kind, _)| *kind);
    Ok(kind.unwrap_or(EventKind::FileEdited))
}

/// A wire object as one line.
fn line(object: Map<String, Value>) -> Vec<u8> {
    let mut bytes = Value::Object(object).to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn to_millis(timestamp: &Value) -> Option<i64> {
    timestamp.as_str()?.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

fn from_millis(millis: i64) -> Option<String> {
    Timestamp::from_millisecond(millis).ok().map(|timestamp| timestamp.to_string())
}
