//! Where extensions are: the folders of the configured directories that have a manifest.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ollm_protocol::{Code, Layer, Rules, Source};

use super::fault::{Fault, Field};
use super::read::{read, read_copy};
use super::resolve::is_vouched;
use super::{CopyOf, Extension, Previous, State, Surroundings};
use crate::budget::Budget;
use crate::config::Config;
use crate::file::whole_file;
use crate::load::identity;
use crate::place::Places;
use crate::problem::{Problem, Severity};

/// The file that makes a folder an extension.
pub(super) const MANIFEST: &str = "manifest.json";
/// The file in an extension's folder that says where we installed it from. It lies in the folder that it describes, so that both
/// appear and go in one step.
pub const INSTALL_RECORD: &str = ".ollm-install.json";
/// More folders in one directory are not looked into.
const MOST_FOLDERS: usize = 2000;
/// So many manifests are read faster than a thread is started.
const FEW: usize = 16;
/// More threads do not make it faster.
const MOST_THREADS: usize = 8;

/// A folder that may be an extension.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) root: PathBuf,
    pub(super) layer: Layer,
    /// The project it came with, where that is one around ours.
    pub(super) enclosing: Option<PathBuf>,
    /// Why it cannot be looked into.
    pub(super) trouble: Option<String>,
}

impl Candidate {
    pub(super) fn new(root: PathBuf, layer: Layer) -> Candidate {
        Candidate { root, layer, enclosing: None, trouble: None }
    }

    /// Where it comes from: we install into the user's folders only.
    pub(super) fn source(&self) -> Source {
        let is_installed = self.layer == Layer::User && self.root.join(INSTALL_RECORD).is_file();
        if is_installed { Source::Downloaded } else { Source::Extension }
    }
}

/// What decides how a manifest is understood, beside its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    user: Rules,
    workspace: Rules,
}

/// Every extension, read; the user's first.
pub(super) fn all(
    surroundings: &Surroundings<'_>,
    previous: &Previous<'_>,
    problems: &mut Vec<Problem>,
) -> (Vec<Extension>, Option<Terms>) {
    let candidates = candidates(surroundings, problems);
    if candidates.is_empty() {
        return (Vec::new(), None);
    }
    let previous = previous(candidates.len());
    let hooks = surroundings.config.hooks(surroundings.places);
    let own = Rules { timeout: hooks.workspace_timeout.or(hooks.timeout), ..hooks.rules() };
    let terms = Terms { user: hooks.rules(), workspace: own };
    // What something is called does not hang on the terms.
    let same_terms = previous.terms.as_ref() == Some(&terms);
    let known = previous.iter().filter(|one| same_terms || one.is_sketch());
    let known = known.map(|extension| (extension.root.as_os_str(), extension)).collect();
    let shelf = Shelf { terms: &terms, known, now: surroundings.now };
    let mut all = shelf.read_all(&candidates);
    if let Some(approved) = surroundings.approved {
        all.iter_mut().filter(|extension| extension.is_broken()).for_each(|broken| shelf.restore(broken, approved));
    }
    (all, Some(terms))
}

/// What is needed to read extensions.
struct Shelf<'a> {
    terms: &'a Terms,
    /// Those that were understood under the same terms.
    known: HashMap<&'a OsStr, &'a Extension>,
    now: SystemTime,
}

impl Shelf<'_> {
    /// Reads all candidates, in parallel where there are many, in their order.
    fn read_all(&self, candidates: &[Candidate]) -> Vec<Extension> {
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

    fn part(&self, candidates: &[Candidate]) -> Vec<Extension> {
        candidates.iter().filter_map(|candidate| self.read(candidate)).collect()
    }

    /// Puts what was approved in the place of what can no longer be understood.
    fn restore(&self, broken: &mut Extension, approved: &CopyOf<'_>) {
        let Some(copy) = approved(&broken.root) else { return };
        let enclosing = broken.enclosing.clone();
        let candidate = Candidate { enclosing, ..Candidate::new(broken.root.clone(), broken.layer) };
        let good = read_copy(&copy, &candidate, self.rules(broken.layer));
        if let Some(good) = good {
            let held = broken.problems.iter().find(|problem| problem.severity <= Severity::Error).cloned();
            *broken = Extension { held, ..good };
        }
    }

    fn rules(&self, layer: Layer) -> &Rules {
        match layer {
            Layer::User => &self.terms.user,
            Layer::Workspace => &self.terms.workspace,
        }
    }

    fn read(&self, candidate: &Candidate) -> Option<Extension> {
        let rules = self.rules(candidate.layer);
        let known = self.known.get(candidate.root.as_os_str()).copied();
        let is_same = |known: &Extension| known.layer == candidate.layer && known.enclosing == candidate.enclosing;
        let known = known.filter(|known| is_same(known) || known.is_sketch());
        read(candidate, rules, known, self.now)
    }
}

