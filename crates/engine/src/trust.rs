//! Which hooks may run: only those whose exact content a person approved, or that the user or the embedding program
//! wrote. This is the one place that makes a [`Trusted`], and the runner takes nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ollm_process::find_program;
use ollm_protocol::{Action, Hook, OnFailure, Source};
use ollm_store::{Approvals, Digest, FileDigests, FileError, Hasher, Standing, StatKey, Trouble, digest_bytes};

use crate::environment::Environment;
use crate::plan::Plan;
use crate::report::{Reason, Skip};

/// Larger scripts and inputs are not hashed at every event.
const LARGEST_SCRIPT: u64 = 64 << 20;

/// A hook that may run, with the program that runs it.
#[derive(Clone, Debug)]
pub struct Trusted {
    hook: Arc<Hook>,
    program: PathBuf,
    digest: Option<Digest>,
}

impl Trusted {
    /// The hook.
    pub fn hook(&self) -> &Arc<Hook> {
        &self.hook
    }

    /// The digest that was approved, for hooks that need approval.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }
}

/// What happens when a hook that fits is not approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Untrusted {
    /// It is skipped, visibly.
    #[default]
    Skip,
    /// It is skipped, and the operation is blocked.
    Block,
}

/// Who is trusted, and where approvals are kept.
#[derive(Debug)]
pub struct Trust {
    /// Whether hooks that came with the project need no approval.
    pub workspace: bool,
    /// What an unapproved hook means for the operation.
    pub untrusted: Untrusted,
    ledger: Ledger,
    digests: FileDigests,
}

/// What an approval of a hook is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The script's path, or `file#id` without a script.
    pub source: String,
    /// The digest of the script's bytes, or of the definition without a script.
    pub hash: Digest,
    /// The digest of everything that decides what happens.
    pub digest: Digest,
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
}

/// One step of a cleared plan.
#[derive(Debug)]
pub enum Step {
    /// Run it.
    Run(Trusted),
    /// It cannot run, and its failure policy makes that count.
    Fail(Arc<Hook>, String),
}

impl Step {
    /// The hook.
    pub fn hook(&self) -> &Arc<Hook> {
        match self {
            Step::Run(trusted) => trusted.hook(),
            Step::Fail(hook, _) => hook,
        }
    }
}

/// A plan in which everything may run.
#[derive(Debug)]
pub struct Cleared {
    /// The stages.
    pub stages: Vec<Vec<Step>>,
    /// The hooks that do not run.
    pub skipped: Vec<Skip>,
}

impl Trust {
    /// Trust with the approvals kept in a file.
    pub fn new(approvals: PathBuf, now: std::time::SystemTime) -> Trust {
        Trust {
            workspace: false,
            untrusted: Untrusted::Skip,
            ledger: Ledger::new(approvals),
            digests: FileDigests::new(now),
        }
    }

    /// Why the approvals file is of no use, if it is not.
    pub fn trouble(&self) -> Option<String> {
        self.ledger.current().1.as_ref().map(ToString::to_string)
    }

    /// What an approval of this hook is, or would be, bound to.
    pub fn identity(&self, hook: &Hook, environment: &Environment) -> Result<Identity, Unready> {
        self.identify(hook, &program(hook, environment)?)
    }

    /// Whether this hook may run as it is now; without an identity it is judged by its source alone.
    pub fn standing(&self, hook: &Hook, identity: Option<&Identity>) -> Standing {
        if self.needs_no_approval(hook) {
            return Standing::Approved;
        }
        let Some(identity) = identity else { return Standing::Unknown };
        let (approvals, _) = &*self.ledger.current();
        approvals.check(&identity.source, hook.id(), &identity.hash, &identity.digest)
    }

    /// Makes sure that a hook may run.
    pub fn trust(&self, hook: &Arc<Hook>, environment: &Environment) -> Result<Trusted, Skip> {
        let unready = |why: Unready| Skip::new(hook, reason(&why), why.to_string());
        let program = program(hook, environment);
        if self.needs_no_approval(hook) {
            let program = program.and_then(|program| present(hook).map(|()| program)).map_err(unready)?;
            return Ok(Trusted { hook: Arc::clone(hook), program, digest: None });
        }
        let identified = program.and_then(|program| Ok((self.identify(hook, &program)?, program)));
        match identified {
            Ok((identity, program)) => match self.standing(hook, Some(&identity)) {
                Standing::Approved => Ok(Trusted { hook: Arc::clone(hook), program, digest: Some(identity.digest) }),
                standing => Err(self.refusal(hook, standing)),
            },
            Err(why) if self.was_approved(hook) => Err(unready(why)),
            // What nobody ever approved has no say, not even by failing.
            Err(why) => Err(Skip::new(hook, Reason::Untrusted, format!("not approved, and {why}"))),
        }
    }

    fn was_approved(&self, hook: &Hook) -> bool {
        let (approvals, _) = &*self.ledger.current();
        approvals.find(&source(hook), hook.id()).is_some()
    }

