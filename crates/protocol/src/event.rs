//! The kinds of events, and the data of each.
//!
//! One table has everything about an event that does not depend on a dialect: its canonical name, the effect of a
//! refusal, and its data fields. Each dialect has its own spelling of an event.

use std::collections::HashSet;
use std::slice;

use serde_json::{Map, Value};

use crate::tool::{CallEffect, effects_of, effects_of_text};

mod build;
mod file_change;
mod sample;

pub use build::EventError;
pub use file_change::FileChange;

/// The kind of an event: a moment in an agent's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the table below describes every one of them")]
#[non_exhaustive]
pub enum EventKind {
    SessionStart,
    SessionEnd,
    BeforeAgent,
    AfterAgent,
    BeforeModel,
    AfterModel,
    BeforeToolSelection,
    BeforeTool,
    AfterTool,
    PreCompress,
    PostCompress,
    ContextOverflow,
    Notification,
    ApprovalRequest,
    Error,
    FileCreated,
    FileEdited,
    FileDeleted,
    GitCommit,
    UserTriggered,
    SubagentStart,
    SubagentStop,
    Custom,
}

/// The effect of a refusal at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// The operation does not happen.
    Stops,
    /// The operation has already happened; the model gets the refusal as feedback.
    Feedback,
    /// There is nothing to stop; the refusal ends the chain and is reported.
    Reports,
}

/// The JSON type of a data field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the JSON types")]
pub enum Shape {
    Text,
    Number,
    Object,
    List,
    Any,
}

/// One row of the event table.
#[derive(Debug)]
pub struct Row {
    /// The event.
    pub kind: EventKind,
    /// Its canonical, snake_case name.
    pub name: &'static str,
    /// The effect of a refusal.
    pub power: Power,
    /// Its data fields in addition to [`COMMON`].
    pub fields: &'static [(&'static str, Shape)],
}

/// The data fields that every event may have.
pub const COMMON: &[(&str, Shape)] = &[
    ("session_id", Shape::Text),
    ("cwd", Shape::Text),
    ("timestamp", Shape::Text),
    ("session", Shape::Object),
    ("agent", Shape::Object),
    ("user", Shape::Object),
    ("user_input", Shape::Text),
    ("agent_id", Shape::Text),
    ("agent_type", Shape::Text),
];

const TOOL: &[(&str, Shape)] = &[("tool_name", Shape::Text), ("args", Shape::Object), ("call_id", Shape::Text)];
const FILE: &[(&str, Shape)] =
    &[("path", Shape::Text), ("changes", Shape::Object), ("diff", Shape::Text), ("file", Shape::Object)];
const NAMED: &[(&str, Shape)] = &[("eventName", Shape::Text), ("data", Shape::Any), ("source", Shape::Text)];

