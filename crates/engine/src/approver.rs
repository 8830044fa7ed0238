//! The port to the person who decides about hooks that nobody approved yet.

use std::fmt;

use ollm_protocol::Hook;
use ollm_trust::Approval;

use crate::trust::Identity;

/// Somebody who can be asked, before the event proceeds, whether a hook may run.
pub trait Approver: Send + Sync + fmt::Debug {
    /// Asks, and waits for the answer.
    fn ask(&self, question: &Question<'_>) -> Choice;
}

/// What the person is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The hook.
    pub hook: &'a Hook,
    /// What an approval would be bound to.
    pub identity: &'a Identity,
    /// The approval of what the hook was before.
    pub previous: Option<&'a Approval>,
    /// Whether it changed since it was approved.
    pub changed: bool,
}

/// What the person answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It does not run.
    No,
    /// It runs this time.
    Once,
    /// It runs in this session, as long as nothing of it changes.
    Session,
    /// It runs from now on, as long as nothing of it changes.
    Always,
}
