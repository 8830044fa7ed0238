//! How the list of approvals is changed: by a person, who signs the change where a key is demanded.

use std::io::ErrorKind;

use crate::approvable::Approvable;
use crate::approvals::{Approval, Approvals, edit, keep, put, remove, sign_anew};
use crate::proposal::ApproveError;
use crate::signature::{ApprovalKey, ChangeError, Seal, seen, signed};
use crate::signer::SignError;
use crate::trust::Trust;

/// What is signed where a yes is written nowhere; no list begins like this.
const PRESENCE: &[u8] = b"ollm: a person is present\n";

impl Trust {
    /// From now on an approval counts only if this key signed the list it is in. What earlier processes remembered of files
    /// does not count then: whoever can write that down could vouch for any content.
    pub fn demand_signature(&mut self, key: Option<ApprovalKey>) {
        if key.is_some() {
            self.forget_earlier();
        }
        self.approvals.demand(key);
    }

    /// The key that must have signed the list of approvals, if one must.
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

    /// Makes sure that a yes is the person's who has the key, where one is demanded.
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
            // A passphrase is not asked for to change nothing.
            return self.approvals.current().1.clone().map_or(Ok(0), |trouble| Err(trouble.into()));
        }
        // Where nobody approved anything, no lock is left beside a list that is not there.
        if std::fs::symlink_metadata(self.approvals.path()).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Ok(0);
        }
        let seal = self.seal_of_whole_list()?;
        edit(self.approvals.path(), seal.as_ref(), |entries| remove(entries, keys))
    }

    /// Withdraws every approval, also those of other programs and in a list that nobody signed; returns how many there
    /// were.
    pub fn withdraw_all(&self) -> Result<usize, ChangeError> {
        let seal = self.seal()?;
        sign_anew(self.approvals.path(), seal.as_ref(), |entries| std::mem::take(entries).len())
    }

    /// Signs the list with exactly these approvals, whoever put them into it: a person has looked at them. What came since
    /// goes.
    pub fn sign_all(&self, approvals: &Approvals) -> Result<(), ChangeError> {
        let seal = self.seal()?;
        sign_anew(self.approvals.path(), seal.as_ref(), |entries| keep(entries, approvals))
    }

    /// Has the person unlock the key for a change of a list that is as it was signed: what somebody else put into it must
    /// not be signed along.
    fn seal_of_whole_list(&self) -> Result<Option<Seal<'_>>, ChangeError> {
        if let Some(trouble) = self.key().and_then(|_| self.approvals.current().1.clone()) {
            return Err(trouble.into());
        }
        self.seal()
    }

    /// Has the person unlock the key, where one is demanded.
    fn seal(&self) -> Result<Option<Seal<'_>>, ChangeError> {
        let Some(key) = self.key() else { return Ok(None) };
        let signer = self.signer.as_ref().ok_or_else(|| SignError::Nobody(key.origin.clone()))?;
        Ok(Some(Seal { key, sign: signer.unlock()? }))
    }
}
