//! What something is: everything that decides what happens when it runs, as one digest.

use std::any::Any;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ollm_shell::shell_word;
use ollm_store::{Digest, FileDigests, FileError, StatKey, TreeLimits, Unsafe};

use crate::approvable::{Approvable, Definition};
use crate::approvals::{Approval, Term};
use crate::content_store::{ContentStoreError, StoredFile};
use crate::context::TrustContext;
use crate::coverage::{Coverage, CoverageError, Places, files_covered, is_binary};
use crate::recall::Checked;

/// Larger scripts and inputs are not hashed at every event.
pub(crate) const LARGEST_FILE: u64 = 64 << 20;

/// What an approval is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What the approval is filed under: the script's path, or `file#id` without a script.
    pub source: String,
    /// The digest of the script's bytes, or of the definition without a script.
    pub hash: Digest,
    /// The digest of everything that decides what happens.
    pub digest: Digest,
    /// What runs it, by absolute path, if a program does: it is part of the digest.
    pub program: Option<PathBuf>,
}

impl Identity {
    /// The approval of something with this identity.
    pub(crate) fn approval(&self, id: &str, term: Term, by: String, at: String) -> Approval {
        Approval {
            source: self.source.clone(),
            id: id.to_owned(),
            hash: self.hash,
            digest: self.digest,
            approved_at: at,
            approved_by: by,
            term,
            copy: None,
            program: self.program.as_ref().map(|program| program.display().to_string()),
        }
    }
}

/// Why something cannot be started at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unready {
    /// The program is not installed.
    #[error("`{0}` is not on PATH; install it, or give its absolute path as `command`")]
    NoProgram(String),
    /// A file is not there.
    #[error("{} does not exist; {}", .0.display(), way_back(.0))]
    NoFile(PathBuf),
    /// The program of a server is not there, or is none.
    #[error("{0}")]
    NotProgram(String),
    /// A file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// Somebody else could change what runs.
    #[error(transparent)]
    Unsafe(Unsafe),
    /// No copy of what is approved can be kept.
    #[error(transparent)]
    NoCopy(#[from] ContentStoreError),
    /// Nobody can say which files decide what it does.
    #[error(transparent)]
    Uncoverable(#[from] CoverageError),
}

/// How a file that is not there comes back: what Cargo builds is built.
fn way_back(file: &Path) -> String {
    let package = file.ancestors().nth(3).filter(|package| file.starts_with(package.join("target/release")));
    package.map_or_else(
        || "restore it, or change the hook that names it".to_owned(),
        |package| {
            let manifest = package.join("Cargo.toml");
            format!("build it: `cargo build --release --manifest-path {}`", shell_word(&manifest.display().to_string()))
        },
    )
}

impl Unready {
    /// Whether something is missing, rather than not to be relied on.
    pub fn is_missing(&self) -> bool {
        matches!(self, Unready::NoProgram(_) | Unready::NoFile(_) | Unready::NotProgram(_))
    }
}

/// An identity, and the files it was taken from.
#[derive(Debug)]
pub(crate) struct Identified {
    pub(crate) identity: Identity,
    pub(crate) program: PathBuf,
    /// The files that are copied.
    pub(crate) files: Vec<StoredFile>,
    /// The folder whose whole content was taken, with its digest.
    pub(crate) tree: Option<(PathBuf, Digest)>,
    pub(crate) coverage: Arc<Coverage>,
    /// What it depends on that can be looked at again; none where that would not be all.
    pub(crate) depends_on: Option<DependsOn>,
}

/// What an identity was taken from, beside the definition and what a command covers.
#[derive(Debug, Default)]
pub(crate) struct DependsOn {
    /// The files whose content was hashed.
    pub(crate) files: Vec<PathBuf>,
    /// The name behind `#!/usr/bin/env`.
    pub(crate) interpreter: Option<String>,
}

impl Identified {
    /// The folder all files are in; none when there are no files.
    pub(crate) fn base(&self) -> Option<PathBuf> {
        // Python names a module by its place in the folder it is looked for in.
        let modules = self.coverage.modules.as_deref().filter(|_| !self.files.is_empty());
        let mut folders = self.files.iter().filter_map(|file| file.path.parent()).chain(modules);
        let first = folders.next()?;
        let common = folders.fold(first, |common, folder| {
            common.ancestors().find(|ancestor| folder.starts_with(ancestor)).unwrap_or(common)
        });
        Some(common.to_owned())
    }
}

/// What was learnt about files, for as long as they are the same.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) digests: Arc<FileDigests>,
    /// How scripts begin, by the digest of their content. One that was exchanged while it was read is filed wrongly and
    /// then not recognised as what was approved.
    env_words: Mutex<HashMap<Digest, Option<String>>>,
    /// How things are defined, by the place where they are: to write that down costs more than all else about them. What
    /// somebody refers to, if only weakly, neither changes nor makes room for another one.
    defined: Mutex<HashMap<usize, Noted>>,
    /// What commands cover, by the definition and the folder they run in.
    covered: Mutex<HashMap<(Digest, PathBuf), SeenCoverage>>,
}

