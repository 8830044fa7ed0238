//! What may run: only what a person approved exactly as it is, or what the user or the embedding program wrote. This is
//! the one place that makes a [`Trusted`], and nothing else can be started.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use ollm_protocol::{Commands, Hook, Layer, Source};
use ollm_shell::shell_word;
use ollm_store::{Digest, FileDigests, Owners, TreeLimits, UpdateError, current_gid, current_uid};

use crate::approvable::Approvable;
use crate::approvals::{Approval, Standing, Term, approve_all, claim, revoke};
use crate::approvals_file::ApprovalsFile;
use crate::approver::{Approver, Choice, Question};
use crate::content_store::{ContentStore, ContentStoreError, StoredCopy};
use crate::context::TrustContext;
use crate::coverage::Coverage;
use crate::extension::ExtensionFolder;
use crate::identity::{Identified, Identity, KnownDefinition, Memory, Unready, identify, present};
use crate::review::{Review, ReviewFile, difference, files_in};

/// A clock, as a value.
pub type Clock = fn() -> SystemTime;

/// Something that may run, with the program that runs it.
///
/// Only [`Trust::trust`] makes one, so running what nobody approved does not compile:
///
/// ```compile_fail,E0451
/// use std::sync::Arc;
/// use ollm_trust::Trusted;
///
/// fn forge(hook: Arc<ollm_protocol::Hook>) -> Trusted<ollm_protocol::Hook> {
///     Trusted { thing: hook, program: "/bin/sh".into(), digest: None, copy: None, coverage: Default::default() }
/// }
/// ```
#[derive(Debug)]
pub struct Trusted<T> {
    thing: Arc<T>,
    program: PathBuf,
    digest: Option<Digest>,
    copy: Option<Arc<StoredCopy>>,
    coverage: Arc<Coverage>,
    commands: Commands,
}

impl<T> Clone for Trusted<T> {
    fn clone(&self) -> Trusted<T> {
        Trusted {
            thing: Arc::clone(&self.thing),
            program: self.program.clone(),
            digest: self.digest,
            copy: self.copy.clone(),
            coverage: Arc::clone(&self.coverage),
            commands: self.commands,
        }
    }
}

impl<T> Trusted<T> {
    /// What may run.
    pub fn thing(&self) -> &Arc<T> {
        &self.thing
    }

    /// The digest that was approved, for what needs approval.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Whether it runs from a copy of exactly what was approved.
    pub fn runs_from_copy(&self) -> bool {
        self.copy.is_some()
    }

    /// The program to start.
    pub fn program(&self) -> PathBuf {
        self.approved(&self.program).unwrap_or_else(|| self.program.clone())
    }

    /// The copy of a file that was approved along with it.
    pub fn approved(&self, path: &Path) -> Option<PathBuf> {
        self.copy.as_ref()?.path_of(path)
    }

    /// An argument that names code, with the copy of that code in place of its name.
    pub fn code_argument(&self, argument: &str) -> Option<OsString> {
        let (_, prefix, file) = self.coverage.code_arguments.iter().find(|(written, ..)| written == argument)?;
        let mut replaced = OsString::from(prefix);
        replaced.push(self.approved(file)?);
        Some(replaced)
    }
}

impl Trusted<Hook> {
    /// The hook.
    pub fn hook(&self) -> &Arc<Hook> {
        &self.thing
    }
}

impl<T: Approvable> Trusted<T> {
    /// Why the program cannot be started although it is what was approved: what was approved is no program.
    pub fn unready(&self) -> Option<String> {
        use std::os::unix::fs::PermissionsExt;
        let copy = self.approved(&self.program)?;
        let mode = copy.metadata().ok().filter(std::fs::Metadata::is_file)?.permissions().mode();
        if mode & 0o111 != 0 {
            return None;
        }
        let file = self.program.display();
        let mend = format!("chmod +x {}", shell_word(&file.to_string()));
        let again = self.commands.command(&self.thing.remedy());
        let again = again.map(|command| format!(": `{command}`")).unwrap_or_default();
        Some(format!("`{file}` is not executable; run `{mend}`, then approve it again, for it is changed{again}"))
    }
}

