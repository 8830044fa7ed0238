//! The dialects: how events and verdicts are spelled on the wire.
//!
//! Two nouns by two verbs. [`Dialect::write_event`] and [`Dialect::read_verdict`] speak to a hook;
//! [`Dialect::read_event`] and [`Dialect::write_verdict`] speak to a host, as a hook would. A dialect owns its
//! spelling and its defaults; nothing outside this folder knows a wire field name.

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
/// The dialect of `allow` answers, which blocks when in doubt.
pub static GATE: &dyn Dialect = &gate::Gate;
/// The dialect of JSON-RPC requests.
pub static RPC: &dyn Dialect = &rpc::Rpc;
/// The dialect of shell commands, exit codes and `decision` answers.
pub static AGENT: &dyn Dialect = &agent::Agent;

/// The dialects of our own. Their names for events stand in hook files, too.
pub static DIALECTS: &[&dyn Dialect] = &[&ollm::Ollm, &gate::Gate, &rpc::Rpc, &agent::Agent];

/// Every dialect: our own, and those of other agents.
pub fn all() -> impl Iterator<Item = &'static dyn Dialect> + Clone {
    DIALECTS.iter().copied().chain(AGENTS.iter().map(|&agent| agent as &dyn Dialect))
}

/// A way to spell events and verdicts.
pub trait Dialect: Sync + fmt::Debug {
    /// Its name in configuration.
    fn name(&self) -> &'static str;

    /// What applies to a hook of this dialect that does not say otherwise.
    fn defaults(&self) -> Defaults;

    /// Its names for events that may stand in hook files; all others keep their canonical name there.
    fn names(&self) -> &'static [(EventKind, &'static str)] {
        &[]
    }

    /// Host to hook: what the hook reads on its standard input.
    fn write_event(&self, event: &Event, hook: &Addressee<'_>) -> Vec<u8>;

    /// Hook to host: what the hook's output and end mean.
    fn read_verdict(&self, kind: EventKind, output: &Output<'_>) -> Answer;

    /// Host to us: the event in what a host sent.
    fn read_event(&self, bytes: &[u8]) -> Result<Request, DialectError>;

    /// Host to us: the event in what a host sent that does not say its name there.
    fn read_event_named(&self, _name: &str, bytes: &[u8]) -> Result<Request, DialectError> {
        self.read_event(bytes)
    }

    /// Puts the fields of an event of this dialect under their canonical names, and tells which of its kinds it is.
    fn canonical(&self, kind: EventKind, _data: &mut Map<String, Value>) -> EventKind {
        kind
    }

    /// Us to host: the verdict as that host expects it.
    fn write_verdict(&self, request: &Request, verdict: &Verdict) -> Reply;

    /// The JSON Schema of what a hook answers to an event.
    fn answer_schema(&self, kind: EventKind) -> Value;

    /// How this dialect spells an event.
    fn spell(&self, kind: EventKind) -> &'static str {
        self.names().iter().find(|(named, _)| *named == kind).map_or_else(|| kind.name(), |(_, name)| name)
    }
}

/// The JSON Schema of what a hook of a dialect reads for an event.
pub fn event_schema(dialect: &dyn Dialect, kind: EventKind) -> Value {
    schema::event(dialect, kind)
}

/// What a dialect decides where a hook is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// How long a hook may take.
    pub timeout: Duration,
    /// What a failed hook means for the operation.
    pub on_failure: OnFailure,
    /// Whether the remaining hooks still run after a refusal.
    pub runs_on_after_refusal: bool,
    /// The length of one unit of a bare `timeout` number in this dialect's files.
    pub timeout_unit: Duration,
    /// For which agents of a session a hook runs.
    pub reach: Reach,
    /// The events at which nobody waits for a hook.
    pub detached: &'static [EventKind],
}

impl Defaults {
    /// What most dialects agree on.
    const USUAL: Defaults = Defaults {
        timeout: Duration::from_secs(30),
        on_failure: OnFailure::Allow,
        runs_on_after_refusal: false,
        timeout_unit: Duration::from_millis(1),
        reach: Reach::All,
        detached: &[],
    };
}

/// The hook an event is written for.
#[derive(Clone, Copy, Debug)]
pub struct Addressee<'a> {
    /// The hook's name.
    pub name: &'a str,
    /// The hook's version.
    pub version: &'a str,
}

/// How a hook's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with a status.
    Exited(i32),
    /// By a signal.
    Signalled(i32),
    /// By us, at its deadline.
    TimedOut(Duration),
    /// By us, because it wrote more than its limit in bytes.
    Overflowed(usize),
}

/// What a hook left behind.
#[derive(Clone, Copy, Debug)]
pub struct Output<'a> {
    /// How its process ended.
    pub end: End,
    /// What it wrote on standard output.
    pub stdout: &'a [u8],
    /// What it wrote on standard error.
    pub stderr: &'a [u8],
}

