//! What the extensions are called and which events they have hooks for, remembered from one process to the next: who wants
//! one of them, or those for one event, need not read the manifests of all the others.
//!
//! It decides only what need not be read. What is wanted is read as ever, and so is everything with the same name and
//! everything it needs; of the rest it is only known that it is there. A manifest is known again by what the file system
//! says of it, and only one that had been left alone for a while when it was read. What cannot be relied on is as good as
//! nothing, two that write at once lose at most what one of them learnt, and where nothing can be written nothing is told.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use ollm_protocol::Layer;
use ollm_store::raw::{open_own, write_unsynced};
use ollm_store::{Loaded, StatKey, versioned};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::find::{Candidate, MANIFEST};
use super::read::unread;
use super::{Extension, Extensions, Manifest, State, Surroundings, load};
use crate::load::Moment;
use crate::problem::Problem;

const VERSION: u32 = 2;
const LARGEST_FILE: u64 = 4 << 20;
/// Of more extensions those that are not here are forgotten.
const MOST_ENTRIES: usize = 8000;
/// So many manifests are read as fast as the index.
const FEW: usize = 8;
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
    /// The events and matchers of its hooks, where nothing of it counts but these: it brings no servers, settings or needs, and
    /// there is nothing to tell of it.
    hooks: Option<Vec<(String, String)>>,
}

impl Entry {
    /// Whether it makes no difference at this moment that it is there.
    fn sits_out(&self, moment: &Moment) -> bool {
        let may_fit = |(event, matcher): &(String, String)| moment.may_fit(event, matcher);
        self.hooks.as_ref().is_some_and(|hooks| !hooks.iter().any(may_fit))
    }
}

/// The events and matchers of an extension that has nothing but hooks.
fn only_hooks(extension: &Extension) -> Option<Vec<(String, String)>> {
    let Manifest { servers, settings, dependencies, .. } = &extension.manifest;
    let is_plain = servers.is_empty() && settings.is_empty() && dependencies.is_empty();
    let is_quiet = extension.problems.is_empty() && extension.held.is_none() && extension.misfit.is_none();
    let hooks = extension.hooks.iter().flat_map(|hook| {
        let matcher = hook.matcher.text();
        hook.events.iter().map(move |event| (event.name().to_owned(), matcher.clone()))
    });
    (is_plain && is_quiet && !matches!(extension.state, State::Failed(_))).then(|| hooks.collect())
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
            let known = || self.entries.get(&one.root).and_then(|entry| entry.hooks.clone());
            let hooks = if one.is_sketch() { known() } else { only_hooks(one) };
            let entry = Entry { name: one.name.clone(), manifest: one.quiet?, hooks };
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
        let sketch = |(root, Entry { name, manifest, .. }): (&PathBuf, &Entry)| {
            let candidate = Candidate::new(root.clone(), Layer::User);
            let blank = unread(&candidate, State::Off("nobody asked for it".to_owned()), Vec::new());
            Extension { name: name.clone(), quiet: Some(*manifest), ..blank }
        };
        let entries = self.entries.iter().filter(|(_, entry)| wanted(entry));
        Extensions { all: entries.map(sketch).collect(), terms: None }
    }
}

/// Finds the extensions that count at one moment as [`extensions`](super::extensions) does. Those that have nothing but hooks
/// for other moments are there by name alone, and not read where the index in this file knows them.
pub fn for_moment(moment: &Moment, file: &Path, surroundings: &Surroundings<'_>) -> (Extensions, Vec<Problem>) {
    let sketches = |folders| match folders {
        0..=FEW => Extensions::default(),
        _ => Index::load(file).sketches(|entry| entry.sits_out(moment)),
    };
    let (found, problems) = load(surroundings, &|folders| Cow::Owned(sketches(folders)));
    let read = || found.iter().filter(|one| !one.is_sketch());
    let needed = |one: &Extension| {
        let names = |other: &Extension| other.manifest.dependencies.iter().any(|needs| needs.name == one.name);
        read().any(|other| other.name == one.name || names(other))
    };
    // Whose name another one has, or whom another one needs, is no bystander.
    if found.iter().any(|one| one.is_sketch() && needed(one)) {
        return super::extensions(surroundings);
    }
    if found.all.len() > FEW {
        Index::load(file).remember(&found);
    }
    (found, problems)
}

/// Finds the extensions with these names as [`extensions`](super::extensions) does, with all that they need. Of others
/// nothing but their names need be right; what the index knows of them is not read.
pub fn named(names: &[String], index: &Index, surroundings: &Surroundings<'_>) -> (Extensions, Vec<Problem>) {
    let mut known = index.sketches(|entry| !names.contains(&entry.name));
    for _ in 0..MOST_ROUNDS {
        let (found, problems) = load(surroundings, &|_| Cow::Borrowed(&known));
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
        let hooks = value.get("hooks").and_then(|hooks| Vec::<(String, String)>::deserialize(hooks).ok());
        Some((PathBuf::from(root), Entry { name: value.get("name")?.as_str()?.to_owned(), manifest, hooks }))
    };
    let all = document.get("extensions").and_then(Value::as_object);
    all.into_iter().flatten().filter_map(entry).collect()
}

fn write(entries: &BTreeMap<PathBuf, Entry>) -> Value {
    let entry = |(root, Entry { name, manifest, hooks }): (&PathBuf, &Entry)| {
        let StatKey { dev, ino, size, mtime_ns, ctime_ns } = manifest;
        let mut entry =
            json!({"name": name, "dev": dev, "ino": ino, "size": size, "mtime": mtime_ns, "ctime": ctime_ns});
        if let (Some(entry), Some(hooks)) = (entry.as_object_mut(), hooks) {
            entry.insert("hooks".to_owned(), json!(hooks));
        }
        Some((root.to_str()?.to_owned(), entry))
    };
    json!({"version": VERSION, "extensions": entries.iter().filter_map(entry).collect::<serde_json::Map<_, _>>()})
}
