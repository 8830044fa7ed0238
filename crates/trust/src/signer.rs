//! The port to the person's key, without which nothing is approved where approvals must be signed.

use std::fmt;

/// Signs a statement with a key that a person has unlocked.
pub type Sign = Box<dyn Fn(&[u8]) -> Result<String, SignError>>;

/// Somebody who has the key by which approvals are signed.
pub trait Signer: Send + Sync + fmt::Debug {
    /// Has the person unlock the key, and gives back a hand that signs with it, as minisign does.
    fn unlock(&self) -> Result<Sign, SignError>;
}

/// Why nothing was signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// There is nobody to ask for the passphrase.
    #[error("approvals must be signed with a passphrase (hooks.approvalKey, {0}), and there is no terminal to ask on")]
    Nobody(String),
    /// The person did not unlock the key.
    #[error("{0}")]
    Locked(String),
    /// The key cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// Another key than the one that counts signed.
    #[error("the key that signed is not the one of hooks.approvalKey ({0})")]
    OtherKey(String),
}
