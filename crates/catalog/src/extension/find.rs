//! Finds extensions: the folders with a manifest in the configured directories.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::num::NonZero;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ollm_protocol::{Code, Layer, Rules, Source};
use ollm_store::read_bounded;
use rustix::fs::FileType;
use serde_json::Value;

use super::fault::{Fault, Field};
use super::install_change::InstallChange;
use super::read::{read, read_copy};
use super::resolve::is_vouched;
use super::{CopyOf, Extension, ExtensionState, Extensions, ReadExtensions, Surroundings};
use crate::budget::Budget;
use crate::config::Config;
use crate::file::whole_file;
use crate::load::{Stamp, StampSet, entries, identity, unreadable_folder};
use crate::place::Places;
use crate::problem::{Problem, Severity};

/// The file that makes a folder an extension.
pub(super) const MANIFEST: &str = "manifest.json";
/// The file in an extension's folder with the source that we installed it from. It is in the folder that it describes,
/// so that both appear and disappear in one step.
pub const INSTALL_RECORD: &str = ".ollm-install.json";
/// The largest record, in bytes; a larger one is ignored.
const LARGEST_RECORD: u64 = 256 << 10;
/// The most folders of one directory.
const MOST_FOLDERS: usize = 2000;
/// Up to this many manifests, reading them is faster than starting a thread.
const FEW: usize = 16;
/// The most threads; more would not be faster.
const MOST_THREADS: usize = 8;
/// How often extensions are read again because another process changed what is installed.
const MOST_CHANGES: usize = 8;

/// Whether the manifest in a folder was converted from another agent's package at its installation.
pub(super) fn was_converted(root: &Path) -> bool {
    let record = read_bounded(&root.join(INSTALL_RECORD), LARGEST_RECORD).ok().flatten().unwrap_or_default();
    let record: Value = serde_json::from_slice(&record).unwrap_or_default();
    record.get("form").is_some_and(Value::is_string)
}

/// A folder that may be an extension.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) root: PathBuf,
    pub(super) layer: Layer,
    /// The project it came with, if that is a project around ours.
    pub(super) enclosing: Option<PathBuf>,
    /// Why it is unreadable.
    pub(super) trouble: Option<String>,
}

impl Candidate {
    pub(super) fn new(root: PathBuf, layer: Layer) -> Candidate {
        Candidate { root, layer, enclosing: None, trouble: None }
    }

    /// Its origin: we only install into the user's folders.
    pub(super) fn source(&self, looked: &mut StampSet) -> Source {
        if self.layer != Layer::User {
            return Source::Extension;
        }
        let record = self.root.join(INSTALL_RECORD);
        let seen = record.symlink_metadata();
        looked.saw(&record, seen.as_ref());
        if seen.is_ok_and(|record| record.is_file()) { Source::Downloaded } else { Source::Extension }
    }
}

/// What decides how a manifest is read, apart from its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    user: Rules,
    workspace: Rules,
}

impl Terms {
    pub(crate) fn new(user: Rules, workspace_timeout: Option<Duration>) -> Terms {
        let workspace = Rules { timeout: workspace_timeout.or(user.timeout), ..user.clone() };
        Terms { user, workspace }
    }

    pub(crate) fn rules(&self, layer: Layer) -> &Rules {
        match layer {
            Layer::User => &self.user,
            Layer::Workspace => &self.workspace,
        }
    }

    /// Replaces a broken extension by its approved copy.
    pub(super) fn restore(&self, broken: &mut Extension, approved: &CopyOf<'_>) {
        let Some(copy) = approved(&broken.root) else { return };
        let enclosing = broken.enclosing.clone();
        let candidate = Candidate { enclosing, ..Candidate::new(broken.root.clone(), broken.layer) };
        let good = read_copy(&copy, &candidate, self.rules(broken.layer));
        if let Some(good) = good {
            let held = broken.problems.iter().find(|problem| problem.severity <= Severity::Error).cloned();
            *broken = Extension { held, ..good };
        }
    }
}

/// The places to search for extensions.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) places: &'a Places,
    pub(crate) config: &'a Config,
    pub(crate) now: SystemTime,
}

/// Reads every extension's manifest, the user's first. An unchanged manifest is not parsed again.
pub(super) fn read_all(search: &Search<'_>, previous: &Extensions, mut budget: Option<&mut Budget>) -> ReadExtensions {
    let Some(directories) = search.config.extension_folders(search.places) else { return ReadExtensions::default() };
    let users = directories.iter().filter(|(_, layer)| *layer == Layer::User).map(|(directory, _)| directory);
    let changes = || users.clone().map(|directory| InstallChange::progress(directory)).collect::<Vec<_>>();
    let mut before = changes();
    for _ in 0..MOST_CHANGES {
        let found = read_once(search, &directories, previous, budget.as_deref_mut());
        let after = changes();
        if after == before {
            return found;
        }
        before = after;
    }
    read_once(search, &directories, previous, budget)
}

