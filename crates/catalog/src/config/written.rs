//! Reads the settings of one `config.yaml`, each value with its place.

use ollm_protocol::{Code, Remedy, Source, nearest};
use serde_json::Value;

use super::key::{Key, KeyPlace, Safety, guards, map_of, names, of_server, place};
use super::kind::ConfigKind;
use super::older;
use crate::file::Finding;
use crate::mcp;
use crate::node::{Cursor, Node, Part, Spot};
use crate::problem::Severity;
use crate::value::{self, ReadValue};

/// The newest version of the file format that we know.
const VERSION: u64 = 1;

/// A value and its place.
#[derive(Debug)]
pub(crate) struct WrittenValue {
    pub(crate) key: &'static Key,
    /// Its path, with the names people chose.
    pub(crate) path: String,
    pub(crate) value: Value,
    pub(crate) spot: Spot,
    /// The value as written, for messages if it does not count.
    pub(crate) shown: Option<String>,
    /// Whether it is under an older name.
    pub(crate) older: bool,
}

/// Reads the settings. `guarded` is the severity of an invalid guard.
pub(crate) fn read(root: &Cursor<'_>, guarded: Severity) -> (Vec<WrittenValue>, Vec<Finding>) {
    let mut reader = ConfigReader { guarded, said: Vec::new(), findings: Vec::new() };
    if reader.is_known_version(root) {
        reader.section(root, &[]);
    }
    reader.drop_doubles();
    (reader.said, reader.findings)
}

struct ConfigReader {
    guarded: Severity,
    said: Vec<WrittenValue>,
    findings: Vec<Finding>,
}

/// How to read a setting.
#[derive(Clone, Copy)]
struct Leaf {
    key: &'static Key,
    kind: ConfigKind,
    older: bool,
}

impl ConfigReader {
    fn is_known_version(&mut self, root: &Cursor<'_>) -> bool {
        let Some(at) = root.get("version") else { return true };
        match value::whole(at.node) {
            ReadValue::Exact(found) | ReadValue::Converted(found) if found > VERSION => {
                let message = format!(
                    "this file has version {found}, and this program knows versions up to {VERSION}; none of its settings apply"
                );
                self.findings.push(Finding::at(
                    Code::WrongForm,
                    self.guarded.min(Severity::Error),
                    &at,
                    Part::Value,
                    message,
                    Some("update ollm".to_owned()),
                ));
                false
            }
            _ => true,
        }
    }

    fn section(&mut self, at: &Cursor<'_>, path: &[&str]) {
        if !matches!(at.node, Node::Map(_) | Node::Null) {
            let kind = at.node.kind();
            let wrong = if guards(path) { self.guarded.min(Severity::Error) } else { Severity::Error };
            let then = if wrong == Severity::Fatal { "nothing runs until it is corrected" } else { "none apply" };
            let message = match path.last() {
                Some(name) => format!("`{name}` must be a map of settings, not {kind}; {then}"),
                None => format!("a map of settings is needed, not {kind}; {then}"),
            };
            self.findings.push(Finding::at(Code::WrongValue, wrong, at, Part::Value, message, None));
        }
        for (name, value) in at.entries() {
            let path: Vec<&str> = path.iter().copied().chain([name]).collect();
            self.entry(&value, &path);
        }
    }

    fn entry(&mut self, at: &Cursor<'_>, path: &[&str]) {
        if let (Node::Map(_), Some(names)) = (at.node, map_of(path)) {
            return self.map(at, path, names);
        }
        let here = place(path);
        match here {
            KeyPlace::Leaf(key) => return self.leaf(at, path, Leaf { key, kind: key.kind, older: false }),
            KeyPlace::Section => return self.section(at, path),
            KeyPlace::Open(_) | KeyPlace::Nowhere => {}
        }
        match (older::today(path), here) {
            (Some((today, kind)), _) => self.older(at, &today, kind),
            (None, KeyPlace::Open(key)) => {
                self.hint(at, path);
                self.leaf(at, path, Leaf { key, kind: key.kind, older: false });
            }
            (None, _) => self.unknown(at, path),
        }
    }

    /// Reads a map of several settings in the place of a single one.
    fn map(&mut self, at: &Cursor<'_>, path: &[&str], names: &[(&str, &str)]) {
        for (name, value) in at.entries() {
            let setting = names.iter().find(|(known, _)| *known == name);
            let parts: Vec<&str> = setting.map_or_else(Vec::new, |(_, setting)| setting.split('.').collect());
            match place(&parts) {
                KeyPlace::Leaf(key) => self.leaf(&value, &parts, Leaf { key, kind: key.kind, older: false }),
                _ => self.unknown(&value, &[path, &[name]].concat()),
            }
        }
    }

    /// Reads a value under an older name like one under the present name.
    fn older(&mut self, at: &Cursor<'_>, today: &[String], kind: Option<ConfigKind>) {
        let path: Vec<&str> = today.iter().map(String::as_str).collect();
        let name = at.key().unwrap_or_default();
        let message = format!("`{name}` is an older name of `{}` and is read as that", today.join("."));
        let (spot, value, remedy) =
            (Some(at.spot(Part::Key)), Some(at.node.shown()), Some(Remedy::MigrateConfiguration));
        self.findings.push(Finding {
            code: Code::OlderName,
            severity: Severity::Warning,
            spot,
            value,
            message,
            help: None,
            remedy,
        });
        if let KeyPlace::Leaf(key) = place(&path) {
            return self.leaf(at, &path, Leaf { key, kind: kind.unwrap_or(key.kind), older: true });
        }
        let before = self.said.len();
        self.section(at, &path);
        self.said.iter_mut().skip(before).for_each(|said| said.older = true);
    }

