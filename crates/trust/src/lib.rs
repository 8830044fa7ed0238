//! What may run: which exact content a person approved, which files that covers, what they see before, and the copies it
//! runs from.
//!
//! Hooks, extensions and servers are [`Approvable`]. [`Trust`] compares what is there with what was approved, and alone
//! makes a [`Trusted`], without which nothing is started. It runs nothing and prints nothing, and reads neither
//! environment nor home.
//!
//! - [`Approvals`]: which exact content a person has approved.
//! - [`ContentStore`]: owner-only copies of approved content, named by their content, from which it runs.
//! - [`Coverage`]: the files that a command names, and what no approval can be bound to.
//! - [`ApprovalKey`], [`Signer`]: the signature without which, where a key is demanded, no approval counts.
//! - [`ProgramBox`]: what an approved program may do, by the permissions that it declares.
//! - [`Review`]: what a person sees before they approve.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod approvable;
mod approvals;
mod approvals_file;
mod approver;
mod change;
mod content_store;
mod context;
mod coverage;
mod extension;
#[cfg(test)]
mod fixture;
mod hook;
mod identity;
mod program_box;
mod proposal;
mod recall;
mod refusal;
mod review;
mod signature;
mod signer;
mod trust;

pub use approvable::{Approvable, Definition, Row};
pub use approvals::{Approval, Approvals, Standing, Term, approve, approve_all, claim, revoke};
pub use approver::{Approver, Choice, Question};
pub use content_store::{ContentStore, ContentStoreError, StoredCopy, StoredFile};
pub use context::TrustContext;
pub use coverage::{COPY_FOLDER, CommandLine, Coverage, CoverageError, Mentioned, fetches_packages};
pub use extension::{ExtensionFolder, extension_id, extension_keys};
pub use hook::{command_text, unusual_rows};
pub use identity::{Identity, Unready};
pub use program_box::{ProgramBox, is_of_system};
pub use proposal::{ApproveError, Proposal};
pub use refusal::{Refusal, RefusalReason, Untrusted};
pub use review::{Review, ReviewFile, changed_lines, files_in, review_row};
pub use signature::{ApprovalKey, ChangeError, ListTrouble, SignatureCheck, check_signature, is_signature};
pub use signer::{Sign, SignError, Signer};
pub use trust::{Clock, Trust, Trusted};
