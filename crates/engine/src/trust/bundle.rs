//! An extension as a whole: one folder, one digest, one approval for everything in it.
//!
//! Each of its hooks has an entry of its own beside the one of the whole, because each also depends on the program that
//! runs it; all of them are written in one step.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use ollm_protocol::Hook;
use ollm_store::{Digest, TreeLimits, UpdateError};
use ollm_trust::{Approval, ContentStoreError, Standing, StoredCopy, Term};

use super::identity::of_tree;
use super::{Proposal, Trust, Unready, iso, name_of, source};
use crate::environment::Environment;

/// An extension as it is now, with a copy to look at; what is approved is what stands in the copy.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub root: PathBuf,
    /// The digest of everything in the folder.
    pub digest: Digest,
    copy: StoredCopy,
}

impl Bundle {
    /// The copy of its folder.
    pub fn copy(&self) -> &Path {
        &self.copy.folder
    }
}

impl Trust {
    /// The digest of an extension's folder with everything in it; of one that is held, the one that was approved.
    pub fn tree_digest(&self, root: &Path) -> Result<Digest, Unready> {
        if let Some(approved) = self.held(root) {
            return Ok(approved);
        }
        of_tree(root, &self.known.digests).map(|(_, digest)| digest)
    }

    /// What a person would approve.
    pub fn bundle(&self, name: &str, root: &Path) -> Result<Bundle, Unready> {
        let digest = self.tree_digest(root)?;
        let copy = self.vault.keep_tree(root, &digest, TreeLimits::default())?;
        Ok(Bundle { name: name.to_owned(), root: root.to_owned(), digest, copy })
    }

    /// Whether an extension was approved as it is now.
    pub fn bundle_standing(&self, name: &str, root: &Path, digest: &Digest) -> Standing {
        let (approvals, _) = &*self.ledger.current();
        approvals.check(&root.display().to_string(), &id(name), digest, digest)
    }

    /// From now on takes the folders of these extensions, and of no others, for what they were when they were approved:
    /// what can no longer be understood goes on as the copy that was approved. One that nobody approved stays as it is.
    pub fn hold<'a>(&self, extensions: impl IntoIterator<Item = (&'a str, &'a Path)>) {
        let (approvals, _) = &*self.ledger.current();
        let approved = |(name, root): (&str, &Path)| {
            let approval = approvals.find(&root.display().to_string(), &id(name))?;
            Some((root.to_owned(), approval.digest))
        };
        let held = extensions.into_iter().filter_map(approved).collect();
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    pub(super) fn held(&self, root: &Path) -> Option<Digest> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).get(root).copied()
    }

    /// The copy of an extension as it was when it was last approved.
    pub fn approved_bundle(&self, name: &str, root: &Path) -> Option<PathBuf> {
        let (approvals, _) = &*self.ledger.current();
        let approval = approvals.find(&root.display().to_string(), &id(name))?;
        self.vault.folder(approval.copy.as_deref()?)
    }

    /// The copy of the extension in a folder as it was when it was last approved, whatever its name is.
    pub fn approved_folder(&self, root: &Path) -> Option<PathBuf> {
        let (approvals, _) = &*self.ledger.current();
        let source = root.display().to_string();
        let is_whole = |approval: &&&Approval| approval.source == source && approval.id.starts_with(EXTENSION);
        let list = approvals.list();
        let approval = list.iter().find(is_whole)?;
        self.vault.folder(approval.copy.as_deref()?)
    }

    /// What an approval of one of its hooks would be bound to; refused if the folder is by now another one than the copy,
    /// because then nobody has seen what would be approved.
    pub fn propose_in(&self, bundle: &Bundle, hook: &Hook, environment: &Environment) -> Result<Proposal, Unready> {
        let proposal = self.propose(hook, environment)?;
        match &proposal.copy {
            Some(copy) if copy.folder == bundle.copy.folder => Ok(proposal),
            _ => Err(ContentStoreError::Changed { path: bundle.root.clone() }.into()),
        }
    }

    /// Records a person's approval of an extension and of all its hooks, in one step.
    pub fn approve_bundle(
        &self,
        bundle: &Bundle,
        hooks: &[(Arc<Hook>, Proposal)],
        environment: &Environment,
    ) -> Result<(), UpdateError> {
        let whole = Approval {
            source: bundle.root.display().to_string(),
            id: id(&bundle.name),
            hash: bundle.digest,
            digest: bundle.digest,
            approved_at: iso(self.now()),
            approved_by: environment.user(),
            term: Term::Always,
            copy: name_of(&bundle.copy),
            program: None,
        };
        let each = hooks.iter().map(|(hook, proposal)| self.approval_of(hook, proposal, Term::Always, environment));
        ollm_trust::approve_all(self.ledger.path(), std::iter::once(whole).chain(each).collect())
    }

    /// Withdraws the approval of an extension and of its hooks, in one step: killed in between, either all of it is
    /// approved or nothing. False when there was none.
    pub fn revoke_bundle(&self, name: &str, root: &Path, hooks: &[Arc<Hook>]) -> Result<bool, UpdateError> {
        self.grants().retain(|grant| !hooks.iter().any(|hook| grant.id == hook.id()));
        let whole = (root.display().to_string(), id(name));
        let each = hooks.iter().map(|hook| (source(hook), hook.id().to_owned()));
        let keys: Vec<(String, String)> = std::iter::once(whole).chain(each).collect();
        ollm_trust::revoke_many(self.ledger.path(), &keys).map(|removed| removed > 0)
    }
}

/// How the id of a whole extension begins.
const EXTENSION: &str = "extension:";

/// What the approval of an extension is filed under, beside its folder.
fn id(name: &str) -> String {
    format!("{EXTENSION}{name}")
}
