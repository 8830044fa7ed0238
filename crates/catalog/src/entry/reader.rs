//! Reads values of an entry: takes them, converts them with a warning, or refuses them with place and remedy.

use std::borrow::Cow;

use ollm_protocol::hook::key::HOOK_KEYS;
use ollm_protocol::{Code, did_you_mean};
use serde_json::{Map, Value};

use crate::config::camel;
use crate::file::Finding;
use crate::format::Context;
use crate::node::{Cursor, Node, Part};
use crate::problem::Severity;
use crate::value::{self, ReadValue};

pub(super) const FLAG: &str = "true or false";
pub(super) const TIME: &str = "a number, or text with a unit such as \"5s\"";
pub(super) const SIZE: &str = "a number of bytes, or text with a unit such as \"256MiB\"";
pub(super) const COUNT: &str = "a whole number";
pub(super) const POSITIVE: &str = "a whole number above zero";
pub(super) const SERVICES: &str = "a list of addresses such as \"127.0.0.1:11434\"";
pub(super) const SPAN: &str = "a time with its unit such as \"5s\"";
pub(super) const PAUSE: &str = "a number of milliseconds, or text such as \"5s\"";

/// The number of findings after which hints are omitted, because they cost time.
pub(crate) const MANY: usize = 200;

/// The most keys of one map that are read.
const MOST_KEYS: usize = 1000;

/// Reads one entry.
pub(crate) struct EntryReader<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) findings: &'a mut Vec<Finding>,
    /// Whether no finding so far prevents loading the hook.
    pub(super) sound: bool,
}

/// The finding that a hook is not loaded, with the reason.
pub(crate) fn not_loaded(code: Code, cursor: &Cursor<'_>, message: &str, help: Option<String>) -> Finding {
    let message = format!("{message}; the hook is not loaded");
    Finding::at(code, Severity::Error, cursor, Part::Value, message, help)
}

/// The key's canonical name, from an alias or its snake_case spelling.
pub(crate) fn canonical(key: &str) -> Cow<'_, str> {
    let camel = Some(key).filter(|key| key.contains('_')).and_then(camel).map_or(Cow::Borrowed(key), Cow::Owned);
    let known = HOOK_KEYS.iter().find(|row| row.aliases.contains(&&*camel));
    known.map_or(camel, |row| Cow::Borrowed(row.name))
}

/// The known word most similar to this one.
pub(crate) fn meant(word: &str, known: &[&str]) -> Option<String> {
    did_you_mean(word, known.iter().copied())
}