/// What a hook's output means.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// What it decided, as far as it can be read.
    pub verdict: Verdict,
    /// Why the hook counts as failed, if it does.
    pub failure: Option<String>,
    /// What was odd but accepted.
    pub warnings: Vec<String>,
}

/// An event as a host sent it, with what the reply needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The event.
    pub event: Event,
    /// The id the reply must repeat, in dialects that have one.
    pub id: Value,
    /// How the host spelled it; the reply is spelled alike.
    pub spelling: Spelling,
}

/// How an agent spelled what an event says in our words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spelling {
    /// Its name of the event; empty where that does not matter.
    pub event: String,
    /// Canonical names of arguments that stand beside its own.
    pub added_args: Vec<&'static str>,
}

impl Request {
    /// A request that says nothing beside the event.
    pub fn new(event: Event) -> Request {
        Request { event, id: Value::Null, spelling: Spelling::default() }
    }
}

/// A verdict as a host expects it.
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
    /// A field that must be there is not.
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
    /// Two fields that mean the same have different values.
    #[error("`{first}` and `{second}` of the event say different things; send one of them")]
    Contradiction {
        /// The one.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// The event's name is in no dialect.
    #[error(transparent)]
    UnknownEvent(#[from] UnknownEvent),
    /// The protocol version is not one we speak.
    #[error("protocol version `{0}` is not supported; this program speaks 1.x")]
    Version(String),
}

/// A name that is no event in any dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown event `{name}`{}", nearest.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
pub struct UnknownEvent {
    /// What was written.
    pub name: String,
    /// The known name most like it.
    pub nearest: Option<&'static str>,
}

/// What an event name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The events; a name for all file changes stands for three.
    pub kinds: Vec<EventKind>,
    /// The name of a custom event, written `custom:NAME`.
    pub custom: Option<String>,
}

/// The events a name stands for, in the spelling of any dialect.
///
/// ```
/// use ollm_protocol::{EventKind, dialect};
/// assert_eq!(dialect::event_named("PreToolUse").unwrap().kinds, [EventKind::BeforeTool]);
/// assert_eq!(dialect::event_named("on-file-change").unwrap().kinds.len(), 3);
/// ```
pub fn event_named(name: &str) -> Result<Named, UnknownEvent> {
    if let Some(custom) = name.strip_prefix("custom:").filter(|custom| !custom.is_empty()) {
        return Ok(Named { kinds: vec![EventKind::Custom], custom: Some(custom.to_owned()) });
    }
    let kinds = kinds_spelled(name);
    if kinds.is_empty() {
        return Err(UnknownEvent { name: name.to_owned(), nearest: nearest(name) });
    }
    Ok(Named { kinds, custom: None })
}

/// Whether a name stands for events; cheaper than [`event_named`] where the answer is no.
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

/// The dialect of another agent with this name.
pub fn agent_named(name: &str) -> Option<&'static AgentDialect> {
    AGENTS.iter().copied().find(|agent| agent.name == name)
}

/// The dialect that the spelling of an event key stands for.
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
    /// Why an end that is not a clean exit counts as a failure, with the hook's last words.
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

/// Reads the one JSON object a request consists of.
fn request_object(bytes: &[u8]) -> Result<Map<String, Value>, DialectError> {
    json::request(bytes).map_err(|error| DialectError::NotJson(error.to_string()))
}

/// Takes a field that must be text.
fn take_text(object: &mut Map<String, Value>, field: &'static str) -> Result<String, DialectError> {
    match object.shift_remove(field) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(DialectError::WrongType { field, expected: "text" }),
        None => Err(DialectError::Missing(field)),
    }
}

/// Takes a field that must be an object, empty when absent or null.
fn take_object(object: &mut Map<String, Value>, field: &'static str) -> Result<Map<String, Value>, DialectError> {
    match object.shift_remove(field) {
        Some(Value::Object(map)) => Ok(map),
        Some(Value::Null) | None => Ok(Map::new()),
        Some(_) => Err(DialectError::WrongType { field, expected: "an object" }),
    }
}

/// Renames a field; a field of the new name that is in the way is replaced.
fn rename(object: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = object.shift_remove(from) {
        object.insert(to.to_owned(), value);
    }
}

/// The kind of file change, in the words of `changes.type`.
const CHANGES: &[(EventKind, &str)] =
    &[(EventKind::FileCreated, "created"), (EventKind::FileEdited, "modified"), (EventKind::FileDeleted, "deleted")];

/// The event behind a name and, where the name leaves it open, the data.
fn kind_of(name: &str, data: &mut Map<String, Value>) -> Result<EventKind, DialectError> {
    let named = event_named(name)?;
    if let Some(custom) = named.custom {
        data.insert("eventName".to_owned(), custom.into());
    }
    if let [kind] = named.kinds.as_slice() {
        return Ok(*kind);
    }
    let change = data.get("changes").and_then(|changes| changes.get("type")).and_then(Value::as_str);
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
