//! Signs and checks the list of approvals. A program that can write the file, but does not know the passphrase, cannot
//! approve anything.
//!
//! One minisign signature covers the serial and every approval that counts. The serial grows with every change. The
//! highest known serial is stored beside the file, so that an older list cannot be restored. The key signs that serial
//! file, too. Without it no list counts, so deleting it does not help. This crate checks signatures; the
//! [`Signer`](crate::Signer) makes them.

use std::path::{Path, PathBuf};

use minisign_verify::{PublicKey, Signature};
use ollm_protocol::Remedy;
use ollm_store::versioned::{self, Loaded};
use ollm_store::{Trouble, UpdateError};
use serde_json::{Value, json};

use crate::approvals::{Approval, term_text};
use crate::signer::{Sign, SignError};

const VERSION: u32 = 1;
const MAX_BYTES: u64 = 64 * 1024;

/// The key that must have signed the list of approvals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalKey {
    /// The public key, as minisign writes it.
    pub line: String,
    /// Where it is set, for people.
    pub origin: String,
    /// Whether the machine's policy sets it.
    pub by_policy: bool,
    /// The lowest serial that a list may have.
    pub floor: u64,
}

/// Why the approvals of a list do not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListTrouble {
    /// The list, or the file with the serial, is unusable.
    #[error(transparent)]
    File(#[from] Trouble),
    /// It has no signature.
    #[error("{} is not signed, and hooks.approvalKey ({origin}) demands it", path.display())]
    Unsigned {
        /// The list.
        path: PathBuf,
        /// Where the key is set.
        origin: String,
    },
    /// The list differs from the signed one, or another key signed it.
    #[error("{} is not what the key of hooks.approvalKey ({origin}) signed", path.display())]
    Forged {
        /// The list.
        path: PathBuf,
        /// Where the key is set.
        origin: String,
    },
    /// The list is signed, but a newer one is known.
    #[error("{} is an older list that was put back: it has serial {serial}, and {seen} was seen already", path.display())]
    Replayed {
        /// The list.
        path: PathBuf,
        /// Its serial.
        serial: u64,
        /// The highest serial that was seen.
        seen: u64,
    },
    /// The list is signed, but no signed serial says which list was the last.
    #[error("{} may be an older list: the key of hooks.approvalKey ({origin}) did not sign {}", path.display(), memory.display())]
    Unremembered {
        /// The list.
        path: PathBuf,
        /// The file that remembers the serial, which is missing or was changed.
        memory: PathBuf,
        /// Where the key is set.
        origin: String,
    },
    /// The list is signed, but the machine's policy demands a newer one.
    #[error("{} has serial {serial}, and hooks.approvalSerial of the machine's policy is {floor}", path.display())]
    BelowFloor {
        /// The list.
        path: PathBuf,
        /// Its serial.
        serial: u64,
        /// The lowest serial that counts.
        floor: u64,
    },
}

impl ListTrouble {
    /// What a person can do about it, unless the message already says so.
    pub fn remedy(&self) -> Option<Remedy> {
        (!matches!(self, ListTrouble::File(_))).then_some(Remedy::SignApprovals)
    }
}

/// Why the list of approvals was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The file could not be read or written.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// The list has no valid signature. Entries of another writer must not get our signature.
    #[error(transparent)]
    List(#[from] ListTrouble),
    /// The change was not signed.
    #[error(transparent)]
    Sign(#[from] SignError),
}

impl From<Trouble> for ChangeError {
    fn from(trouble: Trouble) -> ChangeError {
        ChangeError::Update(trouble.into())
    }
}

/// The key and the function to sign a changed list with.
pub(crate) struct Seal<'a> {
    pub(crate) key: &'a ApprovalKey,
    pub(crate) sign: Sign,
}

impl Seal<'_> {
    /// Adds the next serial and the signature to a document. Returns the signed serial to remember.
    pub(crate) fn put_on(
        &self,
        path: &Path,
        document: &mut Value,
        counting: &[&Approval],
    ) -> Result<SignedSerial, ChangeError> {
        let serial = serial_of(document).max(seen(path)?).max(self.key.floor).saturating_add(1);
        let signature = signed(self.key, &self.sign, &canonical(serial, counting))?;
        let memory = signed(self.key, &self.sign, &last_serial(serial))?;
        if let Some(fields) = document.as_object_mut() {
            fields.insert("serial".to_owned(), serial.into());
            fields.insert("signature".to_owned(), signature.into());
        }
        Ok(SignedSerial { serial, signature: memory })
    }
}

/// The serial of a signed list, with a signature of its own.
pub(crate) struct SignedSerial {
    serial: u64,
    signature: String,
}

/// Signs a statement, and checks that the right key did it.
pub(crate) fn signed(key: &ApprovalKey, sign: &Sign, statement: &[u8]) -> Result<String, SignError> {
    let signature = sign(statement)?;
    if is_signed(key, statement, &signature) { Ok(signature) } else { Err(SignError::OtherKey(key.origin.clone())) }
}

