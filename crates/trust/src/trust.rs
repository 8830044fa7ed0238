//! Decides what may run: content that a person approved in its present state, or that the user or the embedding program
//! wrote. Only this module makes a [`Trusted`], and nothing starts without one.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use ollm_protocol::{Commands, Layer, Source};
use ollm_store::{Digest, FileDigests, Owners, current_gid, current_uid};

use crate::approvable::Approvable;
use crate::approvals::{Approval, Standing, claim};
use crate::approvals_file::ApprovalsFile;
use crate::approver::Approver;
use crate::content_store::{ContentStore, ContentStoreError, StoredCopy};
use crate::context::TrustContext;
use crate::coverage::{Content, Coverage, ScriptEdits, absolute_interpreter, is_binary, rewritten};
use crate::extension::ExtensionFolder;
use crate::identity::{
    IdentifiedSource, Identity, KnownDefinition, LARGEST_FILE, Memory, StartRefusal, identify, interpreter_present,
    present, start_of,
};
use crate::proposal::{Grant, Proposal};
use crate::refusal::{Refusal, RefusalReason, UntrustedPolicy};
use crate::signer::Signer;

/// The file in the state folder with the digests of files.
pub(crate) const DIGESTS: &str = "digests";

mod trusted;

pub(crate) use trusted::Run;
pub use trusted::Trusted;

/// A clock, as a value.
pub type Clock = fn() -> SystemTime;

impl Trusted<ExtensionFolder> {
    /// A part of a trusted extension. The files that it names are in the extension's copy.
    pub fn part<T: Approvable>(&self, part: &Arc<T>, context: &TrustContext<'_>) -> Result<Trusted<T>, StartRefusal> {
        let (thing, program) = (Arc::clone(part), part.program(context)?);
        if program.starts_with(&self.thing.root) || self.copy_folder().is_some_and(|copy| program.starts_with(copy)) {
            absolute_interpreter(&program, &start_of(&program))?;
        }
        let run = Run::new(program, self.run.digest, self.run.copy.clone(), Arc::default());
        Ok(Trusted { thing, run: Arc::new(run), commands: self.commands })
    }
}

/// The rules of trust, and the storage of approvals.
#[derive(Debug)]
pub struct Trust {
    /// Whether hooks that came with a project need no approval.
    pub workspace: bool,
    /// The projects whose hooks need approval in any case.
    pub untrusted_projects: Vec<PathBuf>,
    /// How an unapproved hook affects the operation.
    pub untrusted: UntrustedPolicy,
    /// The port to the person who is asked about things without approval.
    pub approver: Option<Box<dyn Approver>>,
    /// The port that signs approvals, if a key is required.
    pub signer: Option<Box<dyn Signer>>,
    /// The program's commands, for the remedies in refusals.
    pub commands: Commands,
    pub(crate) approvals: ApprovalsFile,
    pub(crate) memory: Memory,
    pub(crate) copies: ContentStore,
    clock: Clock,
    pub(crate) granted: Mutex<HashSet<Grant>>,
    /// Folders that are treated as they were at their approval.
    pub(crate) held: Mutex<HashMap<PathBuf, Digest>>,
}

impl Trust {
    /// Trust with the approvals kept in a file; copies of what was approved are kept beside it.
    pub fn new(approvals: PathBuf, clock: Clock) -> Trust {
        let home = approvals.parent().unwrap_or(Path::new("")).to_owned();
        let digests = Arc::new(FileDigests::load(home.join("state").join(DIGESTS), clock()));
        Trust {
            workspace: false,
            untrusted_projects: Vec::new(),
            untrusted: UntrustedPolicy::Skip,
            approver: None,
            signer: None,
            commands: Commands::default(),
            approvals: ApprovalsFile::new(approvals),
            copies: ContentStore::new(home.join("store")).remembering(Arc::clone(&digests)),
            memory: Memory::new(digests),
            clock,
            granted: Mutex::default(),
            held: Mutex::default(),
        }
    }

