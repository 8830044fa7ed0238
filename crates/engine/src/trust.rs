//! Which hooks may run: only those whose exact content a person approved, or that the user or the embedding program
//! wrote. This is the one place that makes a [`Trusted`], and the runner takes nothing else.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use ollm_protocol::{Hook, Layer, Source, shell_word};
use ollm_store::{Digest, FileDigests, Owners, TreeLimits, UpdateError, current_gid, current_uid};
use ollm_trust::{Approval, ContentStore, ContentStoreError, Standing, StoredCopy, Term};

use crate::approver::{Approver, Choice, Question};
use crate::environment::Environment;
use crate::plan::{Planned, duplicate};
use crate::report::{Reason, Skip};

mod bundle;
mod identity;
mod ledger;

pub use bundle::Bundle;
use identity::{Defined, Identified, Known, identify, present, program};
pub use identity::{Identity, Unready, source};
use ledger::Ledger;

/// A clock, as a value.
pub type Clock = fn() -> SystemTime;

/// A hook that may run, with the program that runs it.
///
/// Only [`Trust::trust`] makes one, so running a hook that nobody approved does not compile:
///
/// ```compile_fail,E0451
/// use std::sync::Arc;
/// use ollm_engine::Trusted;
///
/// fn forge(hook: Arc<ollm_protocol::Hook>) -> Trusted {
///     Trusted { hook, program: "/bin/sh".into(), digest: None, copy: None }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Trusted {
    hook: Arc<Hook>,
    program: PathBuf,
    digest: Option<Digest>,
    copy: Option<Arc<StoredCopy>>,
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

    /// Whether it runs from a copy of exactly what was approved.
    pub fn runs_from_copy(&self) -> bool {
        self.copy.is_some()
    }

    /// The program to start.
    pub(crate) fn program(&self) -> PathBuf {
        self.approved(&self.program).unwrap_or_else(|| self.program.clone())
    }

    /// Why the program cannot be started although it is what was approved: what was approved is no program.
    pub(crate) fn unready(&self) -> Option<String> {
        use std::os::unix::fs::PermissionsExt;
        let copy = self.approved(&self.program)?;
        let mode = copy.metadata().ok().filter(std::fs::Metadata::is_file)?.permissions().mode();
        if mode & 0o111 != 0 {
            return None;
        }
        let (file, hook) = (self.program.display(), self.hook());
        let again = match &hook.spec.extension {
            Some(extension) => format!("ollm ext trust {}", shell_word(extension)),
            None => format!("ollm hook trust {}", shell_word(hook.id())),
        };
        let mend = format!("chmod +x {}", shell_word(&file.to_string()));
        Some(format!("`{file}` is not executable; run `{mend}`, then approve it again, for it is changed: `{again}`"))
    }

    /// The copy of a file that was approved along with the hook.
    pub(crate) fn approved(&self, path: &Path) -> Option<PathBuf> {
        self.copy.as_ref()?.path_of(path)
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
    /// Who is asked about a hook that nobody approved yet.
    pub approver: Option<Box<dyn Approver>>,
    ledger: Ledger,
    known: Known,
    vault: ContentStore,
    clock: Clock,
    granted: Mutex<HashSet<Grant>>,
    /// Folders that are taken for what they were when they were approved.
    held: Mutex<HashMap<PathBuf, Digest>>,
}

/// What was approved for a session of this process.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Grant {
    session: String,
    id: String,
    digest: Digest,
}

/// What a person is asked to approve.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// What the approval will be bound to.
    pub identity: Identity,
    copy: Option<Arc<StoredCopy>>,
}

impl Proposal {
    /// The copy of a file of the hook, to look at.
    pub fn copy_of(&self, path: &Path) -> Option<PathBuf> {
        self.copy.as_ref()?.path_of(path)
    }
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

/// A stage in which everything may run.
#[derive(Debug)]
pub struct Cleared {
    /// What to do, at once.
    pub steps: Vec<Step>,
    /// The hooks that do not run.
    pub skipped: Vec<Skip>,
}

impl Trust {
    /// Trust with the approvals kept in a file; copies of what was approved are kept beside it.
    pub fn new(approvals: PathBuf, clock: Clock) -> Trust {
        let home = approvals.parent().unwrap_or(Path::new("")).to_owned();
        let digests = Arc::new(FileDigests::load(home.join("state/digests"), clock()));
        Trust {
            workspace: false,
            untrusted: Untrusted::Skip,
            approver: None,
            ledger: Ledger::new(approvals),
            vault: ContentStore::new(home.join("store")).remembering(Arc::clone(&digests)),
            known: Known::new(digests),
            clock,
            granted: Mutex::default(),
            held: Mutex::default(),
        }
    }