/// Checks that a list is the newest one that the key signed. `counting` are the approvals that would count.
pub(crate) fn check(
    path: &Path,
    document: &Value,
    counting: &[&Approval],
    key: &ApprovalKey,
) -> Result<u64, ListTrouble> {
    let serial = serial_of(document);
    let (path, origin) = (path.to_owned(), key.origin.clone());
    let Some(signature) = document.get("signature").and_then(Value::as_str) else {
        // Without a signature, only an empty list is valid.
        return if counting.is_empty() { Ok(serial) } else { Err(ListTrouble::Unsigned { path, origin }) };
    };
    if !is_signed(key, &canonical(serial, counting), signature) {
        return Err(ListTrouble::Forged { path, origin });
    }
    let known = recall(&path)?;
    let Some(signed) = known.as_ref().and_then(|known| signed_serial(known, key)) else {
        return Err(ListTrouble::Unremembered { memory: memory(&path), path, origin });
    };
    let seen = known.as_ref().map_or(signed, |known| serial_of(known).max(signed));
    if serial < seen {
        return Err(ListTrouble::Replayed { path, serial, seen });
    }
    if serial < key.floor {
        return Err(ListTrouble::BelowFloor { path, serial, floor: key.floor });
    }
    if serial > seen {
        // If the serial cannot be stored, the next process sees it in the list again.
        let _ = update_memory(&path, serial, None);
    }
    Ok(serial)
}

pub(crate) fn serial_of(document: &Value) -> u64 {
    document.get("serial").and_then(Value::as_u64).unwrap_or_default()
}

/// The result of checking a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureCheck {
    /// The key made it, over exactly these bytes.
    Good,
    /// It names this key but does not fit, or it is not a signature.
    Bad,
    /// Another key made it.
    OtherKey,
}

/// Checks a minisign signature over bytes against a public key, both as minisign writes them.
pub fn check_signature(key: &str, bytes: &[u8], signature: &str) -> SignatureCheck {
    let (Ok(key), Ok(signature)) = (PublicKey::from_base64(key), Signature::decode(signature)) else {
        return SignatureCheck::Bad;
    };
    match key.verify(bytes, &signature, false) {
        Ok(()) => SignatureCheck::Good,
        Err(minisign_verify::Error::UnexpectedKeyId) => SignatureCheck::OtherKey,
        Err(_) => SignatureCheck::Bad,
    }
}

/// Whether a text is a signature in minisign's form, over any content.
pub fn is_signature(text: &str) -> bool {
    Signature::decode(text).is_ok()
}

fn is_signed(key: &ApprovalKey, statement: &[u8], signature: &str) -> bool {
    check_signature(&key.line, statement, signature) == SignatureCheck::Good
}

/// The signed text: one line for the list and one for each approval, with every field in a fixed place.
fn canonical(serial: u64, counting: &[&Approval]) -> Vec<u8> {
    let mut text = format!("ollm approvals, version {VERSION}, serial {serial}\n");
    for one in counting {
        let (hash, digest) = (one.hash.to_string(), one.digest.to_string());
        let fields = json!([
            one.source,
            one.id,
            hash,
            digest,
            one.approved_at,
            one.approved_by,
            term_text(&one.term),
            one.copy,
            one.program
        ]);
        text.push_str(&fields.to_string());
        text.push('\n');
    }
    text.into_bytes()
}

/// The file that stores the highest known serial of a list.
fn memory(list: &Path) -> PathBuf {
    list.parent().unwrap_or(Path::new("")).join("state/approval-serial.json")
}

/// The signed text for the serial alone.
fn last_serial(serial: u64) -> Vec<u8> {
    format!("ollm approvals, version {VERSION}, last serial {serial}\n").into_bytes()
}

/// The stored serial data of a list.
fn recall(list: &Path) -> Result<Option<Value>, Trouble> {
    match versioned::load(&memory(list), VERSION, MAX_BYTES) {
        Loaded::Missing => Ok(None),
        Loaded::Current(document) => Ok(Some(document)),
        Loaded::Refused(trouble) => Err(trouble),
    }
}

/// The signed serial in the stored data.
fn signed_serial(known: &Value, key: &ApprovalKey) -> Option<u64> {
    let serial = known.get("signed").and_then(Value::as_u64)?;
    let signature = known.get("signature").and_then(Value::as_str)?;
    is_signed(key, &last_serial(serial), signature).then_some(serial)
}

/// The highest known serial of a list.
pub(crate) fn seen(list: &Path) -> Result<u64, Trouble> {
    Ok(recall(list)?.as_ref().map(serial_of).unwrap_or_default())
}

/// Stores the serial of a list that was just signed.
pub(crate) fn remember(list: &Path, signed: &SignedSerial) -> Result<(), UpdateError> {
    update_memory(list, signed.serial, Some(&signed.signature))
}

fn update_memory(list: &Path, serial: u64, signature: Option<&str>) -> Result<(), UpdateError> {
    versioned::update(&memory(list), VERSION, MAX_BYTES, |document| {
        let mut known = document.unwrap_or_else(|| json!({"version": VERSION}));
        let is_new = serial > serial_of(&known) || signature.is_some();
        if let Some(fields) = known.as_object_mut() {
            fields.insert("serial".to_owned(), serial.into());
            if let Some(signature) = signature {
                fields.extend([("signed".to_owned(), serial.into()), ("signature".to_owned(), signature.into())]);
            }
        }
        Ok((is_new.then_some(known), ()))
    })
}

#[cfg(test)]
mod tests;