/// Whose definition it is, the definition, and its digest.
type Noted = (Weak<dyn Any + Send + Sync>, Arc<KnownDefinition>);

/// A definition with what it is known by.
#[derive(Debug)]
pub(crate) struct KnownDefinition {
    definition: Option<Definition>,
    key: Option<Digest>,
    /// What was found to be approved, by the folder it runs in.
    pub(crate) checked: Mutex<HashMap<PathBuf, Arc<Checked>>>,
}

/// A coverage, with the states of the files and folders it was found in.
type SeenCoverage = (Arc<Coverage>, Arc<SeenStates>);

/// Files and folders, each with the state it had; none for what was not there.
pub(crate) type SeenStates = Vec<(PathBuf, Option<StatKey>)>;

impl KnownDefinition {
    pub(crate) fn of(thing: &(impl Approvable + ?Sized)) -> KnownDefinition {
        let definition = thing.definition();
        // Equal definitions in different places may name different files.
        let key =
            definition.as_ref().map(|known| known.hasher.clone().field("source", thing.source().as_bytes()).finish());
        KnownDefinition { definition, key, checked: Mutex::default() }
    }
}

impl Memory {
    pub(crate) fn new(digests: Arc<FileDigests>) -> Memory {
        Memory { digests, env_words: Mutex::default(), defined: Mutex::default(), covered: Mutex::default() }
    }

    pub(crate) fn defined<T: Approvable + Any + Send + Sync>(&self, thing: &Arc<T>) -> Arc<KnownDefinition> {
        let mut known = self.defined.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Arc::as_ptr(thing).addr();
        if let Some((_, defined)) = known.get(&place) {
            return Arc::clone(defined);
        }
        if known.len().is_power_of_two() {
            // Of things that are gone.
            known.retain(|_, (thing, _)| thing.strong_count() > 0);
        }
        let defined = Arc::new(KnownDefinition::of(&**thing));
        let weak: Weak<dyn Any + Send + Sync> = Arc::<T>::downgrade(thing);
        known.insert(place, (weak, Arc::clone(&defined)));
        defined
    }

    fn env_word(&self, script: &Path, content: Digest) -> Option<String> {
        let mut words = self.env_words.lock().unwrap_or_else(PoisonError::into_inner);
        words.entry(content).or_insert_with(|| env_word(script)).clone()
    }

    /// What a command covers, looked up again only if something was touched since.
    pub(crate) fn coverage(
        &self,
        thing: &(impl Approvable + ?Sized),
        key: Option<Digest>,
        program: &Path,
        context: &TrustContext<'_>,
    ) -> Result<Arc<Coverage>, Unready> {
        let key = key.map(|key| (key, place_of(context)));
        if let Some(key) = &key
            && let Some((coverage, states)) = self.covered.lock().unwrap_or_else(PoisonError::into_inner).get(key)
            && states.iter().all(|(path, state)| state_of(path) == *state)
        {
            return Ok(Arc::clone(coverage));
        }
        let Some(line) = thing.command_line(context) else { return Ok(Arc::default()) };
        let Some(top) = thing.folder(context).and_then(|folder| folder.canonicalize().ok()) else {
            return Ok(Arc::default());
        };
        let mut states = SeenStates::new();
        let mut covered_from = |places: &Places| {
            files_covered(&line, Some(program), places, &mut |path: &Path| {
                if !states.iter().any(|(known, _)| known == path) {
                    states.push((path.to_owned(), state_of(path)));
                }
            })
        };
        let places = |folder| Places::new(top.clone(), &line, folder, context, thing);
        let approved_in = places(None);
        let mut coverage = covered_from(&approved_in)?;
        // What belongs to a folder of its own names files there by their places in the copy.
        coverage.runs_in = coverage.runs_in.filter(|_| thing.tree().is_none());
        // Where nothing ties it to the folder it was approved in, it runs wherever the event happened, and what its names
        // mean there counts.
        if coverage.runs_in.is_none() && context.folder.is_some() {
            let here = places(context.folder);
            if here != approved_in {
                coverage = covered_from(&here)?;
            }
        }
        let coverage = Arc::new(coverage);
        // A change that follows at once could have the same time.
        let quiet =
            |(_, state): &(PathBuf, Option<StatKey>)| state.is_none_or(|state| self.digests.is_quiet(state.ctime_ns));
        if let Some(key) = key.filter(|_| states.iter().all(quiet)) {
            let mut covered = self.covered.lock().unwrap_or_else(PoisonError::into_inner);
            covered.insert(key, (Arc::clone(&coverage), Arc::new(states)));
        }
        Ok(coverage)
    }

