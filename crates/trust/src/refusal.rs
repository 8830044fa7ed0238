//! Why something may not run, and what that means for the operation.

use crate::identity::Unready;

/// What happens when something that fits is not approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Untrusted {
    /// It is skipped, visibly.
    #[default]
    Skip,
    /// It is skipped, and the operation is blocked.
    Block,
}

/// Why something may not run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// In one word.
    pub reason: RefusalReason,
    /// For people, with the way out.
    pub detail: String,
}

/// Why something may not run, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// Nobody approved it.
    Untrusted,
    /// It changed since it was approved.
    Modified,
    /// Something of it is not there.
    Missing,
    /// It cannot be relied on: somebody else could change it, or it cannot be read.
    Unsafe,
}

impl Refusal {
    pub(crate) fn new(reason: RefusalReason, detail: impl Into<String>) -> Refusal {
        Refusal { reason, detail: detail.into() }
    }

    pub(crate) fn unready(why: &Unready) -> Refusal {
        let reason = if why.is_missing() { RefusalReason::Missing } else { RefusalReason::Unsafe };
        Refusal::new(reason, why.to_string())
    }

    pub(crate) fn untrusted_and(why: &Unready) -> Refusal {
        Refusal::new(RefusalReason::Untrusted, format!("not approved, and {why}"))
    }
}