    /// The folder of state files that are not approvals.
    pub fn state(&self) -> PathBuf {
        self.home().join("state")
    }

    fn home(&self) -> &Path {
        self.approvals.path().parent().unwrap_or(Path::new(""))
    }

    /// The clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The time.
    pub fn now(&self) -> SystemTime {
        (self.clock)()
    }

    /// Why the approvals file is unusable, if it is.
    pub fn trouble(&self) -> Option<String> {
        let current = self.approvals.current();
        let trouble = current.1.as_ref()?;
        Some(match trouble.remedy() {
            Some(remedy) => format!("{trouble}; {}", self.commands.tell(&remedy)),
            None => trouble.to_string(),
        })
    }

    /// Drops the file digests of earlier processes, and stores none for later ones.
    pub(crate) fn forget_earlier(&mut self) {
        let digests = Arc::new(FileDigests::new(self.now()));
        self.copies = ContentStore::new(self.home().join("store")).remembering(Arc::clone(&digests));
        self.memory = Memory::new(digests);
    }

    /// Stores file digests for the next process; best effort.
    pub fn remember(&self) {
        self.memory.digests.save_if_changed();
    }

    /// The content that an approval is, or would be, bound to.
    pub fn identity<T: Approvable>(&self, thing: &T, context: &TrustContext<'_>) -> Result<Identity, StartRefusal> {
        Ok(self.identified(thing, &KnownDefinition::of(thing), context)?.identity)
    }

    /// The approval of something, whatever its present content.
    pub fn approval<T: Approvable>(&self, thing: &T) -> Option<Approval> {
        let (approvals, _) = &*self.approvals.current();
        approvals.find(&thing.source(), &thing.id()).cloned()
    }

    /// Whether the present state of something may run. Without an identity, only its origin decides.
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
    /// First checks whether there is any approval. If not, nothing is hashed, unless there is an approver to ask.
    pub fn trust<T: Approvable + Any + Send + Sync>(
        &self,
        thing: &Arc<T>,
        context: &TrustContext<'_>,
        session: Option<&str>,
    ) -> Result<Trusted<T>, Refusal> {
        if self.needs_no_approval(&**thing) {
            return self.own(thing, context).map_err(|why| Refusal::unready(&why));
        }
        let defined = self.memory.defined(thing);
        if let Some(run) = self.recall(&**thing, &defined, context) {
            return Ok(Trusted { thing: Arc::clone(thing), run, commands: self.commands });
        }
        let unapproved = self.unapproved(&**thing);
        let has_approval = unapproved.is_none();
        if let Some(refusal) = unapproved.filter(|_| self.approver.is_none() && !self.has_grant(&thing.id())) {
            return Err(refusal);
        }
        // Without this, a long-lived process would never find out that a file has been quiet for a while.
        self.memory.digests.advance(self.now());
        match self.identified(&**thing, &defined, context) {
            Ok(found) => self.approved(thing, &defined, found, context, session),
            Err(why) if has_approval => Err(Refusal::unready(&why)),
            // Something that was never approved must have no effect, not even by failing.
            Err(why) => Err(Refusal::untrusted_and(&why)),
        }
    }

    /// Why something would not run now. Asks no person and uses up no approval.
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

    /// Checks that the interpreter of a program exists, if the program is a script. Without it, the script starts and
    /// fails.
    pub fn has_interpreter<T: Approvable>(&self, thing: &T, context: &TrustContext<'_>) -> Result<(), StartRefusal> {
        interpreter_present(&thing.program(context)?, context)
    }

    /// Why something without any approval may not run. Its content is not read.
    pub fn unapproved<T: Approvable>(&self, thing: &T) -> Option<Refusal> {
        let is_missing = || self.approvals.current().0.find(&thing.source(), &thing.id()).is_none();
        (!self.needs_no_approval(thing) && is_missing()).then(|| self.refusal(thing, None, Standing::Unknown))
    }

