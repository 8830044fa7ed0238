//! What one `config.yaml` says, each value with its place.

use ollm_protocol::{Code, Remedy, Source, nearest};
use serde_json::Value;

use super::key::{Key, Place, Safety, guards, names, of_server, place};
use super::kind::Kind;
use super::older;
use crate::file::Finding;
use crate::mcp;
use crate::node::{Cursor, Node, Part, Spot};
use crate::problem::Severity;
use crate::value::{self, Reading};

/// The newest form of the file that we know.
const VERSION: u64 = 1;

/// A value and where it is written.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) key: &'static Key,
    /// Its path, with the names people chose.
    pub(crate) path: String,
    pub(crate) value: Value,
    pub(crate) spot: Spot,
    /// The value as it was written, where it may turn out not to count.
    pub(crate) shown: Option<String>,
    /// Whether it stands under an older name.
    pub(crate) older: bool,
}

/// Reads the settings; `guarded` is how bad it is when one that guards something makes no sense.
pub(crate) fn read(root: &Cursor<'_>, guarded: Severity) -> (Vec<Said>, Vec<Finding>) {
    let mut reader = Reader { guarded, said: Vec::new(), findings: Vec::new() };
    if reader.is_known_version(root) {
        reader.section(root, &[]);
    }
    reader.drop_doubles();
    (reader.said, reader.findings)
}

struct Reader {
    guarded: Severity,
    said: Vec<Said>,
    findings: Vec<Finding>,
}

/// How a setting is to be read.
#[derive(Clone, Copy)]
struct Leaf {
    key: &'static Key,
    kind: Kind,
    older: bool,
}

impl Reader {
    fn is_known_version(&mut self, root: &Cursor<'_>) -> bool {
        let Some(at) = root.get("version") else { return true };
        match value::whole(at.node) {
            Reading::Exact(found) | Reading::Converted(found) if found > VERSION => {
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
        let here = place(path);
        match here {
            Place::Leaf(key) => return self.leaf(at, path, Leaf { key, kind: key.kind, older: false }),
            Place::Section => return self.section(at, path),
            Place::Open(_) | Place::Nowhere => {}
        }
        match (older::today(path), here) {
            (Some((today, kind)), _) => self.older(at, &today, kind),
            (None, Place::Open(key)) => {
                self.hint(at, path);
                self.leaf(at, path, Leaf { key, kind: key.kind, older: false });
            }
            (None, _) => self.unknown(at, path),
        }
    }

    /// What stands under an older name counts as if it stood under today's.
    fn older(&mut self, at: &Cursor<'_>, today: &[String], kind: Option<Kind>) {
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
        if let Place::Leaf(key) = place(&path) {
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
            Kind::Server => self.server(at, name),
            kind => self.settle(at, kind, self.wrong(leaf.key)),
        };
        if let Some(value) = value {
            let shown = (self.guarded != Severity::Fatal).then(|| at.node.shown());
            let (path, spot) = (path.join("."), at.spot(Part::Value));
            self.said.push(Said { key: leaf.key, path, value, spot, shown, older: leaf.older });
        }
    }

    /// How bad it is when a setting makes no sense.
    fn wrong(&self, key: &Key) -> Severity {
        if key.safety == Safety::Critical { self.guarded } else { Severity::Warning }
    }

    fn settle(&mut self, at: &Cursor<'_>, kind: Kind, wrong: Severity) -> Option<Value> {
        let (name, expected) = (at.key().unwrap_or_default(), || kind.expected());
        match kind.read(at.node) {
            Reading::Exact(value) => Some(value),
            Reading::Converted(value) => {
                let message = format!("`{name}` should be {}, not {}; it is read as meant", expected(), at.node.kind());
                self.findings.push(Finding::at(Code::WrongValue, Severity::Warning, at, Part::Value, message, None));
                Some(value)
            }
            Reading::Wrong => {
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

    /// A server is taken whole or not at all: half of one would be another one. Whoever starts servers reads it too.
    fn server(&mut self, at: &Cursor<'_>, name: &str) -> Option<Value> {
        let source = if self.guarded == Severity::Fatal { Source::User } else { Source::Workspace };
        if !mcp::is_sound(name, at, source, &mut self.findings) {
            return None;
        }
        let said = at.entries().filter(|(_, at)| !matches!(at.node, Node::Null));
        let value = |name: &str, node: &Node| match of_server(name).map(|key| key.kind.read(node)) {
            Some(Reading::Exact(value) | Reading::Converted(value)) => value,
            Some(Reading::Wrong) | None => node.to_json(),
        };
        Some(said.map(|(name, at)| (name.to_owned(), value(name, at.node))).collect())
    }

    fn unknown(&mut self, at: &Cursor<'_>, path: &[&str]) {
        let name = path.last().copied().unwrap_or_default();
        let help = near(path).map(|near| format!("did you mean `{near}`?"));
        self.findings.push(Finding::at(
            Code::UnknownKey,
            Severity::Warning,
            at,
            Part::Key,
            format!("unknown key `{name}` is ignored"),
            help,
        ));
    }

    /// A word where any word may stand is worth a word only if it looks mistyped.
    fn hint(&mut self, at: &Cursor<'_>, path: &[&str]) {
        if let Some(near) = near(path) {
            let name = at.key().unwrap_or_default();
            let message = format!("unknown key `{name}` is handed on as it is");
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

    /// Where a setting stands under two names, today's counts.
    fn drop_doubles(&mut self) {
        let mut kept: Vec<Said> = Vec::with_capacity(self.said.len());
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
                message: format!("this is ignored: `{}` stands in this file under today's name too", lost.path),
                help: Some("remove the older one".to_owned()),
                value: lost.shown,
                spot: Some(lost.spot),
                remedy: None,
            });
        }
        self.said = kept;
    }
}

/// The known name nearest to the last one of a path.
fn near(path: &[&str]) -> Option<&'static str> {
    let (name, section) = path.split_last()?;
    nearest(name, names(section))
}
