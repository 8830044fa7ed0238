//! Computes the identity of something: one digest over everything that decides what happens when it runs.

use std::any::Any;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ollm_shell::{Shebang, shell_word};
use ollm_store::{Digest, FileDigests, FileError, StatKey, TreeLimits, Unsafe};

use crate::approvable::{Approvable, Definition};
use crate::approvals::{Approval, Term};
use crate::content_store::{ContentStoreError, StoredFile};
use crate::context::TrustContext;
use crate::coverage::{Coverage, CoverageError, Places, files_covered, is_binary};
use crate::recall::CheckedApproval;

/// The largest script or input that is hashed at an event, in bytes.
pub(crate) const LARGEST_FILE: u64 = 64 << 20;

/// What an approval is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The key of the approval: the script's path, or `file#id` without a script.
    pub source: String,
    /// The digest of the script's bytes, or of the definition without a script.
    pub hash: Digest,
    /// The digest of everything that decides what happens.
    pub digest: Digest,
    /// The absolute path of the program that runs it, if there is one. It is part of the digest.
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

/// Why something cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartRefusal {
    /// The program is not installed.
    #[error("`{0}` is not on PATH; install it, or give its absolute path as `command`")]
    NoProgram(String),
    /// The interpreter in a script's first line does not exist.
    #[error("`{program}`, which the first line of {} names, is not there; install it, or change that line", .script.display())]
    NoInterpreter {
        /// The script.
        script: PathBuf,
        /// The interpreter, as written.
        program: String,
    },
    /// A file does not exist.
    #[error("{} does not exist; {}", .0.display(), way_back(.0))]
    NoFile(PathBuf),
    /// The program of a server does not exist, or is not a program.
    #[error("{0}")]
    NotProgram(String),
    /// A file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// Another user could change what runs.
    #[error(transparent)]
    Unsafe(Unsafe),
    /// No copy of the approved content can be kept.
    #[error(transparent)]
    NoCopy(#[from] ContentStoreError),
    /// The files that decide what it does could not be found out.
    #[error(transparent)]
    Uncoverable(#[from] CoverageError),
}

/// How to restore a missing file: a file that Cargo builds can be built again.
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

impl StartRefusal {
    /// Whether something is missing, as opposed to unsafe.
    pub fn is_missing(&self) -> bool {
        use StartRefusal::{NoFile, NoInterpreter, NoProgram, NotProgram};
        matches!(self, NoProgram(_) | NoInterpreter { .. } | NoFile(_) | NotProgram(_))
    }
}

/// An identity, and the files it was computed from.
#[derive(Debug)]
pub(crate) struct IdentifiedSource {
    pub(crate) identity: Identity,
    pub(crate) program: PathBuf,
    /// The files to copy.
    pub(crate) files: Vec<StoredFile>,
    /// The folder that was hashed as a whole, with its digest.
    pub(crate) tree: Option<(PathBuf, Digest)>,
    pub(crate) coverage: Arc<Coverage>,
    /// The things it depends on that can be checked again; `None` if they would be incomplete.
    pub(crate) depends_on: Option<DependsOn>,
}

/// The things an identity depends on, besides the definition and the covered files.
#[derive(Debug, Default)]
pub(crate) struct DependsOn {
    /// The files whose content was hashed.
    pub(crate) files: Vec<PathBuf>,
    /// The name behind `#!/usr/bin/env`.
    pub(crate) interpreter: Option<String>,
}

impl IdentifiedSource {
    /// The common folder of all files; `None` if there are no files.
    pub(crate) fn base(&self) -> Option<PathBuf> {
        // Python finds a module by its place in a search folder, so that folder must be part of the copy.
        let modules = self.coverage.modules.as_deref().filter(|_| !self.files.is_empty());
        let mut folders = self.files.iter().filter_map(|file| file.path.parent()).chain(modules);
        let first = folders.next()?;
        let common = folders.fold(first, |common, folder| {
            common.ancestors().find(|ancestor| folder.starts_with(ancestor)).unwrap_or(common)
        });
        Some(common.to_owned())
    }
}

/// What is known about files, until they change.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) digests: Arc<FileDigests>,
    /// The interpreter name in scripts, by the digest of their content. If a script changes while it is read, the entry
    /// is wrong. Then the script is not recognised as approved.
    env_words: Mutex<HashMap<Digest, Option<String>>>,
    /// The definitions of things, by memory address, because computing one is slower than everything else. While a weak
    /// reference to a thing exists, the thing does not change, and no other thing gets its address.
    defined: Mutex<HashMap<usize, Noted>>,
    /// What commands cover, by definition and working folder.
    covered: Mutex<HashMap<(Digest, PathBuf), SeenCoverage>>,
}

