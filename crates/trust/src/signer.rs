//! The port to the person's key. If approvals must be signed, nothing is approved without it.

use std::fmt;

/// Signs a statement with a key that a person has unlocked.
pub type Sign = Box<dyn Fn(&[u8]) -> Result<String, SignError>>;

/// The port to the key by which approvals are signed.
pub trait Signer: Send + Sync + fmt::Debug {
    /// Lets the person unlock the key, and returns a function that signs with it, as minisign does.
    fn unlock(&self) -> Result<Sign, SignError>;
}

/// Why no signature was made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// There is no person to ask for the passphrase.
    #[error("approvals must be signed with a passphrase (hooks.approvalKey, {0}), and there is no terminal to ask on")]
    Nobody(String),
    /// The person did not unlock the key.
    #[error("{0}")]
    Locked(String),
    /// The key cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// The signature is by another key than the required one.
    #[error("the key that signed is not the one of hooks.approvalKey ({0})")]
    OtherKey(String),
}