    /// The states in which the coverage of a command is remembered.
    pub(crate) fn seen(&self, known: &KnownDefinition, context: &TrustContext<'_>) -> Option<Arc<SeenStates>> {
        let covered = self.covered.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&covered.get(&(known.key?, place_of(context)))?.1))
    }
}

/// The folder something runs in, as far as it is known.
pub(crate) fn place_of(context: &TrustContext<'_>) -> PathBuf {
    context.folder.or(context.project).unwrap_or(Path::new("")).to_owned()
}

pub(crate) fn state_of(path: &Path) -> Option<StatKey> {
    fs::metadata(path).ok().map(|meta| StatKey::of(&meta))
}

pub(crate) fn identify<T: Approvable + ?Sized>(
    thing: &T,
    known: &KnownDefinition,
    held: Option<Digest>,
    memory: &Memory,
    context: &TrustContext<'_>,
) -> Result<Identified, Unready> {
    let program = thing.program(context)?;
    let digests = &*memory.digests;
    let whole = |root: &Path| held.map_or_else(|| of_tree(root, digests), |digest| Ok((root.to_owned(), digest)));
    let tree = thing.tree().map(whole).transpose()?;
    let source = thing.source();
    let Some(definition) = &known.definition else {
        let digest = tree.as_ref().map(|(_, digest)| *digest).ok_or_else(|| Unready::NoFile(PathBuf::from(&source)))?;
        let identity = Identity { source, hash: digest, digest, program: None };
        let (files, coverage) = (Vec::new(), Arc::default());
        return Ok(Identified { identity, program, files, tree, coverage, depends_on: None });
    };
    let mut hasher = definition.hasher.clone();
    if definition.digest.is_some() || !program.as_os_str().is_empty() {
        hasher = hasher.field("program", program.as_os_str().as_encoded_bytes());
    }
    if let Some((_, digest)) = &tree {
        hasher = hasher.tree_digest("tree", digest);
    }
    let mut files = Vec::new();
    let mut contents_of = Vec::new();
    let mut digest_of = |path: &Path| -> Result<Digest, Unready> {
        let digest = digests.digest(path, LARGEST_FILE).map_err(|error| unreadable(path, error))?;
        contents_of.push(path.to_owned());
        Ok(digest)
    };
    let script = thing.script().map(&mut digest_of).transpose()?;
    files.extend(thing.script().zip(script).map(|(path, digest)| StoredFile { path: path.to_owned(), digest }));
    if let Some(digest) = &script {
        hasher = hasher.digest("script", digest);
    }
    let project = thing.project(context);
    let is_script = thing.script() == Some(&*program);
    let coverage = memory.coverage(thing, known.key, &program, context)?;
    let mut program_digest = script.filter(|_| is_script);
    let mut leads_out = false;
    if let Some(project) = project.filter(|project| !is_script && program.starts_with(project)) {
        let outside = led_out(&program, project);
        if let Some(real) = &outside {
            leads_out = true;
            hasher = hasher.field("leads to", real.as_os_str().as_encoded_bytes());
        }
        // What the system provides is known by its place; all else that a link of the project leads to can change.
        if outside.as_ref().is_none_or(|real| !is_binary(real)) {
            let digest = digest_of(&program)?;
            hasher = hasher.digest("program content", &digest);
            program_digest = Some(digest);
            // One that was found on PATH has its place among others it needs, and is not torn away from them.
            if coverage.program_is_named {
                files.push(StoredFile { path: program.clone(), digest });
            }
        } else if outside.is_some_and(|real| !is_of_the_system(&real)) {
            hasher = hasher.digest("program content", &digest_of(&program)?);
        }
    }
    let mut runs = Some(program.clone()).filter(|program| !program.as_os_str().is_empty());
    let env_word = program_digest.and_then(|digest| memory.env_word(&program, digest));
    if let Some(name) = &env_word {
        let interpreter = on_path(name, context)?;
        hasher = hasher.field("interpreter", interpreter.as_os_str().as_encoded_bytes());
        runs = Some(interpreter);
    }
    for input in thing.inputs() {
        let digest = digest_of(input)?;
        files.push(StoredFile { path: input.clone(), digest });
        hasher = hasher.digest("input", &digest);
    }
    if let Some((root, _)) = &tree
        && let Some(file) = files.iter().find(|file| !file.path.starts_with(root))
    {
        // It would run from where anybody may change it after it was looked at.
        return Err(ContentStoreError::Outside { path: file.path.clone(), base: root.clone() }.into());
    }
    // The whole folder is hashed already.
    for file in coverage.files.iter().filter(|_| tree.is_none()) {
        if files.iter().any(|known| known.path == *file) {
            continue;
        }
        let digest = digest_of(file)?;
        let outside = coverage.leads_out.iter().find(|(link, _)| link == file).map(|(_, real)| real);
        let place = outside.unwrap_or(file);
        hasher = hasher.field("file", place.as_os_str().as_encoded_bytes()).digest("content", &digest);
        if coverage.top.as_ref().is_some_and(|top| file.starts_with(top)) {
            files.push(StoredFile { path: file.clone(), digest });
        }
    }
    let digest = hasher.finish();
    let hash = script.or(definition.digest).unwrap_or(digest);
    let identity = Identity { source, hash, digest, program: runs };
    let depends_on = DependsOn { files: contents_of, interpreter: env_word };
    let depends_on = Some(depends_on).filter(|_| tree.is_none() && !leads_out);
    Ok(Identified { identity, program, files, tree, coverage, depends_on })
}