/// Reads all extensions between two changes of what is installed.
fn read_once(
    search: &Search<'_>,
    directories: &[(PathBuf, Layer)],
    previous: &Extensions,
    budget: Option<&mut Budget>,
) -> ReadExtensions {
    let mut found = ReadExtensions::default();
    let looking = FolderSearch { places: search.places, budget, found: &mut found, seen: HashSet::new() };
    let candidates = looking.candidates(directories);
    if candidates.is_empty() {
        return found;
    }
    let hooks = search.config.hooks(search.places);
    let terms = Terms::new(hooks.rules(), hooks.workspace_timeout);
    // An extension's name does not depend on the terms.
    let same_terms = previous.terms.as_ref() == Some(&terms);
    let known = previous.iter().filter(|one| same_terms || one.is_sketch());
    let known = known.map(|extension| (extension.root.as_os_str(), extension)).collect();
    let read = ExtensionReader { terms: &terms, known, now: search.now }.read_all(&candidates);
    for (candidate, extension) in candidates.iter().zip(read) {
        match extension {
            Some(mut extension) => {
                found.looked.extend(extension.stamps.take());
                found.all.push(extension);
            }
            None => found.looked.extend(Some(vec![(candidate.root.join(MANIFEST), Stamp::Absent)])),
        }
    }
    found.terms = Some(terms);
    found
}

/// The data for reading extensions.
struct ExtensionReader<'a> {
    terms: &'a Terms,
    /// The extensions that were read under the same terms.
    known: HashMap<&'a OsStr, &'a Extension>,
    now: SystemTime,
}

impl ExtensionReader<'_> {
    /// Reads all candidates and keeps their order; many are read in parallel.
    fn read_all(&self, candidates: &[Candidate]) -> Vec<Option<Extension>> {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
        if candidates.len() <= FEW || threads == 1 {
            return self.part(candidates);
        }
        let share = candidates.len().div_ceil(threads);
        std::thread::scope(|scope| {
            let work = |part| move || self.part(part);
            let running: Vec<_> = candidates.chunks(share).map(|part| scope.spawn(work(part))).collect();
            running.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        })
    }

    fn part(&self, candidates: &[Candidate]) -> Vec<Option<Extension>> {
        candidates.iter().map(|candidate| self.read(candidate)).collect()
    }

    fn read(&self, candidate: &Candidate) -> Option<Extension> {
        let rules = self.terms.rules(candidate.layer);
        let known = self.known.get(candidate.root.as_os_str()).copied();
        let is_same = |known: &Extension| known.layer == candidate.layer && known.enclosing == candidate.enclosing;
        let known = known.filter(|known| is_same(known) || known.is_sketch());
        read(candidate, rules, known, self.now)
    }
}

/// The search for folders.
struct FolderSearch<'a> {
    places: &'a Places,
    budget: Option<&'a mut Budget>,
    found: &'a mut ReadExtensions,
    /// The folders found so far, by identity.
    seen: HashSet<(u64, u64)>,
}

