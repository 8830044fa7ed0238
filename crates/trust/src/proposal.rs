//! Approves things: makes the proposal and its review, and records or asks for the approval.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};

use ollm_protocol::units::iso;
use ollm_store::{Digest, TreeLimits};

use crate::approvable::Approvable;
use crate::approvals::{Approval, Standing, Term};
use crate::approver::{Choice, Question};
use crate::content_store::{ContentStoreError, StoredCopy};
use crate::context::TrustContext;
use crate::coverage::Coverage;
use crate::identity::{IdentifiedSource, Identity, KnownDefinition, StartRefusal};
use crate::review::{LONGEST_SHOWN, Review, ReviewFile, difference, files_in};
use crate::signature::ChangeError;
use crate::trust::Trust;

/// What a person is asked to approve.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The content that the approval will be bound to.
    pub identity: Identity,
    pub(crate) copy: Option<Arc<StoredCopy>>,
    files: Vec<PathBuf>,
    pub(crate) coverage: Arc<Coverage>,
    /// Whether a person accepts the uncovered parts.
    accepts_uncovered: bool,
}

impl Proposal {
    /// The copy of a file, for display.
    pub fn copy_of(&self, path: &Path) -> Option<PathBuf> {
        self.copy.as_ref()?.path_of(path)
    }

    /// The folder of the copy.
    pub fn copy_folder(&self) -> Option<&Path> {
        self.copy.as_ref().map(|copy| copy.folder.as_path())
    }

    /// Code that may run without being part of what is approved.
    pub fn uncovered(&self) -> &[String] {
        &self.coverage.uncovered
    }

    /// The same proposal, for a person who knows the uncovered parts and accepts them for good.
    pub fn accept_uncovered(self) -> Proposal {
        Proposal { accepts_uncovered: true, ..self }
    }
}

/// Why a proposal was not approved.
#[derive(Debug, thiserror::Error)]
pub enum ApproveError {
    /// It may run code that no approval can cover.
    #[error("{}", .0.join("; "))]
    Uncovered(Vec<String>),
    /// Approvals must be signed. Using up a temporary one would change the list without a person.
    #[error("an approval that does not last cannot be signed: each use would change the list")]
    Limited,
    /// The approvals were not changed.
    #[error(transparent)]
    Change(#[from] ChangeError),
}

/// An approval for one session of this process.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Grant {
    session: String,
    id: String,
    digest: Digest,
}

impl Trust {
    /// What a person would approve: the identity, and a copy of the files to look at. The approval covers the content
    /// of the copy, even if the files change meanwhile.
    pub fn propose<T: Approvable>(&self, thing: &T, context: &TrustContext<'_>) -> Result<Proposal, StartRefusal> {
        let found = self.identified(thing, &KnownDefinition::of(thing), context)?;
        self.owned(thing, context)?;
        Ok(self.proposal(found)?)
    }

    pub(crate) fn proposal(&self, found: IdentifiedSource) -> Result<Proposal, ContentStoreError> {
        let copy = self.copy(&found)?;
        let files = found.files.into_iter().map(|file| file.path).collect();
        Ok(Proposal { identity: found.identity, copy, files, coverage: found.coverage, accepts_uncovered: false })
    }

    /// Code that something may run without it being part of what is approved.
    pub fn uncovered<T: Approvable>(&self, thing: &T, context: &TrustContext<'_>) -> Result<Vec<String>, StartRefusal> {
        Ok(self.memory.coverage(thing, None, &thing.program(context)?, context)?.uncovered.clone())
    }

    /// The review of a proposal: its declaration, its files, and the changes since the last approval.
    pub fn review<T: Approvable>(&self, thing: &T, proposal: &Proposal) -> Review {
        let before = self.approval(thing).and_then(|approval| self.copies.folder(approval.copy.as_deref()?));
        let after = proposal.copy_folder();
        let mut room = LONGEST_SHOWN;
        let changes = before.zip(after).map(|(before, after)| difference(&before, after, &mut room));
        let (changes, mut unshown) = changes.filter(|(changes, _)| !changes.is_empty()).unzip();
        // If there are changes, the person saw the rest of the folder at the last approval.
        let copied: Vec<(PathBuf, PathBuf)> = match (thing.tree(), after) {
            (Some(_), Some(_)) if changes.is_some() => Vec::new(),
            (Some(_), Some(copy)) => {
                files_in(copy).into_iter().map(|place| (place.clone(), copy.join(place))).collect()
            }
            _ => proposal.files.iter().filter_map(|file| Some((file.clone(), proposal.copy_of(file)?))).collect(),
        };
        let mut files = Vec::new();
        for (place, copy) in copied {
            let file = ReviewFile::of(&place, &copy, &mut room);
            if file.text.is_none() {
                unshown.get_or_insert_default().push(copy);
            }
            files.push(file);
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
            unshown: unshown.unwrap_or_default(),
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

    /// The approval for a proposal, which [`Trust::approve_together`] records.
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
        if term != Term::Always && self.key().is_some() {
            return Err(ApproveError::Limited);
        }
        let approval = proposal.identity.approval(&thing.id(), term, context.user(), iso(self.now()));
        Ok(Approval { copy: proposal.copy.as_deref().and_then(name_of), ..approval })
    }

    /// Copies the files, and hashes them while copying, so that exactly the approved content runs.
    fn copy(&self, found: &IdentifiedSource) -> Result<Option<Arc<StoredCopy>>, ContentStoreError> {
        if let Some((root, digest)) = &found.tree {
            return self.copies.keep_tree(root, digest, TreeLimits::default()).map(|kept| Some(Arc::new(kept)));
        }
        let Some(base) = found.base() else { return Ok(None) };
        self.copies.keep(&base, &found.files).map(|kept| Some(Arc::new(kept)))
    }

    pub(crate) fn granted(&self, id: &str, identity: &Identity, session: Option<&str>) -> bool {
        session.is_some_and(|session| self.grants().contains(&grant(id, identity, session)))
    }

    /// Whether a person allowed this content for the rest of a session of this process.
    pub fn is_granted<T: Approvable>(&self, thing: &T, identity: &Identity) -> bool {
        self.grants().iter().any(|grant| grant.id == *thing.id() && grant.digest == identity.digest)
    }

    pub(crate) fn has_grant(&self, id: &str) -> bool {
        self.grants().iter().any(|grant| grant.id == id)
    }

    pub(crate) fn forget_grants(&self, of: impl Fn(&str) -> bool) {
        self.grants().retain(|grant| !of(&grant.id));
    }

    fn grants(&self) -> MutexGuard<'_, HashSet<Grant>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the person, if there is an approver, and remembers the answer for its term.
    pub(crate) fn ask<T: Approvable>(
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
            Choice::Once => self.confirm().is_ok(),
            Choice::Session => {
                if self.confirm().is_err() {
                    return false;
                }
                self.grants().extend(session.map(|session| grant(&thing.id(), &proposal.identity, session)));
                true
            }
            Choice::Always => {
                // The answer holds for this run even if it cannot be recorded; the person is then asked again. If a
                // signature is required, an unsigned answer does not count.
                self.approve(thing, proposal, Term::Always, context).is_ok() || self.key().is_none()
            }
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