/// The thing, its definition, and the digest of the definition.
type Noted = (Weak<dyn Any + Send + Sync>, Arc<KnownDefinition>);

/// A definition with its cache key.
#[derive(Debug)]
pub(crate) struct KnownDefinition {
    definition: Option<Definition>,
    key: Option<Digest>,
    /// The approved checks, by the folder it runs in.
    pub(crate) checked: Mutex<HashMap<PathBuf, Arc<CheckedApproval>>>,
}

/// A coverage, with the states of the files and folders that it depends on.
type SeenCoverage = (Arc<Coverage>, Arc<SeenStates>);

/// Files and folders with their states; `None` if one did not exist.
pub(crate) type SeenStates = Vec<(PathBuf, Option<StatKey>)>;

impl KnownDefinition {
    pub(crate) fn of(thing: &(impl Approvable + ?Sized)) -> KnownDefinition {
        let definition = thing.definition();
        // Equal definitions from different sources may name different files.
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
            // Removes entries of things that no longer exist.
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

    /// The coverage of a command, computed again only if a file or folder has changed.
    pub(crate) fn coverage(
        &self,
        thing: &(impl Approvable + ?Sized),
        key: Option<Digest>,
        program: &Path,
        context: &TrustContext<'_>,
    ) -> Result<Arc<Coverage>, StartRefusal> {
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
        // A thing with a folder of its own names files by their places in the copy.
        coverage.runs_in = coverage.runs_in.filter(|_| thing.tree().is_none());
        // If no relative name ties it to the approved folder, it runs in the folder of the event. Then the files that
        // its names mean there count.
        if coverage.runs_in.is_none() && context.folder.is_some() {
            let here = places(context.folder);
            if here != approved_in {
                coverage = covered_from(&here)?;
            }
        }
        let coverage = Arc::new(coverage);
        // A change right after this one could have the same timestamp.
        let quiet =
            |(_, state): &(PathBuf, Option<StatKey>)| state.is_none_or(|state| self.digests.is_quiet(state.ctime_ns));
        if let Some(key) = key.filter(|_| states.iter().all(quiet)) {
            let mut covered = self.covered.lock().unwrap_or_else(PoisonError::into_inner);
            covered.insert(key, (Arc::clone(&coverage), Arc::new(states)));
        }
        Ok(coverage)
    }

    /// The states that the remembered coverage of a command depends on.
    pub(crate) fn seen(&self, known: &KnownDefinition, context: &TrustContext<'_>) -> Option<Arc<SeenStates>> {
        let covered = self.covered.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&covered.get(&(known.key?, place_of(context)))?.1))
    }
}

