//! The settings of one `config.yaml`, each with its place.

use std::time::Duration;

use super::{GUARDS, MILLISECOND};
use crate::file::Finding;
use crate::node::{Cursor, Node, Part, Spot};
use crate::problem::Severity;
use crate::value::{self, Reading, nearest};

const TOP: &[&str] = &["hooks", "extensions", "mcp", "model"];
const HOOKS: &[&str] = &["enabled", "timeout", "trustWorkspace", "untrusted", "whitelist", "guards"];

/// What one file says.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) enabled: Option<Said<bool>>,
    pub(super) timeout: Option<Said<Duration>>,
    pub(super) trust: Option<Said<Trust>>,
    /// Whether an unapproved hook blocks.
    pub(super) blocks: Option<Said<bool>>,
    pub(super) whitelist: Option<Said<Vec<String>>>,
    /// Which built-in guards are on.
    pub(super) guards: Option<Said<Vec<String>>>,
}

/// A value and where it is written.
#[derive(Debug)]
pub(super) struct Said<T> {
    pub(super) value: T,
    pub(super) spot: Spot,
    pub(super) shown: String,
}

/// Which projects are trusted.
#[derive(Debug, PartialEq)]
pub(super) enum Trust {
    /// All, or none.
    All(bool),
    /// Those at or below these paths.
    Under(Vec<String>),
}

struct Reader {
    guarded: Severity,
    findings: Vec<Finding>,
}

impl Written {
    /// Reads the settings; `guarded` is how bad it is when one that guards something makes no sense.
    pub(super) fn read(root: &Cursor<'_>, guarded: Severity) -> (Written, Vec<Finding>) {
        let mut reader = Reader { guarded, findings: Vec::new() };
        let mut written = Written::default();
        if !matches!(root.node, Node::Map(_) | Node::Null) {
            let message = format!("a map of settings is needed, not {}; none apply", root.node.kind());
            reader.find(Severity::Error, root, Part::Value, message, None);
        }
        for (key, value) in root.entries() {
            match key {
                "hooks" => reader.hooks(&value, &mut written),
                key if TOP.contains(&key) => {}
                key => reader.unknown(&value, key, TOP),
            }
        }
        (written, reader.findings)
    }
}

impl Reader {
    fn hooks(&mut self, hooks: &Cursor<'_>, written: &mut Written) {
        if !matches!(hooks.node, Node::Map(_) | Node::Null) {
            let message = format!("`hooks` must be a map of settings, not {}; none apply", hooks.node.kind());
            self.find(Severity::Error, hooks, Part::Value, message, None);
        }
        for (key, at) in hooks.entries() {
            match key {
                key if HOOKS.contains(&key) && matches!(at.node, Node::Null) => {
                    let message = format!("`{key}` has no value; the default applies");
                    self.find(Severity::Warning, &at, Part::Key, message, None);
                }
                "enabled" => {
                    let reading = value::flag(at.node);
                    written.enabled = self.settle(&at, reading, "true or false", Severity::Warning);
                }
                "timeout" => {
                    let reading = value::time(at.node, MILLISECOND);
                    let expected = "a positive number of milliseconds, or text with a unit such as \"5s\"";
                    written.timeout = self.settle(&at, reading, expected, Severity::Warning);
                }
                "trustWorkspace" => {
                    let expected = "true, false or a list of absolute paths";
                    written.trust = self.settle(&at, trust(at.node), expected, self.guarded);
                }
                "untrusted" => {
                    written.blocks = self.settle(&at, blocks(at.node), "skip or block", self.guarded);
                }
                "whitelist" => {
                    let expected = "a list of program names without a path";
                    written.whitelist = self.settle(&at, whitelist(at.node), expected, self.guarded);
                }
                "guards" => {
                    let expected = format!("true, false or a list out of {}", GUARDS.join(", "));
                    written.guards = self.settle(&at, guards(at.node), &expected, self.guarded);
                }
                "rateLimit" => {
                    let message = "`rateLimit` is not supported by this version and has no effect".to_owned();
                    self.find(Severity::Warning, &at, Part::Key, message, None);
                }
                key => self.unknown(&at, key, HOOKS),
            }
        }
    }

    fn settle<T>(&mut self, at: &Cursor<'_>, reading: Reading<T>, expected: &str, wrong: Severity) -> Option<Said<T>> {
        let said = |value| Said { value, spot: at.spot(Part::Value), shown: at.node.shown() };
        let key = at.key().unwrap_or_default();
        match reading {
            Reading::Exact(value) => Some(said(value)),
            Reading::Converted(value) => {
                let message = format!("`{key}` should be {expected}, not {}; it is read as meant", at.node.kind());
                self.find(Severity::Warning, at, Part::Value, message, None);
                Some(said(value))
            }
            Reading::Wrong => {
                let message = format!("`{key}` must be {expected}; the default applies");
                self.find(wrong, at, Part::Value, message, None);
                None
            }
        }
    }

    fn unknown(&mut self, at: &Cursor<'_>, key: &str, known: &[&str]) {
        let help = nearest(key, known).map(|near| format!("did you mean `{near}`?"));
        self.find(Severity::Warning, at, Part::Key, format!("unknown key `{key}` is ignored"), help);
    }

    fn find(&mut self, severity: Severity, at: &Cursor<'_>, part: Part, message: String, help: Option<String>) {
        let value = Some(at.node.shown());
        self.findings.push(Finding { severity, spot: Some(at.spot(part)), value, message, help });
    }
}

fn trust(node: &Node) -> Reading<Trust> {
    match node {
        Node::List(items) => {
            let paths: Option<Vec<String>> = items.iter().map(absolute).collect();
            paths.map_or(Reading::Wrong, |paths| Reading::Exact(Trust::Under(paths)))
        }
        Node::Text(_) => match (value::flag(node), absolute(node)) {
            (Reading::Wrong, Some(path)) => Reading::Converted(Trust::Under(vec![path])),
            (flag, _) => flag.map(Trust::All),
        },
        _ => value::flag(node).map(Trust::All),
    }
}

fn absolute(node: &Node) -> Option<String> {
    match node {
        Node::Text(path) if path.starts_with('/') || path == "~" || path.starts_with("~/") => Some(path.clone()),
        _ => None,
    }
}

fn blocks(node: &Node) -> Reading<bool> {
    match node {
        Node::Text(word) if word == "block" => Reading::Exact(true),
        Node::Text(word) if word == "skip" => Reading::Exact(false),
        _ => Reading::Wrong,
    }
}

/// All, none, or those in the list.
fn guards(node: &Node) -> Reading<Vec<String>> {
    let all = || GUARDS.iter().map(|&name| name.to_owned()).collect();
    match node {
        Node::List(_) => match value::texts(node) {
            Reading::Exact(names) if names.iter().all(|name| GUARDS.contains(&name.as_str())) => Reading::Exact(names),
            _ => Reading::Wrong,
        },
        _ => value::flag(node).map(|on| if on { all() } else { Vec::new() }),
    }
}

fn whitelist(node: &Node) -> Reading<Vec<String>> {
    let is_name = |name: &String| {
        !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || "._+-".contains(letter))
    };
    match value::texts(node) {
        Reading::Exact(names) | Reading::Converted(names) if !names.iter().all(is_name) => Reading::Wrong,
        reading => reading,
    }
}
