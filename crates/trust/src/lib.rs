//! Decides what may run: knows the content that a person approved, the files an approval covers, the review that a
//! person sees, and the copies that run.
//!
//! Hooks, extensions and servers are [`Approvable`]. [`Trust`] compares the present content with the approved content.
//! Only [`Trust`] makes a [`Trusted`], and nothing starts without one. The crate runs nothing, prints nothing, and
//! reads neither environment nor home.
//!
//! - [`Approvals`]: the exact content that a person has approved.
//! - [`ContentStore`]: owner-only copies of approved content, named by their content, from which it runs.
//! - [`Coverage`]: the files that a command names, and the parts that no approval can cover.
//! - [`ApprovalKey`], [`Signer`]: the signature that an approval needs, if a key is required.
//! - [`ProgramBox`]: what an approved program may do, by the permissions that it declares.
//! - [`Review`]: the texts and files that a person sees before they approve.

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
mod declared_path;
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
pub use coverage::{COPY_FOLDER, CommandLine, Coverage, CoverageError, MentionedFiles, fetches_packages};
pub use extension::{ExtensionFolder, extension_id, extension_keys};
pub use hook::{command_text, unusual_rows};
pub use identity::{Identity, StartRefusal};
pub use program_box::{DEVICES, ProgramBox, is_of_system};
pub use proposal::{ApproveError, Proposal};
pub use refusal::{Refusal, RefusalReason, UntrustedPolicy};
pub use review::{Review, ReviewFile, changed_lines, files_in, review_row};
pub use signature::{ApprovalKey, ChangeError, ListTrouble, SignatureCheck, check_signature, is_signature};
pub use signer::{Sign, SignError, Signer};
pub use trust::{Clock, Trust, Trusted};
