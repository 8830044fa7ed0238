//! The port to the person who is asked about things without approval.

use std::fmt;

use ollm_protocol::Remedy;

use crate::approvals::Approval;
use crate::identity::Identity;
use crate::review::Review;

/// The person who can be asked, before the event proceeds, whether something may run.
pub trait Approver: Send + Sync + fmt::Debug {
    /// Asks, and waits for the answer.
    fn ask(&self, question: &Question<'_>) -> Choice;
}

/// What the person is asked about.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Question<'a> {
    /// Its id.
    pub id: &'a str,
    /// The content that an approval would be bound to.
    pub identity: &'a Identity,
    /// Everything for the person to check, with the files as they would run.
    pub review: &'a Review,
    /// The approval of its earlier state.
    pub previous: Option<&'a Approval>,
    /// Whether it changed since it was approved.
    pub changed: bool,
    /// How a person approves it for good.
    pub remedy: &'a Remedy,
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