/// The folder something runs in, if it is known.
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
) -> Result<IdentifiedSource, StartRefusal> {
    let program = thing.program(context)?;
    let digests = &*memory.digests;
    let whole = |root: &Path| held.map_or_else(|| of_tree(root, digests), |digest| Ok((root.to_owned(), digest)));
    let tree = thing.tree().map(whole).transpose()?;
    let source = thing.source();
    let Some(definition) = &known.definition else {
        let digest =
            tree.as_ref().map(|(_, digest)| *digest).ok_or_else(|| StartRefusal::NoFile(PathBuf::from(&source)))?;
        let identity = Identity { source, hash: digest, digest, program: None };
        let (files, coverage) = (Vec::new(), Arc::default());
        return Ok(IdentifiedSource { identity, program, files, tree, coverage, depends_on: None });
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
    let mut digest_of = |path: &Path| -> Result<Digest, StartRefusal> {
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
        // A system program is identified by its path. Any other file that a project link leads to can change.
        if outside.as_ref().is_none_or(|real| !is_binary(real)) {
            let digest = digest_of(&program)?;
            hasher = hasher.digest("program content", &digest);
            program_digest = Some(digest);
            // A program found on `PATH` may need the files around it, so it is not copied.
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
        let interpreter = context.find_program(name).ok_or_else(|| no_interpreter(&program, name))?;
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
        // The file would run from a place where other programs may change it after the check.
        return Err(ContentStoreError::Outside { path: file.path.clone(), base: root.clone() }.into());
    }
    // With a tree, the whole folder is already hashed.
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
    Ok(IdentifiedSource { identity, program, files, tree, coverage, depends_on })
}

/// The target of a program that is a project link to a file outside.
fn led_out(program: &Path, project: &Path) -> Option<PathBuf> {
    let project = project.canonicalize().ok()?;
    program.canonicalize().ok().filter(|real| !real.starts_with(project))
}

/// Whether only the machine's administrator can change a file.
fn is_of_the_system(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.uid() == 0 && meta.mode() & 0o022 == 0)
}

/// The digest of a folder with everything in it.
pub(crate) fn of_tree(root: &Path, digests: &FileDigests) -> Result<(PathBuf, Digest), StartRefusal> {
    Ok((root.to_owned(), digests.tree(&existing(root)?, TreeLimits::default())?))
}

/// Checks that the files of something that needs no approval exist.
pub(crate) fn present(thing: &(impl Approvable + ?Sized)) -> Result<(), StartRefusal> {
    thing.script().map_or(Ok(()), |script| existing(script).map(drop))
}

pub(crate) fn existing(path: &Path) -> Result<PathBuf, StartRefusal> {
    if path.exists() { Ok(path.to_owned()) } else { Err(StartRefusal::NoFile(path.to_owned())) }
}

fn unreadable(path: &Path, error: FileError) -> StartRefusal {
    match &error {
        FileError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            StartRefusal::NoFile(path.to_owned())
        }
        _ => error.into(),
    }
}

/// The program of this name on the search path.
pub(crate) fn on_path(program: &str, context: &TrustContext<'_>) -> Result<PathBuf, StartRefusal> {
    context.find_program(program).ok_or_else(|| StartRefusal::NoProgram(program.to_owned()))
}

/// Checks that the interpreter in a script's first line exists.
pub(crate) fn interpreter_present(script: &Path, context: &TrustContext<'_>) -> Result<(), StartRefusal> {
    let Some(shebang) = Shebang::read(&start_of(script)) else { return Ok(()) };
    let unknown = shebang.looked_up().filter(|name| context.find_program(name).is_none());
    let named = [&*shebang.interpreter, &*shebang.program].into_iter();
    let mut gone = named.filter(|name| name.starts_with('/') && !Path::new(name).exists());
    unknown.or_else(|| gone.next()).map_or(Ok(()), |name| Err(no_interpreter(script, name)))
}

fn no_interpreter(script: &Path, program: &str) -> StartRefusal {
    StartRefusal::NoInterpreter { script: script.to_owned(), program: program.to_owned() }
}

/// The name in `#!/usr/bin/env NAME`. Any other interpreter is named by the script's own bytes.
fn env_word(script: &Path) -> Option<String> {
    Shebang::read(&start_of(script))?.looked_up().map(str::to_owned)
}

/// The beginning of a file, as far as the kernel searches it for an interpreter.
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
        let said = |path: &str| StartRefusal::NoFile(path.into()).to_string();
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
