//! What may run: which exact content a person approved, and the copies it runs from.
//!
//! It runs nothing and prints nothing, and reads neither environment nor home.
//!
//! - [`Approvals`]: which exact content a person has approved.
//! - [`ContentStore`]: owner-only copies of approved content, named by their content, from which it runs.

#![forbid(unsafe_code)]

mod approvals;
mod content_store;

pub use approvals::{
    Approval, Approvals, Standing, Term, approve, approve_all, claim, revoke, revoke_all, revoke_many,
};
pub use content_store::{ContentStore, ContentStoreError, StoredCopy, StoredFile};
