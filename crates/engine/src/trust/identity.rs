//! What a hook is: everything that decides what happens when it runs, as one digest.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ollm_process::find_program;
use ollm_protocol::{Action, Hook};
use ollm_store::{Digest, FileDigests, FileError, Hasher, TreeLimits, Unsafe, digest_bytes};
use ollm_trust::{Approval, ContentStoreError, StoredFile, Term};

use crate::environment::Environment;
use crate::report::Reason;

/// Larger scripts and inputs are not hashed at every event.
const LARGEST_SCRIPT: u64 = 64 << 20;

/// What an approval of a hook is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The script's path, or `file#id` without a script.
    pub source: String,
    /// The digest of the script's bytes, or of the definition without a script.
    pub hash: Digest,
    /// The digest of everything that decides what happens.
    pub digest: Digest,
    /// What runs it, by absolute path, if a program does: it is part of the digest.
    pub program: Option<PathBuf>,
}

impl Identity {
    /// The approval of a hook with this identity.
    pub(super) fn approval(&self, hook: &Hook, term: Term, by: String, at: String) -> Approval {
        Approval {
            source: self.source.clone(),
            id: hook.id().to_owned(),
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

/// Why a hook cannot be started at all.
#[derive(Debug, thiserror::Error)]
pub enum Unready {
    /// The interpreter is not installed.
    #[error("`{0}` is not on PATH; install it, or give its absolute path as `command`")]
    NoProgram(String),
    /// A file is not there.
    #[error("{} does not exist; restore it, or change the hook that names it", .0.display())]
    NoFile(PathBuf),
    /// A file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// Somebody else could change what runs.
    #[error(transparent)]
    Unsafe(Unsafe),
    /// No copy of what is approved can be kept.
    #[error(transparent)]
    NoCopy(#[from] ContentStoreError),
}

impl Unready {
    pub(super) fn reason(&self) -> Reason {
        match self {
            Unready::NoProgram(_) | Unready::NoFile(_) => Reason::Missing,
            Unready::Unreadable(_) | Unready::Unsafe(_) | Unready::NoCopy(_) => Reason::Unsafe,
        }
    }
}

/// A hook's identity, and the files it was taken from.
#[derive(Debug)]
pub(super) struct Identified {
    pub(super) identity: Identity,
    pub(super) program: PathBuf,
    pub(super) pieces: Vec<StoredFile>,
    /// The folder whose whole content was taken, with its digest.
    pub(super) tree: Option<(PathBuf, Digest)>,
}

impl Identified {
    /// The folder all pieces are in; none when there are no pieces.
    pub(super) fn base(&self) -> Option<PathBuf> {
        let mut folders = self.pieces.iter().filter_map(|piece| piece.path.parent());
        let first = folders.next()?;
        let common = folders.fold(first, |common, folder| {
            common.ancestors().find(|ancestor| folder.starts_with(ancestor)).unwrap_or(common)
        });
        Some(common.to_owned())
    }
}

/// What was learnt about files, for as long as they are the same.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) digests: Arc<FileDigests>,
    /// How scripts begin, by the digest of their content. One that was exchanged while it was read is filed wrongly and
    /// then not recognised as what was approved.
    env_words: Mutex<HashMap<Digest, Option<String>>>,
    /// How hooks are defined, by the place where they are: to write that down costs more than all else about them. What
    /// somebody refers to, if only weakly, neither changes nor makes room for another one.
    defined: Mutex<HashMap<usize, Noted>>,
}

/// Whose definition it is, and the definition.
type Noted = (Weak<Hook>, Arc<Defined>);

/// How a hook is defined.
#[derive(Debug)]
pub(super) struct Defined {
    /// Of the definition alone.
    digest: Digest,
    /// What follows is added to the definition.
    hasher: Hasher,
}

impl Defined {
    pub(super) fn of(hook: &Hook) -> Defined {
        let definition = hook.definition().to_string();
        let hasher = Hasher::new().field("definition", definition.as_bytes());
        Defined { digest: digest_bytes(definition.as_bytes()), hasher }
    }
}

impl Known {
    pub(super) fn new(digests: Arc<FileDigests>) -> Known {
        Known { digests, env_words: Mutex::default(), defined: Mutex::default() }
    }

    pub(super) fn defined(&self, hook: &Arc<Hook>) -> Arc<Defined> {
        let mut known = self.defined.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Arc::as_ptr(hook).addr();
        if let Some((_, defined)) = known.get(&place) {
            return Arc::clone(defined);
        }
        if known.len().is_power_of_two() {
            // Of hooks that are gone.
            known.retain(|_, (hook, _)| hook.strong_count() > 0);
        }
        let defined = Arc::new(Defined::of(hook));
        known.insert(place, (Arc::downgrade(hook), Arc::clone(&defined)));
        defined
    }

    fn env_word(&self, script: &Path, content: Digest) -> Option<String> {
        let mut words = self.env_words.lock().unwrap_or_else(PoisonError::into_inner);
        words.entry(content).or_insert_with(|| env_word(script)).clone()
    }
}

pub(super) fn identify(
    hook: &Hook,
    defined: &Defined,
    program: PathBuf,
    held: Option<Digest>,
    known: &Known,
    environment: &Environment,
) -> Result<Identified, Unready> {
    let digests = &*known.digests;
    let mut hasher = defined.hasher.clone().field("program", program.as_os_str().as_encoded_bytes());
    let whole = |root: &Path| held.map_or_else(|| of_tree(root, digests), |digest| Ok((root.to_owned(), digest)));
    let tree = hook.spec.tree.as_deref().map(whole).transpose()?;
    if let Some((_, digest)) = &tree {
        hasher = hasher.tree_digest("tree", digest);
    }
    let mut pieces = Vec::new();
    let mut piece = |path: &Path| -> Result<Digest, Unready> {
        let digest = digests.digest(path, LARGEST_SCRIPT).map_err(|error| unreadable(path, error))?;
        pieces.push(StoredFile { path: path.to_owned(), digest });
        Ok(digest)
    };
    let script = hook.script().map(|path| piece(path)).transpose()?;
    if let Some(digest) = &script {
        hasher = hasher.digest("script", digest);
    }
    let is_script = hook.script() == Some(&program);
    let comes_along = !is_script && environment.project.as_deref().is_some_and(|project| program.starts_with(project));
    let mut content = script.filter(|_| is_script);
    if comes_along {
        // One that was found on PATH has its place among others it needs, and is not torn away from them.
        let digest = if named_by_path(hook) { piece(&program)? } else { digests.digest(&program, LARGEST_SCRIPT)? };
        hasher = hasher.digest("program content", &digest);
        content = Some(digest);
    }
    let mut runs = Some(program.clone()).filter(|program| !program.as_os_str().is_empty());
    if let Some(name) = content.and_then(|content| known.env_word(&program, content)) {
        let interpreter = on_path(&name, environment)?;
        hasher = hasher.field("interpreter", interpreter.as_os_str().as_encoded_bytes());
        runs = Some(interpreter);
    }
    for input in &hook.spec.inputs {
        hasher = hasher.digest("input", &piece(input)?);
    }
    let hash = script.unwrap_or(defined.digest);
    let identity = Identity { source: source(hook), hash, digest: hasher.finish(), program: runs };
    if let Some((root, _)) = &tree
        && let Some(piece) = pieces.iter().find(|piece| !piece.path.starts_with(root))
    {
        // It would run from where anybody may change it after it was looked at.
        return Err(ContentStoreError::Outside { path: piece.path.clone(), base: root.clone() }.into());
    }
    Ok(Identified { identity, program, pieces, tree })
}

/// A folder with everything in it.
pub(super) fn of_tree(root: &Path, digests: &FileDigests) -> Result<(PathBuf, Digest), Unready> {
    Ok((root.to_owned(), digests.tree(&existing(root)?, TreeLimits::default())?))
}

/// What an approval of a hook is filed under: the script's path, or `file#id` without a script.
pub fn source(hook: &Hook) -> String {
    match hook.script() {
        Some(path) => path.display().to_string(),
        None => format!("{}#{}", hook.spec.origin.file.display(), hook.id()),
    }
}

/// The program that runs a hook, by absolute path.
pub(super) fn program(hook: &Hook, environment: &Environment) -> Result<PathBuf, Unready> {
    match &hook.action {
        Action::Builtin(_) | Action::AskAgent(_) | Action::Http { .. } | Action::Mcp { .. } => Ok(PathBuf::new()),
        Action::Shell(_) => Ok(PathBuf::from("/bin/sh")),
        Action::Command { program, .. } | Action::RunCommand { program, .. } if Path::new(program).is_absolute() => {
            existing(hook.own_file(program).unwrap_or(Path::new(program)))
        }
        Action::Command { program, .. } | Action::RunCommand { program, .. } => on_path(program, environment),
    }
}

fn named_by_path(hook: &Hook) -> bool {
    match &hook.action {
        Action::Command { program, .. } | Action::RunCommand { program, .. } => Path::new(program).is_absolute(),
        _ => false,
    }
}

/// Whether the files of a hook that needs no approval are there.
pub(super) fn present(hook: &Hook) -> Result<(), Unready> {
    hook.script().map_or(Ok(()), |script| existing(script).map(drop))
}

fn existing(path: &Path) -> Result<PathBuf, Unready> {
    if path.exists() { Ok(path.to_owned()) } else { Err(Unready::NoFile(path.to_owned())) }
}

fn unreadable(path: &Path, error: FileError) -> Unready {
    match &error {
        FileError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => Unready::NoFile(path.to_owned()),
        _ => error.into(),
    }
}

fn on_path(program: &str, environment: &Environment) -> Result<PathBuf, Unready> {
    find_program(program, environment.path()).ok_or_else(|| Unready::NoProgram(program.to_owned()))
}

/// The name in `#!/usr/bin/env NAME`; any other interpreter is named by the script's own bytes.
fn env_word(script: &Path) -> Option<String> {
    let mut start = [0; 256];
    let count = File::open(script).and_then(|mut file| file.read(&mut start)).unwrap_or(0);
    let text = String::from_utf8_lossy(start.get(..count).unwrap_or_default()).into_owned();
    let mut words = text.lines().next()?.strip_prefix("#!")?.split_whitespace();
    words.next().filter(|word| word.ends_with("/env"))?;
    words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned)
}
