//! The moments of an agent's life, and what is known at each of them.
//!
//! One table says everything about an event that does not depend on a dialect: its canonical name, whether a refusal
//! can stop anything, and its data fields. How a dialect spells it is that dialect's own business.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::tool::{CallEffect, effects_of, effects_of_text};

mod build;
mod file_change;
mod sample;

pub use build::EventError;
pub use file_change::FileChange;

/// A moment in an agent's life.
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

/// What a refusal does at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// The operation does not happen.
    Stops,
    /// The operation has happened; the refusal is told to the model.
    Feedback,
    /// Nothing is left to stop: the refusal ends the chain and is reported.
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
    /// What a refusal does.
    pub power: Power,
    /// Its data fields beside [`COMMON`].
    pub fields: &'static [(&'static str, Shape)],
}

/// The data fields every event may carry.
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

    /// Whether this is about a call of a tool.
    pub fn is_tool_call(self) -> bool {
        matches!(self, EventKind::BeforeTool | EventKind::AfterTool)
    }

    /// The data field that a matcher looks at.
    pub fn subject_field(self) -> Option<&'static str> {
        match self {
            EventKind::BeforeTool | EventKind::AfterTool => Some("tool_name"),
            EventKind::Notification => Some("event_type"),
            EventKind::Custom => Some("eventName"),
            _ => None,
        }
    }

    /// All data fields of the event, the common ones first.
    pub fn fields(self) -> impl Iterator<Item = (&'static str, Shape)> {
        COMMON.iter().chain(self.row().fields).copied()
    }
}

/// One event: what happened, and the canonical data known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// What is known, under the canonical field names of the table; other fields pass through.
    pub data: Map<String, Value>,
}

/// Spellings of canonical fields that hosts are known to send.
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
    /// An event with whatever data there is, for who checked it or must take what comes; [`Event::new`] checks it.
    ///
    /// ```
    /// use ollm_protocol::{Event, EventKind};
    /// let event = Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into())]);
    /// assert_eq!(event.subject(), Some("shell"));
    /// ```
    pub fn unchecked<'a>(kind: EventKind, data: impl IntoIterator<Item = (&'a str, Value)>) -> Event {
        Event { kind, data: data.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
    }

    /// An event whose data may use other spellings of the canonical fields, or be no object at all.
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
        // Where others say only the path of a file, it is the file.
        if kind.is_file() && !data.contains_key("path") && data.get("file").is_some_and(Value::is_string) {
            let path = data.shift_remove("file").unwrap_or_default();
            data.insert("path".to_owned(), path);
        }
        Event { kind, data }
    }

    /// What a matcher looks at: the tool name, a notification's type, a custom event's name.
    pub fn subject(&self) -> Option<&str> {
        self.kind.subject_field().and_then(|field| self.text(field))
    }

    /// The field that matchers look at, where the event should have it and does not: nobody can tell which hooks it is for.
    pub fn missing_subject(&self) -> Option<&'static str> {
        self.kind.subject_field().filter(|field| self.text(field).is_none_or(str::is_empty))
    }

    /// A data field that is text.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.data.get(field).and_then(Value::as_str)
    }

    /// The session's id, wherever the host put it.
    pub fn session_id(&self) -> Option<&str> {
        self.text("session_id").or_else(|| self.data.get("session")?.get("id")?.as_str())
    }

    /// Whether it happened to an agent that another agent started.
    ///
    /// Hosts say so by naming that agent. The start and the end of such an agent happen to the one that started it.
    pub fn is_subagents(&self) -> bool {
        let about_one = matches!(self.kind, EventKind::SubagentStart | EventKind::SubagentStop);
        !about_one && self.text("agent_id").is_some_and(|id| !id.is_empty())
    }

    /// The tool's arguments.
    pub fn args(&self) -> Option<&Map<String, Value>> {
        self.data.get("args").and_then(Value::as_object)
    }

    /// What the tool call does, as far as its tool declares it or its arguments tell.
    pub fn effects(&self) -> Vec<CallEffect<'_>> {
        let name = self.text("tool_name").unwrap_or_default();
        match self.data.get("args") {
            Some(Value::Object(args)) => effects_of(name, args),
            Some(Value::String(text)) => effects_of_text(name, text),
            _ => Vec::new(),
        }
    }

    /// The files the event is about, as the host spelled them, each once: the fields of file events, the file arguments
    /// of a tool, the files of a commit.
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
        let listed = self.data.get("files").and_then(Value::as_array).into_iter().flatten();
        let mut seen = HashSet::new();
        let own = own.chain(self.data.get("file")).filter_map(file_path);
        let paths = own.chain(args).chain(listed.filter_map(file_path));
        paths.filter(|path| seen.insert(*path)).collect()
    }

    /// The same event with data that earlier hooks returned.
    ///
    /// The event's own fields cannot be overwritten, nor can the fields of the table be made up: a later hook must be
    /// able to believe that what stands in them came from the host.
    #[must_use]
    pub fn with_extra(mut self, extra: &Map<String, Value>) -> Event {
        for (name, value) in extra {
            if !self.data.contains_key(name) && !self.kind.fields().any(|(field, _)| field == name) {
                self.data.insert(name.clone(), value.clone());
            }
        }
        self
    }

    /// The names of the tools on offer, whether listed as names or as objects with a `name`.
    pub fn offered_tools(&self) -> Vec<&str> {
        let offered = self.data.get("available_tools").and_then(Value::as_array);
        offered.into_iter().flatten().filter_map(tool_name).collect()
    }

    /// Drops every offered tool that is not in `kept`.
    pub fn keep_tools(&mut self, kept: &[String]) {
        if let Some(Value::Array(offered)) = self.data.get_mut("available_tools") {
            offered.retain(|tool| tool_name(tool).is_some_and(|name| kept.iter().any(|keep| keep == name)));
        }
    }
}

/// Where `changes` is text it is the diff, as in JSON-RPC requests, and the particulars stand under `changeInfo`.
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

/// The path of a file that is named by its path, or described by an object with a `path` or `file_path`.
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
            (serde_json::json!({"path": 3, "file": null, "args": "x", "files": "a"}), vec![]),
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