const fn row(kind: EventKind, name: &'static str, power: Power, fields: &'static [(&'static str, Shape)]) -> Row {
    Row { kind, name, power, fields }
}

/// The event table, in the order of [`EventKind`].
pub const EVENTS: &[Row] = &[
    row(EventKind::SessionStart, "session_start", Power::Stops, &[]),
    row(EventKind::SessionEnd, "session_end", Power::Reports, &[("messages", Shape::List)]),
    row(
        EventKind::BeforeAgent,
        "before_agent",
        Power::Stops,
        &[("prompt", Shape::Text), ("context", Shape::Any), ("config", Shape::Object)],
    ),
    row(
        EventKind::AfterAgent,
        "after_agent",
        Power::Stops,
        &[
            ("response", Shape::Text),
            ("tool_calls", Shape::List),
            ("prompt", Shape::Text),
            ("metrics", Shape::Object),
            ("conversation_length", Shape::Number),
            ("attempt", Shape::Number),
        ],
    ),
    row(
        EventKind::BeforeModel,
        "before_model",
        Power::Stops,
        &[("messages", Shape::List), ("model", Shape::Text), ("prompt", Shape::Text)],
    ),
    row(EventKind::AfterModel, "after_model", Power::Stops, &[("response", Shape::Text), ("tokens", Shape::Number)]),
    row(EventKind::BeforeToolSelection, "before_tool_selection", Power::Stops, &[("available_tools", Shape::List)]),
    row(EventKind::BeforeTool, "before_tool", Power::Stops, TOOL),
    row(
        EventKind::AfterTool,
        "after_tool",
        Power::Feedback,
        &[
            ("tool_name", Shape::Text),
            ("args", Shape::Object),
            ("call_id", Shape::Text),
            ("result", Shape::Any),
            ("error", Shape::Text),
            ("metrics", Shape::Object),
            ("execution_time", Shape::Number),
        ],
    ),
    row(
        EventKind::PreCompress,
        "pre_compress",
        Power::Stops,
        &[("trigger", Shape::Text), ("size", Shape::Number), ("maxSize", Shape::Number)],
    ),
    row(
        EventKind::PostCompress,
        "post_compress",
        Power::Reports,
        &[("trigger", Shape::Text), ("size", Shape::Number), ("maxSize", Shape::Number), ("summary", Shape::Text)],
    ),
    row(
        EventKind::ContextOverflow,
        "context_overflow",
        Power::Reports,
        &[("size", Shape::Number), ("maxSize", Shape::Number), ("utilization", Shape::Number)],
    ),
    row(
        EventKind::Notification,
        "notification",
        Power::Reports,
        &[("message", Shape::Text), ("event_type", Shape::Text)],
    ),
    row(
        EventKind::ApprovalRequest,
        "approval_request",
        Power::Stops,
        &[("operation", Shape::Text), ("details", Shape::Object), ("requester", Shape::Text)],
    ),
    row(EventKind::Error, "error", Power::Reports, &[("error", Shape::Object), ("operation", Shape::Text)]),
    row(EventKind::FileCreated, "file_created", Power::Reports, FILE),
    row(EventKind::FileEdited, "file_edited", Power::Reports, FILE),
    row(EventKind::FileDeleted, "file_deleted", Power::Reports, FILE),
    row(
        EventKind::GitCommit,
        "git_commit",
        Power::Stops,
        &[("files", Shape::List), ("message", Shape::Text), ("branch", Shape::Text)],
    ),
    row(EventKind::UserTriggered, "user_triggered", Power::Reports, NAMED),
    row(EventKind::SubagentStart, "subagent_start", Power::Reports, &[]),
    row(EventKind::SubagentStop, "subagent_stop", Power::Stops, &[]),
    row(EventKind::Custom, "custom", Power::Stops, NAMED),
];

impl EventKind {
    /// Every event, in table order.
    pub fn all() -> impl Iterator<Item = EventKind> {
        EVENTS.iter().map(|row| row.kind)
    }

    /// This event's row of the table.
    #[expect(clippy::indexing_slicing, reason = "the table has a row for every variant, in order; a test checks it")]
    pub fn row(self) -> &'static Row {
        &EVENTS[self as usize]
    }

    /// The canonical name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The event with this canonical name.
    pub fn from_name(name: &str) -> Option<EventKind> {
        EVENTS.iter().find(|row| row.name == name).map(|row| row.kind)
    }

    /// Whether this is one of the three file events.
    pub fn is_file(self) -> bool {
        matches!(self, EventKind::FileCreated | EventKind::FileEdited | EventKind::FileDeleted)
    }

    /// Whether this is about a tool call.
    pub fn is_tool_call(self) -> bool {
        matches!(self, EventKind::BeforeTool | EventKind::AfterTool)
    }

    /// The data fields with a tool's name and arguments: of a call, or of a call that a person is asked about.
    pub fn call_fields(self) -> Option<(&'static str, &'static str)> {
        match self {
            EventKind::BeforeTool | EventKind::AfterTool => Some(("tool_name", "args")),
            EventKind::ApprovalRequest => Some(("operation", "details")),
            _ => None,
        }
    }

    /// The data field that a matcher checks.
    pub fn subject_field(self) -> Option<&'static str> {
        match self {
            EventKind::Notification => Some("event_type"),
            EventKind::Custom => Some("eventName"),
            _ => self.call_fields().map(|(name, _)| name),
        }
    }

    /// All data fields of the event, the common ones first.
    pub fn fields(self) -> impl Iterator<Item = (&'static str, Shape)> {
        COMMON.iter().chain(self.row().fields).copied()
    }
}