    fn refusal(&self, hook: &Arc<Hook>, standing: Standing) -> Skip {
        let (reason, state) = match standing {
            Standing::Modified => (Reason::Modified, "changed since it was approved"),
            Standing::Unknown | Standing::Approved => (Reason::Untrusted, "not approved"),
        };
        let mut detail = format!("{state}; review and approve it with `ollm hook trust {}`", hook.id());
        if let Some(trouble) = self.trouble() {
            detail = format!("{state}: {trouble}");
        }
        Skip::new(hook, reason, detail)
    }

    fn needs_no_approval(&self, hook: &Hook) -> bool {
        match hook.spec.source {
            Source::Builtin | Source::User => true,
            Source::Workspace => self.workspace,
            Source::Extension | Source::Downloaded => false,
        }
    }

    fn identify(&self, hook: &Hook, program: &Path) -> Result<Identity, Unready> {
        let definition = hook.definition().to_string();
        let mut hasher = Hasher::new().field("definition", definition.as_bytes());
        hasher = hasher.field("program", program.as_os_str().as_encoded_bytes());
        let script = hook.spec.script().map(|path| self.digest(path)).transpose()?;
        if let Some(digest) = &script {
            hasher = hasher.digest("script", digest);
        }
        for input in &hook.spec.inputs {
            hasher = hasher.digest("input", &self.digest(input)?);
        }
        let hash = script.unwrap_or_else(|| digest_bytes(definition.as_bytes()));
        Ok(Identity { source: source(hook), hash, digest: hasher.finish() })
    }

    fn digest(&self, path: &Path) -> Result<Digest, Unready> {
        if !path.exists() {
            return Err(Unready::NoFile(path.to_owned()));
        }
        Ok(self.digests.digest(path, LARGEST_SCRIPT)?)
    }
}

/// Lets the hooks of a plan through that may run; the others become skips, or failures where their policy says so.
pub fn clear(plan: Plan, trust: &Trust, environment: &Environment) -> Cleared {
    let mut cleared = Cleared { stages: Vec::with_capacity(plan.stages.len()), skipped: plan.skipped };
    for stage in plan.stages {
        let mut steps = Vec::with_capacity(stage.len());
        for hook in stage {
            match trust.trust(&hook, environment) {
                Ok(trusted) => steps.push(Step::Run(trusted)),
                // A guard that has gone missing must not open the gate it guarded.
                Err(skip) if skip.reason == Reason::Missing && hook.on_failure.value != OnFailure::Allow => {
                    steps.push(Step::Fail(hook, skip.detail));
                }
                Err(skip) => cleared.skipped.push(skip),
            }
        }
        if !steps.is_empty() {
            cleared.stages.push(steps);
        }
    }
    cleared
}

/// What an approval of a hook is filed under: the script's path, or `file#id` without a script.
pub fn source(hook: &Hook) -> String {
    match hook.spec.script() {
        Some(path) => path.display().to_string(),
        None => format!("{}#{}", hook.spec.origin.file.display(), hook.id()),
    }
}

/// The program that runs a hook, by absolute path.
fn program(hook: &Hook, environment: &Environment) -> Result<PathBuf, Unready> {
    match &hook.action {
        Action::Builtin(_) => Ok(PathBuf::new()),
        Action::Shell(_) => Ok(PathBuf::from("/bin/sh")),
        Action::Command { program, .. } if Path::new(program).is_absolute() => Ok(PathBuf::from(program)),
        Action::Command { program, .. } => {
            find_program(program, environment.path()).ok_or_else(|| Unready::NoProgram(program.clone()))
        }
    }
}

/// Whether the files of a hook that needs no approval are there.
fn present(hook: &Hook) -> Result<(), Unready> {
    match hook.spec.script() {
        Some(script) if !script.exists() => Err(Unready::NoFile(script.clone())),
        _ => Ok(()),
    }
}

fn reason(why: &Unready) -> Reason {
    match why {
        Unready::NoProgram(_) | Unready::NoFile(_) => Reason::Missing,
        Unready::Unreadable(_) => Reason::Unsafe,
    }
}

/// The approvals, read again when their file changed.
#[derive(Debug)]
struct Ledger {
    path: PathBuf,
    read: Mutex<Option<Read>>,
}

type Contents = (Approvals, Option<Trouble>);

#[derive(Debug)]
struct Read {
    key: Option<StatKey>,
    contents: Arc<Contents>,
}

impl Ledger {
    fn new(path: PathBuf) -> Ledger {
        Ledger { path, read: Mutex::new(None) }
    }

    fn current(&self) -> Arc<Contents> {
        let key = fs::metadata(&self.path).ok().map(|meta| StatKey::of(&meta));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = read.as_ref().filter(|read| read.key == key) {
            return Arc::clone(&read.contents);
        }
        let contents = Arc::new(Approvals::load(&self.path));
        *read = Some(Read { key, contents: Arc::clone(&contents) });
        contents
    }
}
