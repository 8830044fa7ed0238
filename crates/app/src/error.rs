//! Why the application cannot do what was asked: a stable code that a program can act on, the message, and ways out.

use std::fmt::Display;
use std::path::Path;

use ollm_catalog::Problem;
use ollm_protocol::Code;
use ollm_protocol::dialect::UnknownEvent;

/// A failure for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct AppError {
    /// What kind of failure it is; its class says what a program can do about it.
    pub code: Code,
    /// What happened, to what.
    pub message: String,
    /// What to do about it, one line each.
    pub hints: Vec<String>,
}

impl AppError {
    /// A failure without a way out yet.
    pub fn new(code: Code, message: impl Into<String>) -> AppError {
        AppError { code, message: message.into(), hints: Vec::new() }
    }

    /// What was asked for makes no sense.
    pub fn usage(message: impl Into<String>) -> AppError {
        AppError::new(Code::Usage, message)
    }

    /// A file that could not be changed stays as it was.
    pub(crate) fn unwritten(path: &Path, error: &dyn Display) -> AppError {
        AppError::new(Code::NotWritten, format!("{} was not changed: {error}", path.display()))
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
        AppError::new(Code::UnknownEvent, unknown.to_string())
    }
}

/// A problem that stops us.
impl From<&Problem> for AppError {
    fn from(problem: &Problem) -> AppError {
        AppError::new(problem.code, problem.sentence())
    }
}