impl Trusted<ExtensionFolder> {
    /// A part of an extension that may run as a whole: what it names is in the copy.
    pub fn part<T: Approvable>(&self, part: &Arc<T>, context: &TrustContext<'_>) -> Result<Trusted<T>, Unready> {
        let (thing, program) = (Arc::clone(part), part.program(context)?);
        let (digest, copy, commands) = (self.digest, self.copy.clone(), self.commands);
        Ok(Trusted { thing, program, digest, copy, coverage: Arc::default(), commands })
    }

    /// The copy of its folder.
    pub fn copy_folder(&self) -> Option<&Path> {
        self.copy.as_ref().map(|copy| copy.folder.as_path())
    }
}

/// What happens when something that fits is not approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Untrusted {
    /// It is skipped, visibly.
    #[default]
    Skip,
    /// It is skipped, and the operation is blocked.
    Block,
}

/// Why something may not run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// In one word.
    pub reason: RefusalReason,
    /// For people, with the way out.
    pub detail: String,
}

/// Why something may not run, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// Nobody approved it.
    Untrusted,
    /// It changed since it was approved.
    Modified,
    /// Something of it is not there.
    Missing,
    /// It cannot be relied on: somebody else could change it, or it cannot be read.
    Unsafe,
}

impl Refusal {
    fn new(reason: RefusalReason, detail: impl Into<String>) -> Refusal {
        Refusal { reason, detail: detail.into() }
    }

    fn unready(why: &Unready) -> Refusal {
        let reason = if why.is_missing() { RefusalReason::Missing } else { RefusalReason::Unsafe };
        Refusal::new(reason, why.to_string())
    }

    fn untrusted_and(why: &Unready) -> Refusal {
        Refusal::new(RefusalReason::Untrusted, format!("not approved, and {why}"))
    }
}

/// Who is trusted, and where approvals are kept.
#[derive(Debug)]
pub struct Trust {
    /// Whether hooks that came with the project need no approval.
    pub workspace: bool,
    /// What an unapproved hook means for the operation.
    pub untrusted: Untrusted,
    /// Who is asked about what nobody approved yet.
    pub approver: Option<Box<dyn Approver>>,
    /// The commands of the program, for what refusals tell a person to do.
    pub commands: Commands,
    pub(crate) approvals: ApprovalsFile,
    pub(crate) memory: Memory,
    pub(crate) copies: ContentStore,
    clock: Clock,
    granted: Mutex<HashSet<Grant>>,
    /// Folders that are taken for what they were when they were approved.
    pub(crate) held: Mutex<HashMap<PathBuf, Digest>>,
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
    files: Vec<PathBuf>,
    coverage: Arc<Coverage>,
    /// Whether a person accepts what is not covered.
    accepts_uncovered: bool,
}

impl Proposal {
    /// The copy of a file, to look at.
    pub fn copy_of(&self, path: &Path) -> Option<PathBuf> {
        self.copy.as_ref()?.path_of(path)
    }

    /// The folder of the copy.
    pub fn copy_folder(&self) -> Option<&Path> {
        self.copy.as_ref().map(|copy| copy.folder.as_path())
    }

    /// What may run without being part of what is approved.
    pub fn uncovered(&self) -> &[String] {
        &self.coverage.uncovered
    }

    /// The same for a person who knows what is not covered, and wants it approved for good.
    pub fn accept_uncovered(self) -> Proposal {
        Proposal { accepts_uncovered: true, ..self }
    }
}

