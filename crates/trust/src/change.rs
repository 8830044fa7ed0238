//! Changes the list of approvals on behalf of a person. If a key is required, the person signs the change.

use std::io::ErrorKind;

use crate::approvable::Approvable;
use crate::approvals::{Approval, Approvals, edit, keep, put, remove, sign_anew};
use crate::proposal::ApproveError;
use crate::signature::{ApprovalKey, ChangeError, Seal, seen, signed};
use crate::signer::SignError;
use crate::trust::Trust;

/// The statement that a person signs for an approval that is not written to the list. No list begins like this.
const PRESENCE: &[u8] = b"ollm: a person is present\n";

impl Trust {
    /// From now on, an approval counts only if this key signed its list. The digests that earlier processes remembered
    /// no longer count: a process that can write them could vouch for any content.
    pub fn demand_signature(&mut self, key: Option<ApprovalKey>) {
        if key.is_some() {
            self.forget_earlier();
        }
        self.approvals.demand(key);
    }

    /// The key that must have signed the list of approvals; `None` if no signature is required.
    pub fn key(&self) -> Option<&ApprovalKey> {
        self.approvals.key()
    }

    /// The approvals that count.
    pub fn counting(&self) -> Approvals {
        self.approvals.current().0.clone()
    }

    /// The highest serial of a signed list that was seen.
    pub fn seen_serial(&self) -> Result<u64, ChangeError> {
        Ok(seen(self.approvals.path())?)
    }

    /// Makes sure that the consent comes from the key's owner, if a key is required.
    pub fn confirm(&self) -> Result<(), SignError> {
        let Some(key) = self.key() else { return Ok(()) };
        let signer = self.signer.as_ref().ok_or_else(|| SignError::Nobody(key.origin.clone()))?;
        signed(key, &signer.unlock()?, PRESENCE).map(drop)
    }

    /// Records several approvals in one step: all of them or none.
    pub fn approve_together(&self, approvals: impl IntoIterator<Item = Approval>) -> Result<(), ApproveError> {
        let approvals: Vec<Approval> = approvals.into_iter().collect();
        let seal = self.seal_of_whole_list()?;
        Ok(edit(self.approvals.path(), seal.as_ref(), |entries| put(entries, approvals))?)
    }

    /// Withdraws an approval; false when there was none.
    pub fn revoke<T: Approvable>(&self, thing: &T) -> Result<bool, ChangeError> {
        self.withdraw(&[(thing.source(), thing.id().into_owned())]).map(|removed| removed > 0)
    }

    /// Withdraws approvals, each named by its source and id, in one step, and returns how many there were.
    pub fn withdraw(&self, keys: &[(String, String)]) -> Result<usize, ChangeError> {
        self.forget_grants(|id| keys.iter().any(|(_, key)| key == id));
        let known = self.counting();
        if self.key().is_some() && !keys.iter().any(|(source, id)| known.find(source, id).is_some()) {
            // The person need not type a passphrase if nothing changes.
            return self.approvals.current().1.clone().map_or(Ok(0), |trouble| Err(trouble.into()));
        }
        // If the list does not exist, no lock file is left beside it.
        if std::fs::symlink_metadata(self.approvals.path()).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Ok(0);
        }
        let seal = self.seal_of_whole_list()?;
        edit(self.approvals.path(), seal.as_ref(), |entries| remove(entries, keys))
    }

    /// Withdraws every approval, including those of other programs and of an unsigned list. Returns how many there
    /// were.
    pub fn withdraw_all(&self) -> Result<usize, ChangeError> {
        let seal = self.seal()?;
        sign_anew(self.approvals.path(), seal.as_ref(), |entries| std::mem::take(entries).len())
    }

    /// Signs the list with exactly these approvals, from any writer, after a person has checked them. Removes entries
    /// that were added later.
    pub fn sign_all(&self, approvals: &Approvals) -> Result<(), ChangeError> {
        let seal = self.seal()?;
        sign_anew(self.approvals.path(), seal.as_ref(), |entries| keep(entries, approvals))
    }

    /// Lets the person unlock the key to change a list with a valid signature. Entries of another writer must not get
    /// our signature.
    fn seal_of_whole_list(&self) -> Result<Option<Seal<'_>>, ChangeError> {
        if let Some(trouble) = self.key().and_then(|_| self.approvals.current().1.clone()) {
            return Err(trouble.into());
        }
        self.seal()
    }

    /// Lets the person unlock the key, if one is required.
    fn seal(&self) -> Result<Option<Seal<'_>>, ChangeError> {
        let Some(key) = self.key() else { return Ok(None) };
        let signer = self.signer.as_ref().ok_or_else(|| SignError::Nobody(key.origin.clone()))?;
        Ok(Some(Seal { key, sign: signer.unlock()? }))
    }
}
