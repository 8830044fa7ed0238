//! Files that survive crashes and concurrent writers; digests, secrets, redaction.
//!
//! A leaf crate: it knows nothing of hooks, reads neither environment nor home, prints nothing and reads no clock.
//! Paths, times and secrets come in as values.
//!
//! - [`write_atomic`], [`read_bounded`], [`update`], [`rewrite`]: files that survive two writers and a kill at any
//!   moment. Our own files are owner-only; files that people edit themselves keep their mode.
//! - [`versioned`]: JSON documents with a `version`; a document that cannot be understood is never overwritten.
//! - [`Digest`], [`Hasher`], [`FileDigests`]: SHA-256 over bytes, without collisions by concatenation.
//! - [`check_owner`], [`Owners`]: whether another user could change a file.
//! - [`Claims`]: work that several processes are asked for at the same time, done by the first of them.
//! - [`usage`]: how often something happened lately, counted exactly across processes.
//! - [`Redactor`], [`Hidden`], [`looks_secret`]: hide known secrets and well-known token shapes in all output.
//! - [`Secrets`], [`Keyring`]: secrets that a person stored with us, in the system's keyring or in an owner-only file.
//! - [`RotatingLog`]: bounded, owner-only files of lines that many processes append to at the same time.
//! - [`escape_for_people`], [`escape_for_json`], [`cut`]: makes the text of other programs safe to look at.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod claim;
mod digest;
mod file;
mod keyring;
mod owner;
mod plain_path;
mod redact;
mod rotating_log;
mod secrets;
mod switches;
pub mod usage;
mod variables;
pub mod versioned;
mod visible;

/// The building blocks of reading, hashing and replacing files, for stores that keep more than one file.
pub mod raw {
    pub use crate::digest::digest_reader;
    pub use crate::file::{
        Lock, failed, kind_of, open_own, open_regular, random_name, read_regular, read_stamped, sync_folder,
        write_unsynced,
    };
}

pub use claim::{Claim, Claims, Turn};
pub use digest::{Digest, DigestError, FileDigests, Hasher, StatKey, TreeLimits, digest_bytes, digest_tree, tree};
pub use file::{FileError, is_file_at, lock_file, read_bounded, replace_through_links, rewrite, update, write_atomic};
pub use keyring::{Keyring, KeyringError};
pub use owner::{Owners, Unsafe, Why, check_owner, current_gid, current_uid};
pub use plain_path::plain_path;
pub use redact::{Hidden, Redactor, Stream, hide_assignments, looks_secret};
pub use rotating_log::{Bounds, Follower, Lines, RotatingLog};
pub use secrets::{SecretError, SecretPlace, Secrets, StoredSecret, drop_secrets, keep_secret};
pub use switches::{Switch, Switches, set_switches};
pub use variables::is_shared_variable;
pub use versioned::{Loaded, Trouble, UpdateError};
pub use visible::{cut, escape_for_json, escape_for_people, one_line, without_hidden};