impl EntryReader<'_> {
    /// Reads every set key of a map, by its canonical name.
    pub(super) fn keys(&mut self, at: &Cursor<'_>, mut take: impl FnMut(&mut Self, &str, &Cursor<'_>)) {
        let mut seen: Vec<Cow<'_, str>> = Vec::new();
        if self.is_crowded(at) {
            return;
        }
        for (written, value) in at.entries() {
            let key = canonical(written);
            if seen.contains(&key) {
                self.refuse(&value, &format!("`{key}` is written twice"), Some("keep one of them".to_owned()));
            }
            if !matches!(value.node, Node::Null) {
                take(self, &key, &value);
            }
            seen.push(key);
        }
    }

    /// Whether a map has too many keys, because each key is compared with all others.
    fn is_crowded(&mut self, at: &Cursor<'_>) -> bool {
        let crowded = matches!(at.node, Node::Map(entries) if entries.len() > MOST_KEYS);
        if crowded {
            self.refuse(at, &format!("it has more than {MOST_KEYS} keys"), None);
        }
        crowded
    }

    /// Reads the keys of a node that must be a map.
    pub(crate) fn map(&mut self, at: &Cursor<'_>, take: impl FnMut(&mut Self, &str, &Cursor<'_>)) {
        if !matches!(at.node, Node::Map(_)) {
            let key = at.key().unwrap_or_default();
            self.refuse(at, &format!("`{key}` must be a map, not {}", at.node.kind()), None);
        }
        self.keys(at, take);
    }

    pub(crate) fn texts(&mut self, at: &Cursor<'_>, expected: &str) -> Vec<String> {
        self.need(at, value::texts(at.node), expected).unwrap_or_default()
    }

    /// One text or a list of texts.
    pub(crate) fn one_or_more(&mut self, at: &Cursor<'_>, expected: &str) -> Vec<String> {
        match at.node {
            Node::Text(text) => vec![text.clone()],
            _ => self.texts(at, expected),
        }
    }

    /// Reads patterns. An empty list would fit nothing, and must not count as fitting everything.
    pub(crate) fn patterns(&mut self, at: &Cursor<'_>) -> Vec<String> {
        let patterns = self.texts(at, "a list of patterns");
        if patterns.is_empty() && matches!(at.node, Node::List(_)) {
            let key = at.key().unwrap_or_default();
            self.refuse(
                at,
                &format!("`{key}` is empty"),
                Some("name a pattern such as \"*.rs\", or remove it".to_owned()),
            );
        }
        patterns
    }

    /// Names and their texts, such as variables.
    pub(super) fn texts_by_name(&mut self, at: &Cursor<'_>, what: &str) -> Vec<(String, String)> {
        let key = at.key().unwrap_or_default();
        if !matches!(at.node, Node::Map(_)) {
            self.refuse(at, &format!("`{key}` must be a map of names to text, not {}", at.node.kind()), None);
        }
        let mut all: Vec<(String, String)> = Vec::new();
        if self.is_crowded(at) {
            return all;
        }
        for (name, value) in at.entries() {
            if name.is_empty() || name.contains(['=', '\0']) || all.iter().any(|(seen, _)| seen == name) {
                self.refuse(&value, &format!("`{name}` cannot be the name of a {what} here"), None);
            }
            if let Some(text) = self.need(&value, value::text(value.node), "text") {
                all.push((name.to_owned(), text));
            }
        }
        all
    }

    /// A map with any keys.
    pub(super) fn object(&mut self, at: &Cursor<'_>) -> Map<String, Value> {
        if let Value::Object(map) = at.node.to_json() {
            return map;
        }
        let key = at.key().unwrap_or_default();
        self.refuse(at, &format!("`{key}` must be a map, not {}", at.node.kind()), None);
        Map::new()
    }

    /// One of these words; `take` returns whether it accepted the word.
    pub(super) fn choice(&mut self, at: &Cursor<'_>, names: &[&'static str], take: impl FnOnce(&str) -> bool) {
        let written = at.node.as_text();
        if !written.is_some_and(take) {
            let help = written.and_then(|text| did_you_mean(text, names.iter().copied()));
            let key = at.key().unwrap_or_default();
            self.refuse(at, &format!("`{key}` must be one of {}", names.join(", ")), help);
        }
    }

    /// A required value: without it, the hook would do something else.
    pub(super) fn need<T>(&mut self, at: &Cursor<'_>, reading: ReadValue<T>, expected: &str) -> Option<T> {
        let value = self.read(at, reading, expected);
        if value.is_none() {
            let key = at.key().unwrap_or_default();
            self.refuse(at, &format!("`{key}` must be {expected}, not {}", value::found(at.node, expected)), None);
        }
        value
    }

    /// A value that is only for people.
    pub(super) fn want<T>(&mut self, at: &Cursor<'_>, reading: ReadValue<T>, expected: &str) -> Option<T> {
        let value = self.read(at, reading, expected);
        if value.is_none() {
            let key = at.key().unwrap_or_default();
            let message = format!("`{key}` must be {expected}, not {}; it is ignored", value::found(at.node, expected));
            self.warn(Code::WrongValue, at, Part::Value, message, None);
        }
        value
    }

    /// The value, with a warning if it was converted.
    fn read<T>(&mut self, at: &Cursor<'_>, reading: ReadValue<T>, expected: &str) -> Option<T> {
        match reading {
            ReadValue::Exact(value) => Some(value),
            ReadValue::Converted(value) => {
                let key = at.key().unwrap_or_default();
                let message = format!("`{key}` should be {expected}, not {}; it is read as meant", at.node.kind());
                self.warn(Code::WrongValue, at, Part::Value, message, None);
                Some(value)
            }
            ReadValue::Wrong => None,
        }
    }

    pub(super) fn trusted(&mut self, at: &Cursor<'_>) {
        let message = match (at.node, self.context.is_users_own()) {
            (Node::Bool(false), false) | (Node::Bool(true), true) => return,
            (_, false) => "`trusted` is ignored: a project cannot vouch for itself",
            (_, true) => "`trusted` is ignored: the user's own hooks need no approval",
        };
        let help = if self.context.is_users_own() { "write \"enabled\": false to switch it off" } else { "remove it" };
        self.warn(Code::Ignored, at, Part::Key, message.to_owned(), Some(help.to_owned()));
    }

    pub(crate) fn unknown(&mut self, at: &Cursor<'_>, known: &[&str]) {
        let key = at.key().unwrap_or_default();
        let help = if self.findings.len() < MANY { meant(key, known) } else { None };
        self.warn(Code::UnknownKey, at, Part::Key, format!("unknown key `{key}` is ignored"), help);
    }

    /// Refuses an unknown key that prevents loading the hook.
    pub(super) fn refuse_unknown(&mut self, at: &Cursor<'_>, known: &[&str]) {
        let key = at.key().unwrap_or_default();
        let help = meant(key, known).unwrap_or_else(|| format!("there are {}", known.join(", ")));
        self.sound = false;
        let message = format!("unknown key `{key}`; the hook is not loaded");
        self.findings.push(Finding::at(Code::UnknownKey, Severity::Error, at, Part::Key, message, Some(help)));
    }

    /// Reports a missing part that an entry cannot do without.
    pub(super) fn lacks(&mut self, at: &Cursor<'_>, message: &str, help: Option<String>) {
        self.sound = false;
        self.findings.push(not_loaded(Code::MissingKey, at, message, help));
    }

    pub(crate) fn refuse(&mut self, at: &Cursor<'_>, message: &str, help: Option<String>) {
        self.sound = false;
        self.findings.push(not_loaded(Code::WrongValue, at, message, help));
    }

    pub(super) fn warn(&mut self, code: Code, at: &Cursor<'_>, part: Part, message: String, help: Option<String>) {
        self.findings.push(Finding::at(code, Severity::Warning, at, part, message, help));
    }
}