/// One event: its kind, and its canonical data.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// The kind of event.
    pub kind: EventKind,
    /// The data under the canonical field names of the table. Other fields pass through.
    pub data: Map<String, Value>,
}

/// Other spellings of canonical fields that some hosts send.
const SPELLINGS: &[(&str, &str)] = &[
    ("sessionId", "session_id"),
    ("toolName", "tool_name"),
    ("tool", "tool_name"),
    ("toolArgs", "args"),
    ("tool_args", "args"),
    ("arguments", "args"),
    ("toolCalls", "tool_calls"),
    ("availableTools", "available_tools"),
    ("agentId", "agent_id"),
    ("agentType", "agent_type"),
    ("subagent_id", "agent_id"),
    ("subagent_type", "agent_type"),
];

impl Event {
    /// An event with any data, for callers that checked it or must accept anything. [`Event::new`] checks the data.
    ///
    /// ```
    /// use ollm_protocol::{Event, EventKind};
    /// let event = Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into())]);
    /// assert_eq!(event.subject(), Some("shell"));
    /// ```
    pub fn unchecked<'a>(kind: EventKind, data: impl IntoIterator<Item = (&'a str, Value)>) -> Event {
        Event { kind, data: data.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
    }

    /// An event whose data may use other spellings of the canonical fields, or may not be an object.
    pub fn from_loose(kind: EventKind, data: Value) -> Event {
        let mut data = match data {
            Value::Object(map) => map,
            Value::Null => Map::new(),
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        for (spelling, canonical) in SPELLINGS {
            if !kind.fields().any(|(name, _)| name == *canonical) {
                continue;
            }
            if data.contains_key(*canonical) {
                if data.get(*spelling) == data.get(*canonical) {
                    data.shift_remove(*spelling);
                }
            } else if let Some(value) = data.shift_remove(*spelling) {
                data.insert((*canonical).to_owned(), value);
            }
        }
        if kind.is_file() {
            name_changes(&mut data);
        }
        // Some hosts send only the path of a file, as `file`.
        if kind.is_file() && !data.contains_key("path") && data.get("file").is_some_and(Value::is_string) {
            let path = data.shift_remove("file").unwrap_or_default();
            data.insert("path".to_owned(), path);
        }
        Event { kind, data }
    }

    /// The subject for matchers: the tool name, a notification's type, a custom event's name.
    pub fn subject(&self) -> Option<&str> {
        self.kind.subject_field().and_then(|field| self.text(field))
    }

    /// The matcher field, if the event should have it and does not. Then the event's hooks cannot be determined.
    pub fn missing_subject(&self) -> Option<&'static str> {
        self.kind.subject_field().filter(|field| self.text(field).is_none_or(str::is_empty))
    }

    /// The field with the files, if the event should have it and does not. Then its hooks for files cannot be determined.
    pub fn missing_files(&self) -> Option<&'static str> {
        let field = match self.kind {
            kind if kind.is_file() => "path",
            EventKind::GitCommit => "files",
            _ => return None,
        };
        // A commit may be without files.
        let is_empty = self.data.get("files").and_then(Value::as_array).is_some_and(Vec::is_empty);
        (!is_empty && self.paths().is_empty()).then_some(field)
    }

    /// A data field that is text.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.data.get(field).and_then(Value::as_str)
    }

    /// The session's id, from any field in which hosts send it.
    pub fn session_id(&self) -> Option<&str> {
        self.text("session_id").or_else(|| self.data.get("session")?.get("id")?.as_str())
    }

    /// Whether it happened to an agent that another agent started.
    ///
    /// In that case, hosts name the agent. The start and end of such an agent happen to the agent that started it.
    pub fn is_subagents(&self) -> bool {
        let about_one = matches!(self.kind, EventKind::SubagentStart | EventKind::SubagentStop);
        !about_one && self.text("agent_id").is_some_and(|id| !id.is_empty())
    }

    /// The tool's arguments.
    pub fn args(&self) -> Option<&Map<String, Value>> {
        self.data.get("args").and_then(Value::as_object)
    }

    /// The name and the arguments of the tool that it is about.
    pub fn call(&self) -> Option<(&str, Option<&Map<String, Value>>)> {
        let (name, args) = self.kind.call_fields()?;
        Some((self.text(name).unwrap_or_default(), self.data.get(args).and_then(Value::as_object)))
    }

    /// The effects of the tool call, as its tool declares them or its arguments suggest.
    pub fn effects(&self) -> Vec<CallEffect<'_>> {
        let name = self.text("tool_name").unwrap_or_default();
        match self.data.get("args") {
            Some(Value::Object(args)) => effects_of(name, args),
            Some(Value::String(text)) => effects_of_text(name, text),
            _ => Vec::new(),
        }
    }

    /// The files of the event, in the host's spelling, each once. They come from the fields of file events, the file
    /// arguments of a tool, and the files of a commit.
    ///
    /// ```
    /// use ollm_protocol::{Event, EventKind};
    /// let event = Event::unchecked(EventKind::BeforeTool, [("args", serde_json::json!({"file_path": "a.rs"}))]);
    /// assert_eq!(event.paths(), ["a.rs"]);
    /// ```
    pub fn paths(&self) -> Vec<&str> {
        let own = ["path", "file_path"].into_iter().filter_map(|field| self.data.get(field));
        let effects = self.effects().into_iter().filter(|found| found.effect.names_path());
        let args = effects.filter_map(|found| found.text().filter(|path| !path.is_empty()));
        let listed = match self.data.get("files") {
            Some(Value::Array(files)) => files.as_slice(),
            file => file.map(slice::from_ref).unwrap_or_default(),
        };
        let mut seen = HashSet::new();
        let own = own.chain(self.data.get("file")).filter_map(file_path);
        let paths = own.chain(args).chain(listed.iter().filter_map(file_path));
        paths.filter(|path| seen.insert(*path)).collect()
    }

    /// The same event with data that earlier hooks returned.
    ///
    /// Data cannot overwrite the event's own fields or add fields of the table. So a later hook can trust that these
    /// fields come from the host.
    #[must_use]
    pub fn with_extra(mut self, extra: &Map<String, Value>) -> Event {
        for (name, value) in extra {
            if !self.data.contains_key(name) && !self.kind.fields().any(|(field, _)| field == name) {
                self.data.insert(name.clone(), value.clone());
            }
        }
        self
    }

    /// The names of the offered tools, whether listed as names or as objects with a `name`.
    pub fn offered_tools(&self) -> Vec<&str> {
        let offered = self.data.get("available_tools").and_then(Value::as_array);
        offered.into_iter().flatten().filter_map(tool_name).collect()
    }

    /// Removes every offered tool that is not in `kept`.
    pub fn keep_tools(&mut self, kept: &[String]) {
        if let Some(Value::Array(offered)) = self.data.get_mut("available_tools") {
            offered.retain(|tool| tool_name(tool).is_some_and(|name| kept.iter().any(|keep| keep == name)));
        }
    }
}

