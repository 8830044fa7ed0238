//! The failures of the program: a kind that gives the exit code, the message and the hints.

use std::fmt;

use ollm_app::AppError;
use ollm_catalog::{Problem, SnippetError};
use ollm_protocol::dialect::UnknownEvent;
use ollm_protocol::{Code, CodeClass};
use ollm_store::one_line;
use serde_json::{Value, json};

/// Exit codes, as documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The configuration, or an event, cannot be read.
    Configuration = 3,
    /// Something is not approved.
    Untrusted = 4,
    /// Something outside does not work: a missing program, a permission, a full disk.
    Environment = 5,
    /// The command line makes no sense.
    Usage = 64,
    /// The terminal is gone.
    HungUp = 129,
    /// The person interrupted (SIGINT).
    Interrupted = 130,
    /// A signal ended us (SIGTERM).
    Terminated = 143,
}

/// The operation goes on.
pub(crate) const OK: u8 = 0;
/// A check found something, such as a failed test or a bad file.
pub(crate) const FINDING: u8 = 1;
/// The operation is blocked.
pub(crate) const BLOCKED: u8 = 2;
/// The person interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// The hint for a wrong command line, if there is no better one.
const SEE_HELP: &str = "`ollm --help` shows what there is";

/// A failure for people.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    /// The stable code, which `ollm help CODE` explains; a failure by a signal has none.
    pub(crate) code: Option<Code>,
    pub(crate) message: String,
    /// Hints on what to do, one line each.
    pub(crate) hints: Vec<String>,
    /// The message for a terminal in several styled lines, if there is one.
    pub(crate) styled: Option<String>,
    /// The place in a text that it is about, if there is one; a terminal shows it.
    pub(crate) problem: Option<Box<Problem>>,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure {
            kind: code.class().into(),
            code: Some(code),
            message: message.into(),
            hints: Vec::new(),
            styled: None,
            problem: None,
        }
    }

    /// A signal ended the work.
    pub(crate) fn of_signal(kind: ErrorKind) -> Failure {
        Failure { kind, code: None, message: "interrupted".to_owned(), hints: Vec::new(), styled: None, problem: None }
    }

    /// Adds a hint; it replaces the general hint to the help.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.retain(|known| known != SEE_HELP);
        self.hints.push(hint.into());
        self
    }

    /// The JSON object that a program reads with `--json` in place of the answer.
    pub(crate) fn document(&self, exit: u8) -> Value {
        json!({"exit": exit, "error": self.to_json()})
    }

    /// The JSON object as the last line of a stream.
    pub(crate) fn line(&self, exit: u8) -> Value {
        json!({"type": "error", "exit": exit, "error": self.to_json()})
    }

    /// The failure for programs.
    pub(crate) fn to_json(&self) -> Value {
        json!({"code": self.code.map(Code::id), "message": self.message, "hints": self.hints})
    }

    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Code::Usage, message).hint(SEE_HELP)
    }
}

/// The message with its hints as lines, for people.
impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(styled) = &self.styled {
            formatter.write_str(styled)?;
        } else {
            self.code.map_or(Ok(()), |code| write!(formatter, "error[{code}]: "))?;
            writeln!(formatter, "{}", one_line(&self.message))?;
        }
        self.hints.iter().try_for_each(|hint| writeln!(formatter, "  hint: {}", one_line(hint)))
    }
}

impl From<CodeClass> for ErrorKind {
    fn from(class: CodeClass) -> ErrorKind {
        match class {
            CodeClass::Configuration => ErrorKind::Configuration,
            CodeClass::Trust => ErrorKind::Untrusted,
            CodeClass::Usage => ErrorKind::Usage,
            CodeClass::Environment => ErrorKind::Environment,
        }
    }
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Failure {
        Failure { hints: error.hints, problem: error.problem, ..Failure::new(error.code, error.message) }
    }
}

impl From<SnippetError> for Failure {
    fn from(error: SnippetError) -> Failure {
        let failure = Failure::usage(error.message);
        error.hint.into_iter().fold(failure, Failure::hint)
    }
}

/// An unknown event is an error wherever it is named.
impl From<UnknownEvent> for Failure {
    fn from(unknown: UnknownEvent) -> Failure {
        Failure::new(Code::UnknownEvent, unknown.to_string())
            .hint("`ollm schema` lists the events; an event of your own is `custom:NAME`")
    }
}
