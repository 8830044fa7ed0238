//! Reads the fields of a manifest. Each is taken, or refused with its place and the valid values.

use std::path::Path;

use ollm_protocol::{Code, did_you_mean};

use crate::file::Finding;
use crate::node::{Cursor, Node, Part};
use crate::path::PathCache;
use crate::problem::Severity;
use crate::value::{self, ReadValue};

/// The faults found so far.
pub(super) struct Check<'a> {
    /// The extension's folder.
    pub(super) folder: &'a Path,
    /// The cached results for files in the folder.
    pub(super) walked: &'a PathCache,
    pub(super) findings: &'a mut Vec<Finding>,
}

impl Check<'_> {
    /// Reports a fault that prevents loading the extension.
    pub(super) fn refuse(&mut self, at: &Cursor<'_>, message: impl Into<String>, help: Option<&str>) {
        self.findings.push(Finding::at(
            Code::WrongValue,
            Severity::Error,
            at,
            Part::Value,
            message.into(),
            help.map(str::to_owned),
        ));
    }

    /// Reports a harmless deviation.
    pub(super) fn warn(&mut self, code: Code, at: &Cursor<'_>, message: impl Into<String>, help: Option<String>) {
        self.findings.push(Finding::at(code, Severity::Warning, at, Part::Key, message.into(), help));
    }

    /// Reports an unknown key.
    pub(super) fn unknown(&mut self, at: &Cursor<'_>, known: &[&str]) {
        let key = at.key().unwrap_or_default();
        let meant = did_you_mean(key, known.iter().copied());
        self.warn(Code::UnknownKey, at, format!("unknown key `{key}` is ignored"), meant);
    }

    /// Reads every set key of a node that must be a map, as in the example. Refuses doubled keys.
    pub(super) fn map(
        &mut self,
        at: &Cursor<'_>,
        what: &str,
        example: &str,
        mut take: impl FnMut(&mut Self, &str, &Cursor<'_>),
    ) -> bool {
        if !matches!(at.node, Node::Map(_)) {
            let help = format!("write a map such as {example}");
            self.refuse(at, format!("{what} must be a map, not {}", at.node.kind()), Some(&help));
            return false;
        }
        let mut seen: Vec<&str> = Vec::new();
        for (key, value) in at.entries() {
            if seen.contains(&key) {
                self.refuse(&value, format!("`{key}` is written twice"), Some("keep one of them"));
            }
            if !matches!(value.node, Node::Null) {
                take(self, key, &value);
            }
            seen.push(key);
        }
        true
    }

    /// Reads the items of a node that must be a list.
    pub(super) fn list(&mut self, at: &Cursor<'_>, mut take: impl FnMut(&mut Self, &Cursor<'_>)) {
        if matches!(at.node, Node::List(_)) {
            at.items().for_each(|item| take(self, &item));
        } else {
            let key = at.key().unwrap_or_default();
            let message = format!("`{key}` must be a list, not {}", at.node.kind());
            self.refuse(at, message, Some("put it in square brackets"));
        }
    }

    /// Reads a value that must be valid.
    pub(super) fn take<T>(&mut self, at: &Cursor<'_>, reading: ReadValue<T>, expected: &str) -> Option<T> {
        if let ReadValue::Exact(value) = reading {
            return Some(value);
        }
        let key = at.key().unwrap_or("it");
        self.refuse(at, format!("`{key}` must be {expected}, not {}", at.node.kind()), None);
        None
    }

    /// Reads non-empty text.
    pub(super) fn words(&mut self, at: &Cursor<'_>) -> Option<String> {
        self.take(at, value::word(at.node), "text that is not empty")
    }

    pub(super) fn flag(&mut self, at: &Cursor<'_>) -> bool {
        self.take(at, value::flag(at.node), "true or false").unwrap_or_default()
    }

    pub(super) fn texts(&mut self, at: &Cursor<'_>) -> Vec<String> {
        const EXAMPLE: &str = r#"write one such as ["a", "b"], each text in double quotes"#;
        if let ReadValue::Exact(texts) = value::texts(at.node) {
            return texts;
        }
        let key = at.key().unwrap_or_default();
        if let Some(odd) = at.items().find(|item| !matches!(item.node, Node::Text(_))) {
            self.refuse(&odd, format!("`{key}` must be a list of texts; this is {}", odd.node.kind()), Some(EXAMPLE));
        } else {
            self.refuse(at, format!("`{key}` must be a list of texts, not {}", at.node.kind()), Some(EXAMPLE));
        }
        Vec::new()
    }

    /// Reports a required key that is missing.
    pub(super) fn demand(&mut self, at: &Cursor<'_>, what: &str, key: &str) {
        if !at.get(key).is_some_and(|value| !matches!(value.node, Node::Null)) {
            self.findings.push(Finding::at(
                Code::MissingKey,
                Severity::Error,
                at,
                Part::Value,
                format!("the {what} has no `{key}`"),
                Some(format!("add `{key}`")),
            ));
        }
    }
}
