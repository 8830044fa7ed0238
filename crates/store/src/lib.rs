//! The files of ollm: versioned, locked, atomic; digests, approvals, redaction.
//!
//! A leaf: it knows nothing of hooks, reads neither environment nor home, prints nothing and asks no clock. Paths,
//! times and secrets come in as values.
//!
//! - [`write_atomic`], [`read_bounded`], [`update`]: owner-only files that survive two writers and a kill at any moment.
//! - [`versioned`]: JSON documents with a `version`; what cannot be understood is never overwritten.
//! - [`Digest`], [`Hasher`], [`FileDigests`]: SHA-256 over bytes, without collisions by concatenation.
//! - [`Approvals`]: which exact content a person has approved.
//! - [`Redactor`], [`looks_secret`]: known secrets and well-known token shapes hidden on every way out.
//! - [`escape_for_people`], [`cut`]: other programs' text made safe to look at.

#![forbid(unsafe_code)]

mod approvals;
mod digest;
mod file;
mod redact;
pub mod versioned;
mod visible;

pub use approvals::{Approval, Approvals, Standing, approve, approve_all, revoke, revoke_all};
pub use digest::{Digest, DigestError, FileDigests, Hasher, StatKey, TreeLimits, digest_bytes};
pub use file::{FileError, read_bounded, update, write_atomic};
pub use redact::{Redactor, Stream, looks_secret};
pub use versioned::{Loaded, Trouble, UpdateError};
pub use visible::{cut, escape_for_people};