/// Why something is not approved.
#[derive(Debug, thiserror::Error)]
pub enum ApproveError {
    /// It may run what no approval can be bound to.
    #[error("{}", .0.join("; "))]
    Uncovered(Vec<String>),
    /// The approvals could not be written.
    #[error(transparent)]
    Update(#[from] UpdateError),
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
            commands: Commands::default(),
            approvals: ApprovalsFile::new(approvals),
            copies: ContentStore::new(home.join("store")).remembering(Arc::clone(&digests)),
            memory: Memory::new(digests),
            clock,
            granted: Mutex::default(),
            held: Mutex::default(),
        }
    }

    /// Where the files live that are no approvals.
    pub fn state(&self) -> PathBuf {
        self.approvals.path().parent().unwrap_or(Path::new("")).join("state")
    }

    /// The clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The time.
    pub fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// Why the approvals file is of no use, if it is not.
    pub fn trouble(&self) -> Option<String> {
        self.approvals.current().1.as_ref().map(ToString::to_string)
    }

    /// Keeps what was learned about files for the next process; best effort.
    pub fn remember(&self) {
        self.memory.digests.save_if_changed();
    }

    /// What an approval is, or would be, bound to.
    pub fn identity<T: Approvable>(&self, thing: &T, context: &TrustContext<'_>) -> Result<Identity, Unready> {
        Ok(self.identified(thing, &KnownDefinition::of(thing), context)?.identity)
    }

    /// The approval something has, whatever its content is now.
    pub fn approval<T: Approvable>(&self, thing: &T) -> Option<Approval> {
        let (approvals, _) = &*self.approvals.current();
        approvals.find(&thing.source(), &thing.id()).cloned()
    }

    /// Whether something may run as it is now; without an identity it is judged by its origin alone.
    pub fn standing<T: Approvable>(&self, thing: &T, identity: Option<&Identity>) -> Standing {
        if self.needs_no_approval(thing) {
            return Standing::Approved;
        }
        let Some(identity) = identity else { return Standing::Unknown };
        let (approvals, _) = &*self.approvals.current();
        approvals.check(&identity.source, &thing.id(), &identity.hash, &identity.digest)
    }

    /// Makes sure that something may run in a session.
    ///
    /// Whether there is an approval at all comes first: of what nobody approved nothing is hashed, unless somebody can be
    /// asked about it.
    pub fn trust<T: Approvable + Any + Send + Sync>(
        &self,
        thing: &Arc<T>,
        context: &TrustContext<'_>,
        session: Option<&str>,
    ) -> Result<Trusted<T>, Refusal> {
        if self.needs_no_approval(&**thing) {
            return self.own(thing, context).map_err(|why| Refusal::unready(&why));
        }
        let unapproved = self.unapproved(&**thing);
        let has_approval = unapproved.is_none();
        if let Some(refusal) = unapproved.filter(|_| self.approver.is_none() && !self.has_grant(&thing.id())) {
            return Err(refusal);
        }
        // Without it a process that lives on would never learn that a file has been quiet for a while.
        self.memory.digests.advance(self.now());
        let defined = self.memory.defined(thing);
        match self.identified(&**thing, &defined, context) {
            Ok(found) => self.approved(thing, found, context, session),
            Err(why) if has_approval => Err(Refusal::unready(&why)),
            // What nobody ever approved has no say, not even by failing.
            Err(why) => Err(Refusal::untrusted_and(&why)),
        }
    }

    /// Why something would not run as things are, without asking anybody and without using up an approval.
    pub fn forecast<T: Approvable + Any + Send + Sync>(
        &self,
        thing: &Arc<T>,
        context: &TrustContext<'_>,
    ) -> Option<Refusal> {
        if self.needs_no_approval(&**thing) {
            return self.own(thing, context).map_err(|why| Refusal::unready(&why)).err();
        }
        if let Some(refusal) = self.unapproved(&**thing) {
            return Some(refusal);
        }
        let defined = self.memory.defined(thing);
        match self.identified(&**thing, &defined, context) {
            Ok(found) => match self.standing(&**thing, Some(&found.identity)) {
                Standing::Approved | Standing::Limited => {
                    self.owned(&**thing, context).map_err(|why| Refusal::unready(&why)).err()
                }
                standing => Some(self.refusal(&**thing, Some(&found.identity), standing)),
            },
            Err(why) => Some(Refusal::unready(&why)),
        }
    }

    /// Why something may not run that has no approval at all; its content is not looked at.
    pub fn unapproved<T: Approvable>(&self, thing: &T) -> Option<Refusal> {
        let missing = !self.needs_no_approval(thing) && self.approval(thing).is_none();
        missing.then(|| self.refusal(thing, None, Standing::Unknown))
    }

    /// What a person would approve: the identity, and a copy of the files to look at. What is approved later is what
    /// stands in the copy, whatever happens to the files meanwhile.
    pub fn propose<T: Approvable>(&self, thing: &T, context: &TrustContext<'_>) -> Result<Proposal, Unready> {
        let found = self.identified(thing, &KnownDefinition::of(thing), context)?;
        self.owned(thing, context)?;
        Ok(self.proposal(found)?)
    }

    fn proposal(&self, found: Identified) -> Result<Proposal, ContentStoreError> {
        let copy = self.copy(&found)?;
        let files = found.files.into_iter().map(|file| file.path).collect();
        Ok(Proposal { identity: found.identity, copy, files, coverage: found.coverage, accepts_uncovered: false })
    }

    /// What something may run without that being part of what is approved.
    pub fn uncovered<T: Approvable>(&self, thing: &T, context: &TrustContext<'_>) -> Result<Vec<String>, Unready> {
        Ok(self.memory.coverage(thing, None, &thing.program(context)?, context)?.uncovered.clone())
    }

    /// What a person should see of a proposal: what it says, what it runs, and what changed since the last approval.
    pub fn review<T: Approvable>(&self, thing: &T, proposal: &Proposal) -> Review {
        let before = self.approval(thing).and_then(|approval| self.copies.folder(approval.copy.as_deref()?));
        let after = proposal.copy_folder();
        let changes = before.zip(after).map(|(before, after)| difference(&before, after));
        let changes = changes.filter(|changes| !changes.is_empty());
        let mut files: Vec<ReviewFile> = Vec::new();
        let mut unseen = None;
        if let (Some(_), Some(copy)) = (thing.tree(), after) {
            let shown = thing.shown();
            // What was approved before was seen then.
            if changes.is_none() {
                files.extend(shown.iter().map(|place| ReviewFile::of(place, &copy.join(place))));
                let is_shown = |place: &PathBuf| shown.contains(place) || place == Path::new("manifest.json");
                let more = files_in(copy).iter().filter(|place| !is_shown(place)).count();
                unseen = Some((more, copy.to_owned())).filter(|(more, _)| *more > 0);
            }
        } else {
            let copied = proposal.files.iter().filter_map(|file| Some((file, proposal.copy_of(file)?)));
            files.extend(copied.map(|(file, copy)| ReviewFile::of(file, &copy)));
        }
        let mut rows = thing.rows();
        let earlier = self.approval(thing).filter(|earlier| earlier.digest != proposal.identity.digest);
        rows.extend(earlier.map(|earlier| {
            ("changed", format!("since it was approved {} as {}", earlier.approved_at, earlier.digest))
        }));
        let program = proposal.identity.program.as_ref();
        rows.extend(program.map(|program| ("program", program.display().to_string())));
        rows.extend(thing.tree().is_none().then(|| ("covers", covered(proposal))));
        Review {
            title: thing.title(),
            rows,
            changes,
            files,
            unseen,
            uncovered: proposal.uncovered().to_vec(),
            digest: proposal.identity.digest,
        }
    }

    /// Records a person's approval of a proposal.
    pub fn approve<T: Approvable>(
        &self,
        thing: &T,
        proposal: &Proposal,
        term: Term,
        context: &TrustContext<'_>,
    ) -> Result<(), ApproveError> {
        self.approve_together([self.approval_of(thing, proposal, term, context)?])
    }

    /// The approval of a proposal, which [`Trust::approve_together`] records.
    pub fn approval_of<T: Approvable>(
        &self,
        thing: &T,
        proposal: &Proposal,
        term: Term,
        context: &TrustContext<'_>,
    ) -> Result<Approval, ApproveError> {
        if term == Term::Always && !proposal.accepts_uncovered && !proposal.uncovered().is_empty() {
            return Err(ApproveError::Uncovered(proposal.uncovered().to_vec()));
        }
        let approval = proposal.identity.approval(&thing.id(), term, context.user(), iso(self.now()));
        Ok(Approval { copy: proposal.copy.as_deref().and_then(name_of), ..approval })
    }

    /// Records several approvals in one step: all of them or none.
    pub fn approve_together(&self, approvals: impl IntoIterator<Item = Approval>) -> Result<(), ApproveError> {
        Ok(approve_all(self.approvals.path(), approvals.into_iter().collect())?)
    }

    /// Withdraws an approval; false when there was none.
    pub fn revoke<T: Approvable>(&self, thing: &T) -> Result<bool, UpdateError> {
        let id = thing.id();
        self.forget_grants(|granted| granted == id);
        revoke(self.approvals.path(), &thing.source(), &id)
    }

    /// Whether files and folders that something depends on belong to the user, and to nobody else.
    pub fn owned<T: Approvable>(&self, thing: &T, context: &TrustContext<'_>) -> Result<(), Unready> {
        let top = match thing.origin() {
            Source::Builtin => return Ok(()),
            Source::User => context.home,
            Source::Extension | Source::Downloaded if thing.layer() == Layer::User => context.home,
            Source::Workspace | Source::Extension | Source::Downloaded => context.project,
        };
        let Some(top) = top else { return Ok(()) };
        // What was found safe stays so for the life of this value; we may live longer than that is true.
        let owners = Owners::new(current_uid(), current_gid());
        let inputs = thing.inputs().iter().map(PathBuf::as_path);
        let files = thing.declared_in().into_iter().chain(thing.script()).chain(inputs);
        for file in files.filter(|file| file.exists()) {
            owners.check(file, top).map_err(Unready::Unsafe)?;
        }
        Ok(())
    }

    /// Something that needs no approval.
    fn own<T: Approvable>(&self, thing: &Arc<T>, context: &TrustContext<'_>) -> Result<Trusted<T>, Unready> {
        self.owned(&**thing, context)?;
        let program = thing.program(context)?;
        present(&**thing)?;
        let (thing, commands) = (Arc::clone(thing), self.commands);
        Ok(Trusted { thing, program, digest: None, copy: None, coverage: Arc::default(), commands })
    }

    /// Something that needs approval, with the content it has now.
    fn approved<T: Approvable>(
        &self,
        thing: &Arc<T>,
        found: Identified,
        context: &TrustContext<'_>,
        session: Option<&str>,
    ) -> Result<Trusted<T>, Refusal> {
        let standing = self.standing(&**thing, Some(&found.identity));
        let may_run = match standing {
            Standing::Approved => true,
            Standing::Limited => self.claim(&**thing, &found.identity, session),
            Standing::Modified | Standing::Unknown => false,
        };
        let owned = self.owned(&**thing, context);
        let asks = !may_run && !self.granted(&thing.id(), &found.identity, session);
        if asks {
            owned.as_ref().map_err(Refusal::untrusted_and)?;
            if self.approver.is_none() {
                return Err(self.refusal(&**thing, Some(&found.identity), standing));
            }
        }
        owned.map_err(|why| Refusal::unready(&why))?;
        let program = found.program.clone();
        let identity = found.identity.clone();
        let proposal = self.proposal(found).map_err(|error| match error {
            ContentStoreError::Changed { .. } => self.refusal(&**thing, Some(&identity), Standing::Modified),
            other => Refusal::new(RefusalReason::Unsafe, other.to_string()),
        })?;
        // The copy exists before the question: what is shown is what will run.
        if asks && !self.ask(&**thing, &proposal, standing, context, session) {
            return Err(self.refusal(&**thing, Some(&proposal.identity), standing));
        }
        let Proposal { identity, copy, coverage, .. } = proposal;
        let stays = thing.may_keep_its_place() && (coverage.needs_its_place || !coverage.uncovered.is_empty());
        let copy = copy.filter(|_| !stays);
        let (thing, digest, commands) = (Arc::clone(thing), Some(identity.digest), self.commands);
        Ok(Trusted { thing, program, digest, copy, coverage, commands })
    }

    fn identified<T: Approvable>(
        &self,
        thing: &T,
        defined: &KnownDefinition,
        context: &TrustContext<'_>,
    ) -> Result<Identified, Unready> {
        let held = thing.tree().and_then(|root| self.held(root));
        identify(thing, defined, held, &self.memory, context)
    }

    /// What was approved is what runs: the files are copied, and hashed as they are copied.
    fn copy(&self, found: &Identified) -> Result<Option<Arc<StoredCopy>>, ContentStoreError> {
        if let Some((root, digest)) = &found.tree {
            return self.copies.keep_tree(root, digest, TreeLimits::default()).map(|kept| Some(Arc::new(kept)));
        }
        let Some(base) = found.base() else { return Ok(None) };
        self.copies.keep(&base, &found.files).map(|kept| Some(Arc::new(kept)))
    }

    fn claim<T: Approvable>(&self, thing: &T, identity: &Identity, session: Option<&str>) -> bool {
        // Other content may have been approved meanwhile: that approval is not ours to use.
        let approval = self.approval(thing).filter(|approval| approval.digest == identity.digest);
        approval.is_some_and(|approval| claim(self.approvals.path(), &approval, session).unwrap_or(false))
    }

    fn granted(&self, id: &str, identity: &Identity, session: Option<&str>) -> bool {
        session.is_some_and(|session| self.grants().contains(&grant(id, identity, session)))
    }

    fn has_grant(&self, id: &str) -> bool {
        self.grants().iter().any(|grant| grant.id == id)
    }

    pub(crate) fn forget_grants(&self, of: impl Fn(&str) -> bool) {
        self.grants().retain(|grant| !of(&grant.id));
    }

    fn grants(&self) -> MutexGuard<'_, HashSet<Grant>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the person, where there is one to ask, and remembers the answer for as long as it was given.
    fn ask<T: Approvable>(
        &self,
        thing: &T,
        proposal: &Proposal,
        standing: Standing,
        context: &TrustContext<'_>,
        session: Option<&str>,
    ) -> bool {
        let Some(approver) = &self.approver else { return false };
        let previous = self.approval(thing);
        let question = Question {
            id: &thing.id(),
            identity: &proposal.identity,
            review: &self.review(thing, proposal),
            previous: previous.as_ref(),
            changed: standing == Standing::Modified,
            remedy: &thing.remedy(),
        };
        match approver.ask(&question) {
            Choice::No => false,
            Choice::Once => true,
            Choice::Session => {
                self.grants().extend(session.map(|session| grant(&thing.id(), &proposal.identity, session)));
                true
            }
            Choice::Always => {
                // The answer holds for this run even if it cannot be written down; it will be asked again.
                let _ = self.approve(thing, proposal, Term::Always, context);
                true
            }
        }
    }

    fn refusal<T: Approvable>(&self, thing: &T, identity: Option<&Identity>, standing: Standing) -> Refusal {
        let (reason, state) = match standing {
            Standing::Modified => (RefusalReason::Modified, self.change(thing, identity)),
            Standing::Limited => (RefusalReason::Untrusted, "approved for another session only".to_owned()),
            Standing::Unknown | Standing::Approved => (RefusalReason::Untrusted, "not approved".to_owned()),
        };
        let detail = match self.trouble() {
            Some(trouble) => format!("{state}: {trouble}"),
            None => format!("{state}; {}", self.commands.tell(&thing.remedy())),
        };
        Refusal::new(reason, detail)
    }

    /// That something changed, and what: nobody looks for it in another program that now runs the same script.
    fn change<T: Approvable>(&self, thing: &T, identity: Option<&Identity>) -> String {
        let changed = "changed since it was approved";
        let before = self.approval(thing).and_then(|approval| approval.program);
        let now = identity.and_then(|identity| Some(identity.program.as_ref()?.display().to_string()));
        match (before, now) {
            (Some(before), Some(now)) if before != now => format!("{changed}: {now} would run it, no longer {before}"),
            _ => changed.to_owned(),
        }
    }

    fn needs_no_approval<T: Approvable>(&self, thing: &T) -> bool {
        match thing.origin() {
            Source::Builtin | Source::User => true,
            Source::Workspace => self.workspace && thing.trusts_with_workspace(),
            Source::Extension | Source::Downloaded => false,
        }
    }
}

/// The files whose content is approved.
fn covered(proposal: &Proposal) -> String {
    if proposal.files.is_empty() {
        return "no file: what it runs may change without being asked about again".to_owned();
    }
    let top = proposal.coverage.top.as_deref().unwrap_or(Path::new(""));
    let short = |file: &PathBuf| file.strip_prefix(top).unwrap_or(file).display().to_string();
    proposal.files.iter().map(short).collect::<Vec<_>>().join(", ")
}

/// The name of a copy in the store.
fn name_of(copy: &StoredCopy) -> Option<String> {
    copy.folder.file_name().map(|name| name.to_string_lossy().into_owned())
}

fn grant(id: &str, identity: &Identity, session: &str) -> Grant {
    Grant { session: session.to_owned(), id: id.to_owned(), digest: identity.digest }
}

fn iso(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or_default();
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
