//! Which form a file is written in, told by its keys.

use ollm_protocol::{Code, dialect, nearest};

use crate::entry::canonical;
use crate::file::Finding;
use crate::node::{Cursor, Node, Part};
use crate::problem::Severity;

/// A form hooks are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// `{"hooks": {EVENT: [ENTRY, …]}}`, also without the wrapper.
    Events,
    /// One hook, with `eventType` and an action.
    Modern,
    /// One hook, with `when` and `then`.
    WhenThen,
    /// `{"hooks": {EVENT: [{"matcher": …, "hooks": [ENTRY, …]}]}}`: lines of shell in groups.
    Agent,
}

impl Form {
    /// The form of a file, if it is one.
    pub(crate) fn of(root: &Cursor<'_>) -> Option<Form> {
        let Node::Map(entries) = root.node else { return None };
        let has = |name: &str| entries.iter().any(|(key, _)| key == name);
        if let Some(events) = root.get("hooks") {
            return Some(Form::of_events(&events));
        }
        match () {
            () if has("eventType") || has("event_type") => Some(Form::Modern),
            () if has("when") || has("then") => Some(Form::WhenThen),
            () if has("action") => Some(Form::Modern),
            () if entries.iter().all(|(key, _)| dialect::event_named(key).is_ok()) => Some(Form::of_events(root)),
            () => None,
        }
    }

    /// Whether lists hold entries or groups: the first item tells.
    fn of_events(events: &Cursor<'_>) -> Form {
        let first = events.entries().find_map(|(_, list)| match list.node {
            Node::List(items) => items.iter().find(|item| matches!(item, Node::Map(_))),
            _ => None,
        });
        match first {
            Some(Node::Map(keys)) if keys.iter().any(|(key, _)| key == "hooks") => Form::Agent,
            _ => Form::Events,
        }
    }

    /// The form in words.
    pub fn what(self) -> &'static str {
        match self {
            Form::Events => "a map of events to lists of hooks",
            Form::Modern => "a hook with `eventType` and `action`",
            Form::WhenThen => "a hook with `when` and `then`",
            Form::Agent => "a map of events to groups of shell commands",
        }
    }

    /// The smallest file of this form.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Form::Events => "write {\"hooks\": {\"before_tool\": [{\"name\": …, \"command\": …}]}}",
            Form::Modern => {
                "write {\"name\": …, \"eventType\": \"fileEdited\", \"action\": {\"type\": \"askAgent\", \"prompt\": …}}"
            }
            Form::WhenThen => {
                "write {\"name\": …, \"when\": {\"type\": \"fileEdited\"}, \"then\": {\"type\": \"askAgent\", \"prompt\": …}}"
            }
            Form::Agent => {
                "write {\"hooks\": {\"PreToolUse\": [{\"matcher\": \"*\", \"hooks\": [{\"type\": \"command\", \"command\": …}]}]}}"
            }
        }
    }
}

/// The forms with the keys they are told by.
const MARKS: &[(Form, &[&str])] = &[
    (Form::Events, &["hooks"]),
    (Form::Modern, &["eventType", "action", "filePatterns", "command", "args"]),
    (Form::WhenThen, &["when", "then", "patterns"]),
];

/// So many keys tell what a file was meant to be; comparing words costs time.
const LOOKED_AT: usize = 100;

/// What to say of a file that fits no form: which one it comes closest to.
pub(super) fn strange(root: &Cursor<'_>) -> Finding {
    let (form, message) = match root.node {
        Node::Map(_) => closest(root),
        Node::Null => (Form::Events, "it is empty".to_owned()),
        node => (Form::Events, format!("a hook file must be a map, not {}", node.kind())),
    };
    Finding {
        code: Code::WrongForm,
        severity: Severity::Error,
        spot: Some(root.spot(Part::Value)),
        value: Some(root.node.shown()),
        message: format!("{message}; nothing is loaded"),
        help: Some(form.example().to_owned()),
        remedy: None,
    }
}

fn closest(root: &Cursor<'_>) -> (Form, String) {
    let stranger = root.entries().take(LOOKED_AT).map(|(key, _)| key).find(|key| dialect::event_named(key).is_err());
    if root.entries().take(LOOKED_AT).any(|(key, _)| dialect::event_named(key).is_ok()) {
        let key: String = stranger.unwrap_or_default().chars().take(80).collect();
        return (Form::Events, format!("it has no `hooks`, and `{key}` is not the name of an event"));
    }
    let near = |marks: &[&str]| {
        root.entries()
            .take(LOOKED_AT)
            .filter(|(key, _)| nearest(&canonical(key), marks.iter().copied()).is_some())
            .count()
    };
    let best = MARKS.iter().rev().max_by_key(|(_, marks)| near(marks)).filter(|(_, marks)| near(marks) > 0);
    match best {
        Some((form, _)) => (*form, format!("it fits no form of hook file; it comes closest to {}", form.what())),
        None => (Form::Events, "it has no `hooks`".to_owned()),
    }
}