/// In JSON-RPC requests, `changes` is the diff as text, and the details are under `changeInfo`.
fn name_changes(data: &mut Map<String, Value>) {
    if data.get("changes").is_some_and(Value::is_string) && !data.contains_key("diff") {
        let diff = data.shift_remove("changes").unwrap_or_default();
        data.insert("diff".to_owned(), diff);
    }
    if !data.contains_key("changes")
        && let Some(changes) = data.shift_remove("changeInfo")
    {
        data.insert("changes".to_owned(), changes);
    }
}

/// The path of a file, which may be text or an object with a `path` or `file_path`.
fn file_path(file: &Value) -> Option<&str> {
    let described =
        || ["absolutePath", "path", "file_path"].iter().find_map(|name| file.get(name)).and_then(Value::as_str);
    file.as_str().or_else(described).filter(|path| !path.is_empty())
}

/// The name of one entry of a tool list.
pub(crate) fn tool_name(tool: &Value) -> Option<&str> {
    tool.as_str().or_else(|| tool.get("name")?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, row) in EVENTS.iter().enumerate() {
            assert_eq!(row.kind as usize, index, "{}", row.name);
        }
        assert_eq!(EVENTS.len(), EventKind::Custom as usize + 1);
    }

    #[test]
    fn loose_spellings_become_canonical_ones() {
        let data = serde_json::json!({"toolName": "shell", "arguments": {"a": 1}, "sessionId": "s", "turn": 3});
        let event = Event::from_loose(EventKind::BeforeTool, data);
        let expected = serde_json::json!({"turn": 3, "session_id": "s", "tool_name": "shell", "args": {"a": 1}});
        assert_eq!(Value::Object(event.data), expected);
        for spelling in ["args", "toolArgs", "tool_args", "arguments"] {
            let event = Event::unchecked(EventKind::BeforeTool, [(spelling, serde_json::json!({"a": 1}))]);
            let event = Event::from_loose(EventKind::BeforeTool, Value::Object(event.data));
            assert_eq!(Value::Object(event.data), serde_json::json!({"args": {"a": 1}}), "{spelling}");
        }
    }

    #[test]
    fn a_spelling_that_disagrees_with_the_canonical_field_stays_beside_it() {
        let data = serde_json::json!({"session_id": "a", "sessionId": "b"});
        let event = Event::from_loose(EventKind::SessionStart, data.clone());
        assert_eq!(Value::Object(event.data), data);
    }

    #[test]
    fn data_that_is_no_object_is_wrapped() {
        assert_eq!(Event::from_loose(EventKind::Custom, Value::Null).data.len(), 0);
        let event = Event::from_loose(EventKind::Custom, 7.into());
        assert_eq!(event.data.get("value"), Some(&Value::from(7)));
    }

    #[test]
    fn the_paths_of_an_event_are_found_wherever_hosts_put_them() {
        for (data, paths) in [
            (serde_json::json!({"path": "a"}), vec!["a"]),
            (serde_json::json!({"file_path": "a"}), vec!["a"]),
            (serde_json::json!({"path": "a", "file": {"path": "b"}}), vec!["a", "b"]),
            (serde_json::json!({"path": "a", "file": {"path": "a"}}), vec!["a"]),
            (
                serde_json::json!({"args": {"path": "a", "file_path": "b", "filePath": "c", "notebook_path": "d"}}),
                vec!["a", "b", "c", "d"],
            ),
            (serde_json::json!({"args": {"paths": ["a", "b", "a"]}}), vec!["a", "b"]),
            (serde_json::json!({"args": {"path": ["a"], "absolute_path": "b"}}), vec!["a", "b"]),
            (serde_json::json!({"args": {"source": "a", "destination": "b"}}), vec!["a", "b"]),
            (serde_json::json!({"args": {"files": [{"path": "a"}], "edits": [{"file_path": "b"}]}}), vec!["a", "b"]),
            (serde_json::json!({"files": ["a", {"path": "b"}, 3, ""]}), vec!["a", "b"]),
            (serde_json::json!({"files": "a"}), vec!["a"]),
            (serde_json::json!({"path": 3, "file": null, "args": "x", "files": 3}), vec![]),
            (serde_json::json!({}), vec![]),
        ] {
            let event = Event::from_loose(EventKind::BeforeTool, data);
            assert_eq!(event.paths(), paths);
        }
    }

    #[test]
    fn extra_data_never_overwrites_the_events_own() {
        let event = Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into())]);
        let extra = Map::from_iter([("tool_name".to_owned(), "evil".into()), ("seen".to_owned(), true.into())]);
        let event = event.with_extra(&extra);
        assert_eq!(event.text("tool_name"), Some("shell"));
        assert_eq!(event.data.get("seen"), Some(&Value::Bool(true)));
    }
}
