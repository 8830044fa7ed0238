//! A running or interrupted installation: which folders are new.
//!
//! Several folders cannot appear in one step, but one can. So the dependencies of an installed extension only count
//! once its own folder is in place. A process that loads extensions sees either the state before or the state after.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use ollm_store::read_bounded;
use serde_json::{Value, json};

use crate::load::identity;

const LARGEST_FILE: u64 = 1 << 20;

/// An installation that is complete once its last folder is in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallChange {
    /// The folder that comes last.
    pub last: NewFolder,
    /// Its name below [`InstallChange::STAGED`] before it is in place. After an exchange, the earlier version has this
    /// name.
    pub aside: String,
    /// The folders that are added only for it.
    pub needed: Vec<NewFolder>,
}

/// A folder, identified even when it is moved, and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFolder {
    /// The name of the extension.
    pub name: String,
    /// Device and inode.
    identity: (u64, u64),
}

impl InstallChange {
    /// The hidden folder among the extensions in which new ones are written.
    pub const STAGED: &str = ".staged";

    /// The file with the running installation of a directory.
    pub fn file(directory: &Path) -> PathBuf {
        directory.join(InstallChange::STAGED).join("change.json")
    }

    /// The running installation in a directory.
    pub fn read(directory: &Path) -> Option<InstallChange> {
        let bytes = read_bounded(&InstallChange::file(directory), LARGEST_FILE).ok()??;
        let change: Value = serde_json::from_slice(&bytes).ok()?;
        Some(InstallChange {
            last: NewFolder::read(change.get("last")?)?,
            aside: folder_name(change.get("aside")?)?,
            needed: change.get("needed")?.as_array()?.iter().filter_map(NewFolder::read).collect(),
        })
    }

    /// The content of that file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let needed: Vec<Value> = self.needed.iter().map(NewFolder::to_json).collect();
        json!({"last": self.last.to_json(), "aside": self.aside, "needed": needed}).to_string().into_bytes()
    }

    /// The folders of a directory that exist but do not count yet.
    pub fn waiting(directory: &Path) -> Vec<PathBuf> {
        let Some(change) = InstallChange::read(directory) else { return Vec::new() };
        if change.last.is_in(directory) {
            return Vec::new();
        }
        let there = change.needed.iter().filter(|one| one.is_in(directory));
        there.map(|one| directory.join(&one.name)).collect()
    }

    /// The running installation, and whether its last folder is in place.
    pub(super) fn progress(directory: &Path) -> Option<(InstallChange, bool)> {
        let change = InstallChange::read(directory)?;
        let is_done = change.last.is_in(directory);
        Some((change, is_done))
    }
}

impl NewFolder {
    /// A folder with this metadata.
    pub fn new(name: &str, meta: &Metadata) -> NewFolder {
        NewFolder { name: name.to_owned(), identity: identity(meta) }
    }

    /// Whether it is at its place in a directory of extensions.
    pub fn is_in(&self, directory: &Path) -> bool {
        directory.join(&self.name).metadata().is_ok_and(|meta| identity(&meta) == self.identity)
    }

    fn read(value: &Value) -> Option<NewFolder> {
        let number = |key: &str| value.get(key)?.as_u64();
        Some(NewFolder { name: folder_name(value.get("name")?)?, identity: (number("dev")?, number("ino")?) })
    }

    fn to_json(&self) -> Value {
        json!({"name": self.name, "dev": self.identity.0, "ino": self.identity.1})
    }
}

fn folder_name(value: &Value) -> Option<String> {
    value.as_str().filter(|name| !name.contains('/')).map(str::to_owned)
}
