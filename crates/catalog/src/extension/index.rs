//! Remembers the names of extensions between processes, so that a process that needs one extension need not read all
//! manifests.
//!
//! The index only decides which manifests need not be read. The wanted extension, all with the same name, and all its
//! dependencies are read as usual. For the others, only their existence is known. A manifest is recognised by its state
//! in the file system, if it had not changed for a while when it was read. An unreliable index counts as empty. If two
//! processes write at once, the entries of one are lost. If the index cannot be written, no problem is reported.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use ollm_protocol::Layer;
use ollm_store::raw::{open_own, write_unsynced};
use ollm_store::{Loaded, StatKey, versioned};
use serde_json::{Value, json};

use super::find::{Candidate, MANIFEST};
use super::read::unread;
use super::{Extension, ExtensionState, Extensions, Surroundings, load};
use crate::load::StampSet;
use crate::problem::Problem;

const VERSION: u32 = 3;
const LARGEST_FILE: u64 = 4 << 20;
/// The most entries. With more extensions, entries for missing folders are dropped.
const MOST_ENTRIES: usize = 8000;
/// The longest chain of dependencies that is followed step by step.
const MOST_ROUNDS: usize = 8;

/// The names of extensions, in a file.
#[derive(Clone, Debug)]
pub struct Index {
    path: PathBuf,
    /// By the folder of the extension.
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    /// The state of the manifest that the name comes from.
    manifest: StatKey,
}

impl Index {
    /// Loads the index from a file; empty if the file is unreliable.
    pub fn load(path: &Path) -> Index {
        let entries = match versioned::load(path, VERSION, LARGEST_FILE) {
            // A file that others could write might hide an extension.
            Loaded::Current(document) if open_own(path).is_some() => read(&document),
            Loaded::Current(_) | Loaded::Missing | Loaded::Refused(_) => BTreeMap::new(),
        };
        Index { path: path.to_owned(), entries }
    }

    /// Adds the names of these extensions, if any are new.
    pub fn remember(mut self, extensions: &Extensions) {
        let named = |one: &Extension| {
            let entry = Entry { name: one.name.clone(), manifest: one.quiet? };
            // A path that is not UTF-8 cannot be stored, so its manifest is read each time.
            one.root.to_str().map(|_| (one.root.clone(), entry))
        };
        let here: BTreeMap<PathBuf, Entry> = extensions.iter().filter_map(named).collect();
        if here.iter().all(|(root, entry)| self.entries.get(root) == Some(entry)) {
            return;
        }
        let room = MOST_ENTRIES.saturating_sub(here.len());
        self.entries.retain(|root, _| !here.contains_key(root) && root.join(MANIFEST).exists());
        if self.entries.len() > room {
            self.entries.clear();
        }
        self.entries.extend(here);
        self.save();
    }

    /// Removes the entry of this folder.
    pub fn forget(mut self, root: &Path) {
        if self.entries.remove(root).is_none() {
            return;
        }
        if self.entries.is_empty() {
            let _ = std::fs::remove_file(&self.path);
        } else {
            self.save();
        }
    }

    fn save(&self) {
        // If the index cannot be written, the next process reads the manifests again.
        let _ = write_unsynced(&self.path, format!("{}\n", write(&self.entries)).as_bytes());
    }

    /// Placeholders for the selected entries, which only have a name.
    fn sketches(&self, wanted: impl Fn(&Entry) -> bool) -> Extensions {
        let sketch = |(root, Entry { name, manifest }): (&PathBuf, &Entry)| {
            let candidate = Candidate::new(root.clone(), Layer::User);
            let off = ExtensionState::Off("not asked for".to_owned());
            let blank = unread(&candidate, candidate.source(&mut StampSet::default()), off, Vec::new());
            Extension { name: name.clone(), quiet: Some(*manifest), ..blank }
        };
        let entries = self.entries.iter().filter(|(_, entry)| wanted(entry));
        Extensions { all: entries.map(sketch).collect(), terms: None }
    }
}

/// Finds the extensions with these names like [`extensions`](super::extensions), including their dependencies. Of the
/// others, only the names are reliable: those in the index are not read.
pub fn named(names: &[String], index: &Index, surroundings: &Surroundings<'_>) -> (Extensions, Vec<Problem>) {
    let mut known = index.sketches(|entry| !names.contains(&entry.name));
    for _ in 0..MOST_ROUNDS {
        let (found, problems) = load(surroundings, &known);
        if names.iter().any(|name| found.get(name).is_none()) {
            break;
        }
        let wanted = wanted(names, &found);
        if !found.iter().any(|one| one.is_sketch() && wanted.contains(one.name.as_str())) {
            return (found, problems);
        }
        let read = |one: &&Extension| !(one.is_sketch() && wanted.contains(one.name.as_str()));
        let all = found.iter().filter(read).cloned().collect();
        known = Extensions { all, terms: found.terms.clone() };
    }
    // If an extension is missing or hard to find, the search does not use the index.
    super::extensions(surroundings)
}

/// These names, and the names of all their dependencies.
fn wanted<'a>(names: &'a [String], found: &'a Extensions) -> HashSet<&'a str> {
    let mut wanted: HashSet<&str> = HashSet::new();
    let mut open: Vec<&str> = names.iter().map(String::as_str).collect();
    while let Some(name) = open.pop() {
        if wanted.insert(name) {
            let these = found.iter().filter(|one| one.name == name);
            open.extend(these.flat_map(|one| &one.manifest.dependencies).map(|needed| needed.name.as_str()));
        }
    }
    wanted
}

fn read(document: &Value) -> BTreeMap<PathBuf, Entry> {
    let entry = |(root, value): (&String, &Value)| {
        let number = |key: &str| value.get(key)?.as_u64();
        let time = |key: &str| value.get(key)?.as_i64();
        let manifest = StatKey {
            dev: number("dev")?,
            ino: number("ino")?,
            size: number("size")?,
            mtime_ns: time("mtime")?,
            ctime_ns: time("ctime")?,
        };
        Some((PathBuf::from(root), Entry { name: value.get("name")?.as_str()?.to_owned(), manifest }))
    };
    let all = document.get("extensions").and_then(Value::as_object);
    all.into_iter().flatten().filter_map(entry).collect()
}

fn write(entries: &BTreeMap<PathBuf, Entry>) -> Value {
    let entry = |(root, Entry { name, manifest }): (&PathBuf, &Entry)| {
        let StatKey { dev, ino, size, mtime_ns, ctime_ns } = manifest;
        let entry = json!({"name": name, "dev": dev, "ino": ino, "size": size, "mtime": mtime_ns, "ctime": ctime_ns});
        Some((root.to_str()?.to_owned(), entry))
    };
    json!({"version": VERSION, "extensions": entries.iter().filter_map(entry).collect::<serde_json::Map<_, _>>()})
}
