//! What keeps an extension off although its manifest is fine, and which part of the manifest that hangs on.

use std::path::{Path, PathBuf};

use ollm_protocol::{Code, Remedy};

use super::read::{LARGEST_FILE, fingerprint};
use crate::file::{self, Finding, Syntax, whole_file};
use crate::node::{Cursor, Node, Part, Spot};
use crate::path::cleaned;
use crate::problem::{Problem, Severity};

/// Why an extension cannot be on here, before its place is known.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) code: Code,
    pub(super) at: Field,
    /// What happened.
    pub(super) message: String,
    /// The way out.
    pub(super) help: Option<String>,
    /// The way out for which a program may have a command.
    pub(super) remedy: Option<Box<Remedy>>,
}

/// A part of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// The name of the extension.
    Name,
    /// The name of an extension that it needs.
    Needed(String),
    /// Which versions of that will do.
    Range(String),
    /// The declaration of a setting.
    Setting(String),
    /// Where a hook or a server names a file.
    File(Box<Naming>),
}

/// Where a file is named.
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
    /// The place, of several with the same file that of the owner.
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
    /// The fault with its place, which is looked up now: hardly any extension has one. A manifest that is not the one that
    /// was understood has no such place, as far as is known which one was.
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