    /// Checks that the files and folders that something depends on belong to the user alone.
    pub fn owned<T: Approvable>(&self, thing: &T, context: &TrustContext<'_>) -> Result<(), StartRefusal> {
        owners(thing, context).map(drop)
    }

    /// Trusts something that needs no approval.
    fn own<T: Approvable>(&self, thing: &Arc<T>, context: &TrustContext<'_>) -> Result<Trusted<T>, StartRefusal> {
        self.owned(&**thing, context)?;
        let program = thing.program(context)?;
        present(&**thing)?;
        let run = Arc::new(Run::new(program, None, None, Arc::default()));
        Ok(Trusted { thing: Arc::clone(thing), run, commands: self.commands })
    }

    /// Trusts something that needs approval, if its present content has one.
    fn approved<T: Approvable>(
        &self,
        thing: &Arc<T>,
        defined: &KnownDefinition,
        mut found: IdentifiedSource,
        context: &TrustContext<'_>,
        session: Option<&str>,
    ) -> Result<Trusted<T>, Refusal> {
        let standing = self.standing(&**thing, Some(&found.identity));
        let may_run = match standing {
            Standing::Approved => true,
            Standing::Limited => self.claim(&**thing, &found.identity, session),
            Standing::Modified | Standing::Unknown => false,
        };
        let owned = owners(&**thing, context);
        let asks = !may_run && !self.granted(&thing.id(), &found.identity, session);
        if asks {
            owned.as_ref().map_err(Refusal::untrusted_and)?;
            if self.approver.is_none() {
                return Err(self.refusal(&**thing, Some(&found.identity), standing));
            }
        }
        let owners = owned.map_err(|why| Refusal::unready(&why))?;
        let program = found.program.clone();
        let depends_on = found.depends_on.take();
        let identity = found.identity.clone();
        let proposal = self.proposal(found).map_err(|error| match error {
            ContentStoreError::Changed { .. } => self.refusal(&**thing, Some(&identity), Standing::Modified),
            other => Refusal::new(RefusalReason::Unsafe, other.to_string()),
        })?;
        // The copy exists before the question, so that the person sees the content that will run.
        if asks && !self.ask(&**thing, &proposal, standing, context, session) {
            return Err(self.refusal(&**thing, Some(&proposal.identity), standing));
        }
        let Proposal { identity, copy, coverage, .. } = proposal;
        let stays = thing.may_keep_its_place() && (coverage.needs_its_place || !coverage.uncovered.is_empty());
        let copy = copy.filter(|_| !stays).map(|copy| self.pointed_at_itself(copy, &coverage)).transpose()?;
        let run = Arc::new(Run::new(program, Some(identity.digest), copy, coverage));
        if let Some((depends_on, owners)) = depends_on.zip(owners) {
            self.note_checked(&**thing, defined, &identity, (depends_on, owners), &run, context);
        }
        Ok(Trusted { thing: Arc::clone(thing), run, commands: self.commands })
    }

    /// A copy whose scripts find one another in the copy, instead of through the working folder.
    fn pointed_at_itself(&self, copy: Arc<StoredCopy>, coverage: &Coverage) -> Result<Arc<StoredCopy>, Refusal> {
        let refused = |error: ContentStoreError| Refusal::new(RefusalReason::Unsafe, error.to_string());
        let changed = |path: &Path| ContentStoreError::Changed { path: path.to_owned() };
        for (file, content) in &coverage.read {
            let Some(path) = copy.path_of(file) else { continue };
            // If a file changed while it was searched, the result of the search is invalid.
            let same = match content {
                Content::Text(digest) => {
                    self.memory.digests.digest(&path, LARGEST_FILE).is_ok_and(|found| found == *digest)
                }
                Content::Binary => is_binary(&path),
            };
            if !same {
                return Err(refused(changed(file)));
            }
        }
        let mut edited = BTreeMap::new();
        for ScriptEdits { file, edits } in &coverage.scripts {
            let Some(place) = copy.place_of(file) else { continue };
            let text = std::fs::read_to_string(copy.folder.join(&place)).map_err(|_| refused(changed(file)))?;
            edited.insert(place, rewritten(&text, edits, &|file| copy.place_of(file)));
        }
        if edited.is_empty() {
            return Ok(copy);
        }
        self.copies.keep_edited(&copy, &edited).map(Arc::new).map_err(refused)
    }