impl FolderSearch<'_> {
    /// The folders of all directories, each once, the user's before the project's.
    fn candidates(mut self, directories: &[(PathBuf, Layer)]) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        let places = self.places;
        for (directory, layer) in directories {
            let layer = self.own(directory, *layer);
            let enclosing = places.enclosing_of(directory).filter(|_| layer == Layer::Workspace);
            self.found.looked.state(directory);
            match self.folders(directory, layer) {
                Ok(folders) => {
                    // So many would exceed the budget of an event anyway, which is reported.
                    if folders.len() >= MOST_FOLDERS && (self.budget.is_none() || layer == Layer::User) {
                        let message = format!("only its first {MOST_FOLDERS} extensions are loaded");
                        self.found.problems.push(whole_file(Code::TooMuch, Severity::Error, directory, message));
                    }
                    let folders = folders.into_iter().filter(|one| self.is_new(&one.root) && self.is_affordable(one));
                    candidates.extend(folders.map(|one| Candidate { enclosing: enclosing.map(Path::to_owned), ..one }));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.found.problems.extend(misses(directory, places));
                }
                Err(error) => self.found.problems.push(unreadable_folder(directory, &error, ("extensions", layer))),
            }
        }
        candidates.sort_by_key(|candidate| candidate.layer);
        candidates
    }

    /// Whether the budget allows reading a project's manifest.
    fn is_affordable(&mut self, candidate: &Candidate) -> bool {
        let Some(budget) = self.budget.as_mut().filter(|_| candidate.layer == Layer::Workspace) else { return true };
        let manifest = candidate.root.join(MANIFEST);
        let size = manifest.symlink_metadata().map_or(0, |meta| meta.len());
        budget.allows(&manifest, size)
    }

    /// Whether a folder was not found before, by any path.
    fn is_new(&mut self, root: &Path) -> bool {
        root.metadata().map_or(true, |meta| self.seen.insert(identity(&meta)))
    }

    /// The folders of a directory, by name. Hidden folders belong to tools.
    fn folders(&mut self, directory: &Path, layer: Layer) -> io::Result<Vec<Candidate>> {
        let (entries, state) = entries(directory)?;
        self.found.looked.read(directory, Some(state));
        let waiting = if layer == Layer::User { self.waiting(directory) } else { Vec::new() };
        let mut folders = Vec::new();
        for (name, kind) in entries {
            let path = directory.join(name);
            if waiting.contains(&path) {
                continue;
            }
            let kind = match kind {
                FileType::Unknown => FileType::from_raw_mode(path.symlink_metadata()?.mode()),
                kind => kind,
            };
            match kind {
                FileType::Directory => folders.push(Candidate::new(path, layer)),
                FileType::Symlink => folders.extend(self.linked(path, layer)),
                _ => {}
            }
            if folders.len() == MOST_FOLDERS {
                break;
            }
        }
        Ok(folders)
    }

    /// The folders that were only added for another extension, which is not in place yet.
    fn waiting(&mut self, directory: &Path) -> Vec<PathBuf> {
        let waiting = InstallChange::waiting(directory);
        if !waiting.is_empty() {
            self.found.looked.state(&InstallChange::file(directory));
        }
        waiting
    }

    /// The folder that a link leads to, unless a project links out of itself.
    fn linked(&mut self, path: PathBuf, layer: Layer) -> Option<Candidate> {
        let places = self.places;
        self.found.looked.place(&path);
        let trouble =
            |path: PathBuf, why: &str| Some(Candidate { trouble: Some(why.to_owned()), ..Candidate::new(path, layer) });
        let real = match path.canonicalize() {
            Ok(real) if real.is_dir() => real,
            Ok(_) => return None,
            Err(_) => return trouble(path, "it is a link to nothing"),
        };
        let project = places.enclosing_of(&path).or(places.project.as_deref());
        let inside = || project?.canonicalize().ok().map(|project| real.starts_with(project));
        if layer == Layer::Workspace && inside() != Some(true) {
            return trouble(path, "it is a link that leads out of the project");
        }
        Some(Candidate::new(real, layer))
    }

    /// The layer of a directory in the project. The user's own directory stays the user's in every working folder.
    fn own(&self, directory: &Path, layer: Layer) -> Layer {
        if layer == Layer::User {
            return layer;
        }
        let real = directory.canonicalize().ok();
        let in_home = |real: PathBuf| self.places.home.canonicalize().is_ok_and(|home| real.starts_with(home));
        if real.is_some_and(in_home) { Layer::User } else { layer }
    }
}

/// The problem of a missing directory, if a person named it. The default directories need not exist.
fn misses(directory: &Path, places: &Places) -> Option<Problem> {
    let usual = Config::default().extensions(places).directories;
    if usual.iter().any(|usual| usual == directory) {
        return None;
    }
    let message = "it does not exist, though extensions.directories names it".to_owned();
    let help = Some("make it, or correct extensions.directories".to_owned());
    Some(Problem { help, ..whole_file(Code::UnreadableFile, Severity::Warning, directory, message) })
}

/// Of two extensions with the same name, the first counts: a project cannot replace one of the user's. In the same
/// place, an approved one comes before an unapproved one. So a new folder cannot take over a name.
pub(super) fn refuse_doubles(all: &mut [Extension], surroundings: &Surroundings<'_>) {
    let mut owners: HashMap<&str, &Extension> = HashMap::new();
    for extension in all.iter().filter(|extension| extension.state == ExtensionState::On) {
        let owner = owners.entry(&extension.name).or_insert(extension);
        if owner.root != extension.root
            && owner.layer == extension.layer
            && !is_vouched(owner, surroundings)
            && is_vouched(extension, surroundings)
        {
            *owner = extension;
        }
    }
    let owners: HashMap<String, PathBuf> =
        owners.into_iter().map(|(name, owner)| (name.to_owned(), owner.root.clone())).collect();
    for extension in all.iter_mut().filter(|extension| extension.state == ExtensionState::On) {
        if let Some(root) = owners.get(&extension.name).filter(|root| **root != extension.root) {
            let message = format!("the name `{}` is taken by {}", extension.name, root.display());
            extension.fail(Fault {
                code: Code::Duplicate,
                at: Field::Name,
                message,
                help: Some("rename one of the two".to_owned()),
                remedy: None,
            });
        }
    }
}