    /// Where the files live that are no approvals.
    pub(crate) fn state(&self) -> PathBuf {
        self.ledger.path().parent().unwrap_or(Path::new("")).join("state")
    }

    /// The clock.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// The time.
    pub(crate) fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// Why the approvals file is of no use, if it is not.
    pub fn trouble(&self) -> Option<String> {
        self.ledger.current().1.as_ref().map(ToString::to_string)
    }

    /// Keeps what was learned about files for the next process; best effort.
    pub fn remember(&self) {
        self.known.digests.save_if_changed();
    }

    /// What an approval of this hook is, or would be, bound to.
    pub fn identity(&self, hook: &Hook, environment: &Environment) -> Result<Identity, Unready> {
        Ok(self.identified(hook, &Defined::of(hook), program(hook, environment)?, environment)?.identity)
    }

    /// The approval a hook has, whatever its content is now.
    pub fn approval(&self, hook: &Hook) -> Option<Approval> {
        let (approvals, _) = &*self.ledger.current();
        approvals.find(&source(hook), hook.id()).cloned()
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

    /// Makes sure that a hook may run in a session.
    pub fn trust(&self, hook: &Arc<Hook>, environment: &Environment, session: Option<&str>) -> Result<Trusted, Skip> {
        let unready = |why: Unready| Skip::new(hook, why.reason(), why.to_string());
        let program = program(hook, environment);
        if self.needs_no_approval(hook) {
            self.owned(hook, environment).map_err(unready)?;
            let program = program.and_then(|program| present(hook).map(|()| program)).map_err(unready)?;
            return Ok(Trusted { hook: Arc::clone(hook), program, digest: None, copy: None });
        }
        // Without it a process that lives on would never learn that a file has been quiet for a while.
        self.known.digests.advance(self.now());
        let defined = self.known.defined(hook);
        let identified = program.and_then(|program| self.identified(hook, &defined, program, environment));
        match identified {
            Ok(found) => self.approved(hook, found, environment, session),
            Err(why) if self.approval(hook).is_some() => Err(unready(why)),
            // What nobody ever approved has no say, not even by failing.
            Err(why) => Err(Skip::new(hook, Reason::Untrusted, format!("not approved, and {why}"))),
        }
    }

    /// Why a hook would not run as things are, without asking anybody and without using up an approval.
    pub fn forecast(&self, hook: &Arc<Hook>, environment: &Environment) -> Option<Skip> {
        let unready = |why: Unready| Skip::new(hook, why.reason(), why.to_string());
        let program = program(hook, environment);
        if self.needs_no_approval(hook) {
            let ready = self.owned(hook, environment).and(program).and_then(|_| present(hook));
            return ready.map_err(unready).err();
        }
        let defined = self.known.defined(hook);
        match program.and_then(|program| self.identified(hook, &defined, program, environment)) {
            Ok(found) => match self.standing(hook, Some(&found.identity)) {
                Standing::Approved | Standing::Limited => self.owned(hook, environment).map_err(unready).err(),
                standing => Some(self.refusal(hook, &found.identity, standing)),
            },
            Err(why) if self.approval(hook).is_some() => Some(unready(why)),
            Err(why) => Some(Skip::new(hook, Reason::Untrusted, format!("not approved, and {why}"))),
        }
    }

    /// What a person would approve: the hook's identity, and a copy of its files to look at. What is approved later is
    /// what stands in the copy, whatever happens to the files meanwhile.
    pub fn propose(&self, hook: &Hook, environment: &Environment) -> Result<Proposal, Unready> {
        let found = self.identified(hook, &Defined::of(hook), program(hook, environment)?, environment)?;
        self.owned(hook, environment)?;
        let copy = self.copy(&found)?;
        Ok(Proposal { identity: found.identity, copy })
    }

    /// Records a person's approval of a proposal.
    pub fn approve(
        &self,
        hook: &Hook,
        proposal: &Proposal,
        term: Term,
        environment: &Environment,
    ) -> Result<(), UpdateError> {
        ollm_trust::approve(self.ledger.path(), self.approval_of(hook, proposal, term, environment))
    }

    fn approval_of(&self, hook: &Hook, proposal: &Proposal, term: Term, environment: &Environment) -> Approval {
        let approval = proposal.identity.approval(hook, term, environment.user(), iso(self.now()));
        Approval { copy: proposal.copy.as_deref().and_then(name_of), ..approval }
    }

    /// Withdraws the approval of a hook; false when there was none.
    pub fn revoke(&self, hook: &Hook) -> Result<bool, UpdateError> {
        self.grants().retain(|grant| grant.id != hook.id());
        ollm_trust::revoke(self.ledger.path(), &source(hook), hook.id())
    }

    /// The script as it was when the hook was last approved.
    pub fn approved_script(&self, hook: &Hook) -> Option<PathBuf> {
        let name = self.approval(hook)?.copy?;
        let file = hook.script()?.file_name()?;
        let folder = self.vault.folder(&name)?;
        find_file(&folder, file)
    }

    /// Whether files and folders a hook depends on belong to the user, and to nobody else.
    pub fn owned(&self, hook: &Hook, environment: &Environment) -> Result<(), Unready> {
        let top = match hook.spec.source {
            Source::Builtin => return Ok(()),
            Source::User => environment.home.as_deref(),
            Source::Extension | Source::Downloaded if hook.spec.layer == Layer::User => environment.home.as_deref(),
            Source::Workspace | Source::Extension | Source::Downloaded => environment.project.as_deref(),
        };
        let Some(top) = top else { return Ok(()) };
        // What was found safe stays so for the life of this value; we may live longer than that is true.
        let owners = Owners::new(current_uid(), current_gid());
        let files = std::iter::once(&hook.spec.origin.file).chain(hook.script()).chain(&hook.spec.inputs);
        for file in files.filter(|file| file.exists()) {
            owners.check(file, top).map_err(Unready::Unsafe)?;
        }
        Ok(())
    }

    /// A hook that needs approval, with the content it has now.
    fn approved(
        &self,
        hook: &Arc<Hook>,
        found: Identified,
        environment: &Environment,
        session: Option<&str>,
    ) -> Result<Trusted, Skip> {
        let standing = self.standing(hook, Some(&found.identity));
        let may_run = match standing {
            Standing::Approved => true,
            Standing::Limited => self.claim(hook, &found.identity, session),
            Standing::Modified | Standing::Unknown => false,
        };
        let owned = self.owned(hook, environment);
        if !may_run && !self.granted(hook, &found.identity, session) {
            owned.as_ref().map_err(|why| Skip::new(hook, Reason::Untrusted, format!("not approved, and {why}")))?;
            if !self.ask(hook, &found.identity, standing, environment, session) {
                return Err(self.refusal(hook, &found.identity, standing));
            }
        }
        owned.map_err(|why| Skip::new(hook, why.reason(), why.to_string()))?;
        let copy = self.copy(&found).map_err(|error| match error {
            ContentStoreError::Changed { .. } => self.refusal(hook, &found.identity, Standing::Modified),
            other => Skip::new(hook, Reason::Unsafe, other.to_string()),
        })?;
        let digest = Some(found.identity.digest);
        Ok(Trusted { hook: Arc::clone(hook), program: found.program, digest, copy })
    }

    fn identified(
        &self,
        hook: &Hook,
        defined: &Defined,
        program: PathBuf,
        environment: &Environment,
    ) -> Result<Identified, Unready> {
        let held = hook.spec.tree.as_deref().and_then(|root| self.held(root));
        identify(hook, defined, program, held, &self.known, environment)
    }

    /// What was approved is what runs: the files are copied, and hashed as they are copied.
    fn copy(&self, found: &Identified) -> Result<Option<Arc<StoredCopy>>, ContentStoreError> {
        if let Some((root, digest)) = &found.tree {
            return self.vault.keep_tree(root, digest, TreeLimits::default()).map(|kept| Some(Arc::new(kept)));
        }
        let Some(base) = found.base() else { return Ok(None) };
        self.vault.keep(&base, &found.pieces).map(|kept| Some(Arc::new(kept)))
    }

    fn claim(&self, hook: &Hook, identity: &Identity, session: Option<&str>) -> bool {
        // Other content may have been approved meanwhile: that approval is not ours to use.
        let approval = self.approval(hook).filter(|approval| approval.digest == identity.digest);
        approval.is_some_and(|approval| ollm_trust::claim(self.ledger.path(), &approval, session).unwrap_or(false))
    }

    fn granted(&self, hook: &Hook, identity: &Identity, session: Option<&str>) -> bool {
        session.is_some_and(|session| self.grants().contains(&grant(hook, identity, session)))
    }

    fn grants(&self) -> MutexGuard<'_, HashSet<Grant>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the person, where there is one to ask, and remembers the answer for as long as it was given.
    fn ask(
        &self,
        hook: &Hook,
        identity: &Identity,
        standing: Standing,
        environment: &Environment,
        session: Option<&str>,
    ) -> bool {
        let Some(approver) = &self.approver else { return false };
        let previous = self.approval(hook);
        let question =
            Question { hook, identity, previous: previous.as_ref(), changed: standing == Standing::Modified };
        match approver.ask(&question) {
            Choice::No => false,
            Choice::Once => true,
            Choice::Session => {
                self.grants().extend(session.map(|session| grant(hook, identity, session)));
                true
            }
            Choice::Always => {
                // The answer holds for this run even if it cannot be written down; it will be asked again.
                if let Ok(proposal) = self.propose(hook, environment)
                    && proposal.identity == *identity
                {
                    let _ = self.approve(hook, &proposal, Term::Always, environment);
                }
                true
            }
        }
    }

    fn refusal(&self, hook: &Arc<Hook>, identity: &Identity, standing: Standing) -> Skip {
        let (reason, state) = match standing {
            Standing::Modified => (Reason::Modified, self.change(hook, identity)),
            Standing::Limited => (Reason::Untrusted, "approved for another session only".to_owned()),
            Standing::Unknown | Standing::Approved => (Reason::Untrusted, "not approved".to_owned()),
        };
        let command = match &hook.spec.extension {
            Some(extension) => format!("ollm ext trust {}", shell_word(extension)),
            None => format!("ollm hook trust {}", shell_word(hook.id())),
        };
        let mut detail = format!("{state}; review and approve it with `{command}`");
        if let Some(trouble) = self.trouble() {
            detail = format!("{state}: {trouble}");
        }
        Skip::new(hook, reason, detail)
    }

    /// That a hook changed, and what: nobody looks for it in another program that now runs the same script.
    fn change(&self, hook: &Hook, identity: &Identity) -> String {
        let changed = "changed since it was approved";
        let before = self.approval(hook).and_then(|approval| approval.program);
        let now = identity.program.as_ref().map(|program| program.display().to_string());
        match (before, now) {
            (Some(before), Some(now)) if before != now => format!("{changed}: {now} would run it, no longer {before}"),
            _ => changed.to_owned(),
        }
    }

    fn needs_no_approval(&self, hook: &Hook) -> bool {
        match hook.spec.source {
            Source::Builtin | Source::User => true,
            Source::Workspace => self.workspace,
            Source::Extension | Source::Downloaded => false,
        }
    }
}

/// The name of a copy in the vault.
fn name_of(copy: &StoredCopy) -> Option<String> {
    copy.folder.file_name().map(|name| name.to_string_lossy().into_owned())
}

fn grant(hook: &Hook, identity: &Identity, session: &str) -> Grant {
    Grant { session: session.to_owned(), id: hook.id().to_owned(), digest: identity.digest }
}

/// A file by its name, in a folder or below it.
fn find_file(folder: &Path, name: &OsStr) -> Option<PathBuf> {
    let direct = folder.join(name);
    if direct.is_file() {
        return Some(direct);
    }
    let folders = std::fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    folders.filter(|path| path.is_dir()).find_map(|folder| find_file(&folder, name))
}

fn iso(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Lets the hooks of a stage through that may run; the others become skips, or failures where their policy says so.
pub fn clear(stage: Vec<Planned>, trust: &Trust, environment: &Environment, session: Option<&str>) -> Cleared {
    let mut cleared = Cleared { steps: Vec::with_capacity(stage.len()), skipped: Vec::new() };
    for planned in stage {
        let mut candidates = planned.candidates();
        for hook in candidates.by_ref() {
            match trust.trust(hook, environment, session) {
                Ok(trusted) => cleared.steps.push(match planned.failure() {
                    None => Step::Run(trusted),
                    Some(why) => Step::Fail(Arc::clone(hook), why.to_owned()),
                }),
                // A guard that has gone missing, or cannot be relied on, must not open the gate it guarded.
                Err(skip) if matches!(skip.reason, Reason::Missing | Reason::Unsafe) && hook.is_gate() => {
                    cleared.steps.push(Step::Fail(Arc::clone(hook), skip.detail));
                }
                Err(skip) => {
                    cleared.skipped.push(skip);
                    continue;
                }
            }
            cleared.skipped.extend(candidates.map(|twin| duplicate::skip(twin, hook)));
            break;
        }
    }
    cleared
}