    pub(crate) fn identified<T: Approvable>(
        &self,
        thing: &T,
        defined: &KnownDefinition,
        context: &TrustContext<'_>,
    ) -> Result<IdentifiedSource, StartRefusal> {
        let held = thing.tree().and_then(|root| self.held(root));
        identify(thing, defined, held, &self.memory, context)
    }

    fn claim<T: Approvable>(&self, thing: &T, identity: &Identity, session: Option<&str>) -> bool {
        // If other content was approved in the meantime, that approval must not be used up here.
        let approval = self.approval(thing).filter(|approval| approval.digest == identity.digest);
        approval.is_some_and(|approval| claim(self.approvals.path(), &approval, session).unwrap_or(false))
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

    /// The text that something changed, and what. It names a new program for the same script, because a person would
    /// not look for that.
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
            Source::Builtin | Source::Policy | Source::User => true,
            Source::Workspace => {
                let project = thing.project(&TrustContext::default());
                let is_trusted = |project: &Path| !self.untrusted_projects.iter().any(|known| known == project);
                self.workspace && thing.trusts_with_workspace() && project.is_none_or(is_trusted)
            }
            Source::Extension | Source::Downloaded => false,
        }
    }
}

/// Like [`Trust::owned`], but returns what was checked; `None` if something did not exist.
fn owners<T: Approvable>(thing: &T, context: &TrustContext<'_>) -> Result<Option<Owners>, StartRefusal> {
    // This value remembers safe folders for as long as it lives, so each check makes a new one.
    let owners = Owners::new(current_uid(), current_gid());
    let top = match thing.origin() {
        Source::Builtin => None,
        Source::Policy | Source::User => context.home,
        Source::Extension | Source::Downloaded if thing.layer() == Layer::User => context.home,
        Source::Workspace | Source::Extension | Source::Downloaded => thing.project(context),
    };
    let Some(top) = top else { return Ok(Some(owners)) };
    let inputs = thing.inputs().iter().map(PathBuf::as_path);
    let files = thing.declared_in().into_iter().chain(thing.script()).chain(inputs);
    let mut is_whole = true;
    for file in files {
        if file.exists() {
            owners.check(file, top).map_err(StartRefusal::Unsafe)?;
        } else {
            is_whole = false;
        }
    }
    Ok(Some(owners).filter(|_| is_whole))
}

#[cfg(test)]
mod tests {
    use ollm_store::digest_bytes;

    use super::*;
    use crate::content_store::StoredFile;

    #[test]
    fn what_was_exchanged_while_it_was_looked_through_does_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("check.sh");
        std::fs::write(&script, ". ./lib.sh").unwrap();
        let trust = Trust::new(folder.path().join("home/approvals.json"), SystemTime::now);
        let file = StoredFile { path: script.clone(), digest: digest_bytes(b". ./lib.sh") };
        let copy = Arc::new(trust.copies.keep(folder.path(), &[file]).unwrap());
        let read = |content| Coverage { read: vec![(script.clone(), content)], ..Coverage::default() };
        let text = |text: &[u8]| Content::Text(digest_bytes(text));
        let same = trust.pointed_at_itself(Arc::clone(&copy), &read(text(b". ./lib.sh"))).unwrap();
        assert_eq!(same, copy);
        for other in [text(b"true"), Content::Binary] {
            let refusal = trust.pointed_at_itself(Arc::clone(&copy), &read(other)).unwrap_err();
            assert!(refusal.detail.contains("is no longer what was approved"), "{}", refusal.detail);
        }
    }
}
