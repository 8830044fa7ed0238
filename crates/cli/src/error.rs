//! What the door says when it cannot do what was asked: a kind, which is the exit code, and the way out.

use std::fmt;

use ollm_app::AppError;
use ollm_catalog::SnippetError;
use ollm_protocol::dialect::UnknownEvent;
use ollm_protocol::{Code, CodeClass};
use ollm_store::one_line;
use serde_json::{Value, json};

/// Exit codes, as documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
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
    /// Somebody interrupted.
    Interrupted = 130,
    /// Somebody ended us.
    Terminated = 143,
}

/// The operation goes on.
pub(crate) const OK: u8 = 0;
/// Something was found that should not be: a failed test, a bad file.
pub(crate) const FINDING: u8 = 1;
/// The operation is blocked.
pub(crate) const BLOCKED: u8 = 2;
/// Somebody interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// What to do about a command line that makes no sense, where nothing better is known.
const SEE_HELP: &str = "`ollm --help` shows what there is";

/// A failure for people.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// The stable code, which `ollm help CODE` explains; a signal has none.
    pub(crate) code: Option<Code>,
    pub(crate) message: String,
    /// What to do about it, one line each.
    pub(crate) hints: Vec<String>,
    /// The same for a terminal, in several styled lines, where there is that.
    pub(crate) styled: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure {
            kind: code.class().into(),
            code: Some(code),
            message: message.into(),
            hints: Vec::new(),
            styled: None,
        }
    }

    /// Somebody ended what we did.
    pub(crate) fn of_signal(kind: Kind) -> Failure {
        Failure { kind, code: None, message: "interrupted".to_owned(), hints: Vec::new(), styled: None }
    }

    /// Says what to do about it; where to look for help in general is said only where nothing else is.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hints.retain(|known| known != SEE_HELP);
        self.hints.push(hint.into());
        self
    }

    /// What a program reads with `--json` in place of the answer.
    pub(crate) fn document(&self, exit: u8) -> Value {
        json!({"exit": exit, "error": self.to_json()})
    }

    /// The same as the last line of a stream.
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

/// The whole of it as lines, for people.
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

impl From<CodeClass> for Kind {
    fn from(class: CodeClass) -> Kind {
        match class {
            CodeClass::Configuration => Kind::Configuration,
            CodeClass::Trust => Kind::Untrusted,
            CodeClass::Usage => Kind::Usage,
            CodeClass::Environment => Kind::Environment,
        }
    }
}

impl From<AppError> for Failure {
    fn from(error: AppError) -> Failure {
        Failure { hints: error.hints, ..Failure::new(error.code, error.message) }
    }
}

impl From<SnippetError> for Failure {
    fn from(error: SnippetError) -> Failure {
        let failure = Failure::usage(error.message);
        error.hint.into_iter().fold(failure, Failure::hint)
    }
}

/// An event that nobody knows cannot be read, wherever it is named.
impl From<UnknownEvent> for Failure {
    fn from(unknown: UnknownEvent) -> Failure {
        Failure::new(Code::UnknownEvent, unknown.to_string())
            .hint("`ollm schema` lists the events; an event of your own is `custom:NAME`")
    }
}
