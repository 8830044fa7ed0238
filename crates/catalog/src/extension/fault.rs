//! Faults that keep an extension off although its manifest is valid, with the part of the manifest they concern.

use std::path::{Path, PathBuf};

use ollm_protocol::{Code, Remedy};

use super::read::{LARGEST_FILE, fingerprint};
use crate::file::{self, Finding, Syntax, whole_file};
use crate::node::{Cursor, Node, Part, Spot};
use crate::path::cleaned;
use crate::problem::{Problem, Severity};

/// Why an extension cannot be on here, without the place yet.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) code: Code,
    pub(super) at: Field,
    /// The problem.
    pub(super) message: String,
    /// The remedy.
    pub(super) help: Option<String>,
    /// The remedy for which the program may have a command.
    pub(super) remedy: Option<Box<Remedy>>,
}

/// A part of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// The name of the extension.
    Name,
    /// The name of an extension that it needs.
    Needed(String),
    /// The version range of that dependency.
    Range(String),
    /// The declaration of a setting.
    Setting(String),
    /// A file that a hook or a server names.
    File(Box<Naming>),
}

/// A file that is named in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Naming {
    /// `hooks` or `mcpServers`.
    pub(super) part: &'static str,
    /// The hook or the server.
    pub(super) owner: String,
    /// The folder of the extension.
    pub(super) folder: PathBuf,
    /// The file.
    pub(super) file: PathBuf,
}

impl Naming {
    /// The place of the file. If several have the same file, the owner's.
    fn find(&self, root: &Cursor<'_>) -> Option<(Spot, String)> {
        let part = root.get(self.part)?;
        self.owned(&part).or_else(|| self.any(&part))
    }

    fn owned(&self, at: &Cursor<'_>) -> Option<(Spot, String)> {
        let is_name = |name: &Node| matches!(name, Node::Text(name) if *name == self.owner);
        let named = at.get("name").is_some_and(|name| is_name(name.node));
        if (named || at.key() == Some(self.owner.as_str()))
            && let Some(found) = self.any(at)
        {
            return Some(found);
        }
        at.entries().map(|(_, below)| below).chain(at.items()).find_map(|below| self.owned(&below))
    }

    fn any(&self, at: &Cursor<'_>) -> Option<(Spot, String)> {
        if matches!(at.node, Node::Text(text) if cleaned(&self.folder.join(text)) == self.file) {
            return Some((at.spot(Part::Value), at.node.shown()));
        }
        at.entries().map(|(_, below)| below).chain(at.items()).find_map(|below| self.any(&below))
    }
}

impl Fault {
    /// Adds the place to the fault. The place is located only now, because faults are rare. If the manifest has changed
    /// since it was read, there is no place.
    pub(super) fn locate(self, path: &Path, understood: Option<u64>, severity: Severity) -> Problem {
        let place = self.at.clone();
        let (code, message, help, remedy) = (self.code, self.message, self.help, self.remedy.map(|remedy| *remedy));
        let finding = |spot, value| Finding { code, severity, spot, value, message, help, remedy };
        let bytes = file::bytes(path, LARGEST_FILE).ok().flatten();
        let bytes = bytes.filter(|bytes| understood.is_none_or(|understood| fingerprint(bytes) == understood));
        let opened = bytes.and_then(|bytes| file::open(path, Syntax::Json, bytes).ok());
        let Some((document, node)) = opened else {
            let Finding { message, help, remedy, .. } = finding(None, None);
            return Problem { help, remedy, ..whole_file(code, severity, path, message) };
        };
        let (spot, value) = place.find(&Cursor::root(&node)).unzip();
        let found = document.problems(vec![finding(spot, value)]);
        found.into_iter().next().unwrap_or_else(|| whole_file(code, severity, path, String::new()))
    }
}

impl Field {
    fn find(&self, root: &Cursor<'_>) -> Option<(Spot, String)> {
        let found = |at: Cursor<'_>, part| Some((at.spot(part), at.node.shown()));
        match self {
            Field::File(naming) => naming.find(root),
            Field::Name => found(root.get("name")?, Part::Value),
            Field::Needed(name) => found(root.get("dependencies")?.get(name)?, Part::Key),
            Field::Range(name) => found(root.get("dependencies")?.get(name)?, Part::Value),
            Field::Setting(name) => {
                let list = root.get("settings")?;
                let is_named = |item: &Cursor<'_>| {
                    matches!(item.get("name")?.node, Node::Text(text) if text == name).then_some(())
                };
                let setting = list.items().find(|item| is_named(item).is_some())?;
                found(setting.get("name")?, Part::Value)
            }
        }
    }
}
