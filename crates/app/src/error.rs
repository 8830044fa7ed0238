//! Errors of the application: a stable code that a program can act on, the message, and hints.

use std::fmt::Display;
use std::path::Path;

use ollm_catalog::Problem;
use ollm_protocol::Code;
use ollm_protocol::dialect::UnknownEvent;

/// An error for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct AppError {
    /// The code of the error; its class tells a program what to do about it.
    pub code: Code,
    /// What happened, to what.
    pub message: String,
    /// Hints on what to do, one line each.
    pub hints: Vec<String>,
    /// The place in a file that it is about, if there is one.
    pub problem: Option<Box<Problem>>,
}

impl AppError {
    /// An error without hints.
    pub fn new(code: Code, message: impl Into<String>) -> AppError {
        AppError { code, message: message.into(), hints: Vec::new(), problem: None }
    }

    /// An error for a request that makes no sense.
    pub fn usage(message: impl Into<String>) -> AppError {
        AppError::new(Code::Usage, message)
    }

    /// An error for a file that could not be changed; it keeps its content.
    pub(crate) fn unwritten(path: &Path, error: &dyn Display) -> AppError {
        AppError::new(Code::NotWritten, format!("{} was not changed: {error}", path.display()))
    }

    /// The error with one more hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> AppError {
        self.hints.push(hint.into());
        self
    }
}

/// An unknown event is an error wherever it is named.
impl From<UnknownEvent> for AppError {
    fn from(unknown: UnknownEvent) -> AppError {
        AppError::new(Code::UnknownEvent, unknown.to_string())
    }
}

/// A fatal problem.
impl From<&Problem> for AppError {
    fn from(problem: &Problem) -> AppError {
        AppError { problem: Some(Box::new(problem.clone())), ..AppError::new(problem.code, problem.sentence()) }
    }
}