/// The folders of all directories, each once, the user's before the project's.
fn candidates(surroundings: &Surroundings<'_>, problems: &mut Vec<Problem>) -> Vec<Candidate> {
    let mut seen = HashSet::new();
    let mut candidates = Vec::new();
    let places = surroundings.places;
    for (directory, layer) in &surroundings.config.extension_folders(places) {
        let layer = own(directory, *layer, places);
        let enclosing = places.enclosing_of(directory).filter(|_| layer == Layer::Workspace);
        let budget = surroundings.budget.filter(|_| layer == Layer::Workspace);
        match folders(directory, layer, places) {
            Ok(found) => {
                // So many are too dear for an event anyway, and that is told.
                if found.len() >= MOST_FOLDERS && budget.is_none() {
                    let message = format!("only its first {MOST_FOLDERS} extensions are loaded");
                    problems.push(whole_file(Code::TooMuch, Severity::Error, directory, message));
                }
                let found =
                    found.into_iter().filter(|one| is_new(&one.root, &mut seen) && is_affordable(&one.root, budget));
                candidates.extend(found.map(|one| Candidate { enclosing: enclosing.map(Path::to_owned), ..one }));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                problems.extend(misses(directory, surroundings));
            }
            Err(error) => {
                let message = format!("cannot look into it: {error}; its extensions are not loaded");
                let help = Some("it must be a folder that its owner can read".to_owned());
                problems
                    .push(Problem { help, ..whole_file(Code::UnreadableFile, Severity::Error, directory, message) });
            }
        }
    }
    candidates.sort_by_key(|candidate| candidate.layer);
    candidates
}

/// What a person should know of a directory that is not there, if they named it: the usual ones need not be there.
fn misses(directory: &Path, surroundings: &Surroundings<'_>) -> Option<Problem> {
    let usual = Config::default().extensions(surroundings.places).directories;
    if usual.iter().any(|usual| usual == directory) {
        return None;
    }
    let message = "it does not exist, though extensions.directories names it".to_owned();
    let help = Some("make it, or correct extensions.directories".to_owned());
    Some(Problem { help, ..whole_file(Code::UnreadableFile, Severity::Warning, directory, message) })
}

/// Whether a project's manifest may still be read.
fn is_affordable(root: &Path, budget: Option<&RefCell<Budget>>) -> bool {
    let manifest = root.join(MANIFEST);
    let size = || manifest.symlink_metadata().map_or(0, |meta| meta.len());
    budget.is_none_or(|budget| budget.borrow_mut().allows(&manifest, size()))
}

/// Whether a folder is met for the first time, whichever way leads to it.
fn is_new(root: &Path, seen: &mut HashSet<(u64, u64)>) -> bool {
    root.metadata().map_or(true, |meta| seen.insert(identity(&meta)))
}

/// The folders of a directory, by name; hidden ones are tools' own.
fn folders(directory: &Path, layer: Layer, places: &Places) -> io::Result<Vec<Candidate>> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut found = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b".")) {
        let kind = entry.file_type()?;
        let path = entry.path();
        if kind.is_dir() {
            found.push(Candidate::new(path, layer));
        } else if kind.is_symlink() {
            found.extend(linked(path, layer, places));
        }
        if found.len() == MOST_FOLDERS {
            break;
        }
    }
    Ok(found)
}

/// A link to a folder: the folder it leads to, unless a project leads out of itself.
fn linked(path: PathBuf, layer: Layer, places: &Places) -> Option<Candidate> {
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

/// Whose a directory is that lies in the project: the user's own does not become a project's by where one stands.
fn own(directory: &Path, layer: Layer, places: &Places) -> Layer {
    let real = || directory.canonicalize().ok();
    let is_home = || places.home.canonicalize().is_ok_and(|home| real().is_some_and(|real| real.starts_with(home)));
    if layer == Layer::Workspace && is_home() { Layer::User } else { layer }
}

/// Of two extensions with one name the first counts: a project cannot replace one of the user's. Beside one another, one
/// that was approved comes before one that was not: a folder that is merely put there takes nobody's name.
pub(super) fn refuse_doubles(all: &mut [Extension], surroundings: &Surroundings<'_>) {
    let mut owners: HashMap<&str, &Extension> = HashMap::new();
    for extension in all.iter().filter(|extension| extension.state == State::On) {
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
    for extension in all.iter_mut().filter(|extension| extension.state == State::On) {
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
