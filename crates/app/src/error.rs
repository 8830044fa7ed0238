//! Why the application cannot do what was asked: a kind that a program can act on, the message, and ways out.

use std::fmt::Display;
use std::path::Path;

use ollm_protocol::dialect::UnknownEvent;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration, or an event, cannot be read.
    Configuration,
    /// Something is not approved.
    Untrusted,
    /// Something outside does not work: a missing program, a permission, a full disk.
    Environment,
    /// What was asked for makes no sense.
    Usage,
}

/// A failure for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct AppError {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// What happened, to what.
    pub message: String,
    /// What to do about it, one line each.
    pub hints: Vec<String>,
}

impl AppError {
    /// A failure without a way out yet.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> AppError {
        AppError { kind, message: message.into(), hints: Vec::new() }
    }

    /// What was asked for makes no sense.
    pub fn usage(message: impl Into<String>) -> AppError {
        AppError::new(ErrorKind::Usage, message)
    }

    /// A file that could not be changed stays as it was.
    pub(crate) fn unwritten(path: &Path, error: &dyn Display) -> AppError {
        AppError::new(ErrorKind::Environment, format!("{} was not changed: {error}", path.display()))
    }

    /// The same with a way out.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> AppError {
        self.hints.push(hint.into());
        self
    }
}

/// An unknown event cannot be read, wherever it is named.
impl From<UnknownEvent> for AppError {
    fn from(unknown: UnknownEvent) -> AppError {
        AppError::new(ErrorKind::Configuration, unknown.to_string())
    }
}
