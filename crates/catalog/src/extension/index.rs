//! What the extensions are called, remembered from one process to the next: who wants one of them need not read the manifests
//! of all the others.
//!
//! It decides only what need not be read. What is wanted is read as ever, and so is everything with the same name and
//! everything it needs; of the rest it is only known that it is there. A manifest is known again by what the file system
//! says of it, and only one that had been left alone for a while when it was read. What cannot be relied on is as good as
//! nothing, two that write at once lose at most what one of them learnt, and where nothing can be written nothing is told.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use ollm_protocol::Layer;
use ollm_store::raw::{open_own, write_unsynced};
use ollm_store::{Loaded, StatKey, versioned};
use serde_json::{Value, json};

use super::find::{Candidate, MANIFEST};
use super::read::unread;
use super::{Extension, Extensions, State, Surroundings, load};
use crate::load::Looked;
use crate::problem::Problem;

const VERSION: u32 = 3;
const LARGEST_FILE: u64 = 4 << 20;
/// Of more extensions those that are not here are forgotten.
const MOST_ENTRIES: usize = 8000;
/// Longer chains of extensions that need one another are not followed link by link.
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
    /// The manifest the name was read from.
    manifest: StatKey,
}

impl Index {
    /// What a file remembers; nothing if it cannot be relied on.
    pub fn load(path: &Path) -> Index {
        let entries = match versioned::load(path, VERSION, LARGEST_FILE) {
            // What somebody else may write could make us overlook an extension.
            Loaded::Current(document) if open_own(path).is_some() => read(&document),
            Loaded::Current(_) | Loaded::Missing | Loaded::Refused(_) => BTreeMap::new(),
        };
        Index { path: path.to_owned(), entries }
    }

    /// Remembers what these are called, if that is news.
    pub fn remember(mut self, extensions: &Extensions) {
        let named = |one: &Extension| {
            let entry = Entry { name: one.name.clone(), manifest: one.quiet? };
            // What is not text cannot be written down, and is read each time.
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

    /// Forgets what was in this folder.
    pub fn forget(mut self, root: &Path) {
        if self.entries.remove(root).is_some() {
            self.save();
        }
    }

    fn save(&self) {
        // Who cannot remember reads again.
        let _ = write_unsynced(&self.path, format!("{}\n", write(&self.entries)).as_bytes());
    }

    /// What is known of these, with nothing of it but what it is called.
    fn sketches(&self, wanted: impl Fn(&Entry) -> bool) -> Extensions {
        let sketch = |(root, Entry { name, manifest }): (&PathBuf, &Entry)| {
            let candidate = Candidate::new(root.clone(), Layer::User);
            let off = State::Off("nobody asked for it".to_owned());
            let blank = unread(&candidate, candidate.source(&mut Looked::default()), off, Vec::new());
            Extension { name: name.clone(), quiet: Some(*manifest), ..blank }
        };
        let entries = self.entries.iter().filter(|(_, entry)| wanted(entry));
        Extensions { all: entries.map(sketch).collect(), terms: None }
    }
}

/// Finds the extensions with these names as [`extensions`](super::extensions) does, with all that they need. Of others
/// nothing but their names need be right; what the index knows of them is not read.
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
    // Whoever is not there, or hard to find, is looked for without help.
    super::extensions(surroundings)
}

/// These names, and those of everything that they need.
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