/// Where a program leads that stands in the project as a link out of it.
fn led_out(program: &Path, project: &Path) -> Option<PathBuf> {
    let project = project.canonicalize().ok()?;
    program.canonicalize().ok().filter(|real| !real.starts_with(project))
}

/// Whether only the administrator of the machine can change a file.
fn is_of_the_system(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.uid() == 0 && meta.mode() & 0o022 == 0)
}

/// A folder with everything in it.
pub(crate) fn of_tree(root: &Path, digests: &FileDigests) -> Result<(PathBuf, Digest), Unready> {
    Ok((root.to_owned(), digests.tree(&existing(root)?, TreeLimits::default())?))
}

/// Whether the files of something that needs no approval are there.
pub(crate) fn present(thing: &(impl Approvable + ?Sized)) -> Result<(), Unready> {
    thing.script().map_or(Ok(()), |script| existing(script).map(drop))
}

pub(crate) fn existing(path: &Path) -> Result<PathBuf, Unready> {
    if path.exists() { Ok(path.to_owned()) } else { Err(Unready::NoFile(path.to_owned())) }
}

fn unreadable(path: &Path, error: FileError) -> Unready {
    match &error {
        FileError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => Unready::NoFile(path.to_owned()),
        _ => error.into(),
    }
}

/// The program of this name on the search path.
pub(crate) fn on_path(program: &str, context: &TrustContext<'_>) -> Result<PathBuf, Unready> {
    context.find_program(program).ok_or_else(|| Unready::NoProgram(program.to_owned()))
}

/// The name in `#!/usr/bin/env NAME`; any other interpreter is named by the script's own bytes.
fn env_word(script: &Path) -> Option<String> {
    let text = start_of(script);
    let mut words = text.lines().next()?.strip_prefix("#!")?.split_whitespace();
    words.next().filter(|word| word.ends_with("/env"))?;
    words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned)
}

/// How a file begins, as far as the kernel looks for the name of an interpreter.
pub(crate) fn start_of(file: &Path) -> String {
    let mut start = [0; 256];
    let count = File::open(file).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    String::from_utf8_lossy(start.get(..count).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_builds_is_built_and_anything_else_restored() {
        let said = |path: &str| Unready::NoFile(path.into()).to_string();
        assert!(
            said("/h/my guard/target/release/guard").ends_with(
                "does not exist; build it: `cargo build --release --manifest-path '/h/my guard/Cargo.toml'`"
            )
        );
        for path in ["/h/guard.sh", "/target/release", "/h/guard/release/guard"] {
            assert!(said(path).ends_with("restore it, or change the hook that names it"), "{path}");
        }
    }
}
