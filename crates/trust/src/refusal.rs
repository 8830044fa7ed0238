//! Why something may not run, and how that affects the operation.

use crate::identity::StartRefusal;

/// What happens to the operation if a fitting hook is not approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UntrustedPolicy {
    /// The hook is skipped, visibly.
    #[default]
    Skip,
    /// It is skipped, and the operation is blocked.
    Block,
}

/// Why something may not run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The reason as a category.
    pub reason: RefusalReason,
    /// The text for people, with the remedy.
    pub detail: String,
}

/// The categories of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// It has no approval.
    Untrusted,
    /// It changed since it was approved.
    Modified,
    /// A part of it does not exist.
    Missing,
    /// It is unsafe: another user could change it, or it cannot be read.
    Unsafe,
}

impl Refusal {
    pub(crate) fn new(reason: RefusalReason, detail: impl Into<String>) -> Refusal {
        Refusal { reason, detail: detail.into() }
    }

    pub(crate) fn unready(why: &StartRefusal) -> Refusal {
        let reason = if why.is_missing() { RefusalReason::Missing } else { RefusalReason::Unsafe };
        Refusal::new(reason, why.to_string())
    }

    pub(crate) fn untrusted_and(why: &StartRefusal) -> Refusal {
        Refusal::new(RefusalReason::Untrusted, format!("not approved, and {why}"))
    }
}