    fn leaf(&mut self, at: &Cursor<'_>, path: &[&str], leaf: Leaf) {
        let name = path.last().copied().unwrap_or_default();
        if matches!(at.node, Node::Null) {
            let message = format!("`{name}` has no value; the default applies");
            return self.findings.push(Finding::at(Code::WrongValue, Severity::Warning, at, Part::Key, message, None));
        }
        let value = match leaf.kind {
            ConfigKind::Server => self.server(at, name),
            kind => self.settle(at, kind, self.wrong(leaf.key)),
        };
        if let Some(value) = value {
            let shown = (self.guarded != Severity::Fatal).then(|| at.node.shown());
            let (path, spot) = (path.join("."), at.spot(Part::Value));
            self.said.push(WrittenValue { key: leaf.key, path, value, spot, shown, older: leaf.older });
        }
    }

    /// The severity of an invalid setting.
    fn wrong(&self, key: &Key) -> Severity {
        if key.safety == Safety::Critical { self.guarded } else { Severity::Warning }
    }

    fn settle(&mut self, at: &Cursor<'_>, kind: ConfigKind, wrong: Severity) -> Option<Value> {
        let (name, expected) = (at.key().unwrap_or_default(), || kind.expected());
        match kind.read(at.node) {
            ReadValue::Exact(value) => Some(value),
            ReadValue::Converted(value) => {
                let message = format!("`{name}` should be {}, not {}; it is read as meant", expected(), at.node.kind());
                self.findings.push(Finding::at(Code::WrongValue, Severity::Warning, at, Part::Value, message, None));
                Some(value)
            }
            ReadValue::Wrong => {
                let then = match wrong {
                    Severity::Fatal => "nothing runs until it is corrected",
                    Severity::Error | Severity::Warning => "the default applies",
                };
                let message = format!("`{name}` must be {}; {then}", expected());
                self.findings.push(Finding::at(Code::WrongValue, wrong, at, Part::Value, message, None));
                None
            }
        }
    }

    /// A server is read whole or not at all, because half of it would be a different server. The code that starts
    /// servers reads it too.
    fn server(&mut self, at: &Cursor<'_>, name: &str) -> Option<Value> {
        let source = if self.guarded == Severity::Fatal { Source::User } else { Source::Workspace };
        if !mcp::is_sound(name, at, source, &mut self.findings) {
            return None;
        }
        let said = at.entries().filter(|(_, at)| !matches!(at.node, Node::Null));
        let value = |name: &str, node: &Node| match of_server(name).map(|key| key.kind.read(node)) {
            Some(ReadValue::Exact(value) | ReadValue::Converted(value)) => value,
            Some(ReadValue::Wrong) | None => node.to_json(),
        };
        Some(said.map(|(name, at)| (name.to_owned(), value(name, at.node))).collect())
    }

    /// Ignores an unknown key, unless it is a slip for a guard: what the person forbids by it must not be allowed.
    fn unknown(&mut self, at: &Cursor<'_>, path: &[&str]) {
        let name = path.last().copied().unwrap_or_default();
        let near = near(path);
        let meant = near.zip(path.split_last()).map(|(near, (_, section))| place(&[section, &[near]].concat()));
        let severity = match meant {
            Some(KeyPlace::Leaf(key)) => self.wrong(key),
            _ => Severity::Warning,
        };
        let then = if severity == Severity::Fatal { "; nothing runs until it is corrected" } else { " is ignored" };
        let help = near.map(|near| format!("did you mean `{near}`?"));
        let message = format!("unknown key `{name}`{then}");
        self.findings.push(Finding::at(Code::UnknownKey, severity, at, Part::Key, message, help));
    }

    /// Where any name is allowed, a warning is only given if the name looks misspelt.
    fn hint(&mut self, at: &Cursor<'_>, path: &[&str]) {
        if let Some(near) = near(path) {
            let name = at.key().unwrap_or_default();
            let message = format!("unknown key `{name}` is handed on unchanged");
            self.findings.push(Finding::at(
                Code::UnknownKey,
                Severity::Warning,
                at,
                Part::Key,
                message,
                Some(format!("did you mean `{near}`?")),
            ));
        }
    }

    /// If a setting has two names in the file, the present name counts.
    fn drop_doubles(&mut self) {
        let mut kept: Vec<WrittenValue> = Vec::with_capacity(self.said.len());
        for said in std::mem::take(&mut self.said) {
            let lost = match kept.iter_mut().find(|other| other.path == said.path) {
                Some(other) if other.older && !said.older => std::mem::replace(other, said),
                Some(_) => said,
                None => {
                    kept.push(said);
                    continue;
                }
            };
            self.findings.push(Finding {
                code: Code::Duplicate,
                severity: Severity::Warning,
                message: format!("this is ignored: `{}` is also in this file, under its current name", lost.path),
                help: Some("remove the older one".to_owned()),
                value: lost.shown,
                spot: Some(lost.spot),
                remedy: None,
            });
        }
        self.said = kept;
    }
}

/// The known name most similar to the last one of a path.
fn near(path: &[&str]) -> Option<&'static str> {
    let (name, section) = path.split_last()?;
    nearest(name, names(section))
}
