//! The errors of a condition: when it is parsed, and when it is evaluated. Messages name the place and what to do.

use crate::spot::Spot;

use crate::{DEEPEST, LONGEST, STEPS};

/// Why a text is not a valid condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at {at}; {way_out}")]
pub struct ConditionError {
    /// The place of the error, in bytes from the start.
    pub offset: usize,
    /// The same place as line and column.
    pub at: Spot,
    /// What is wrong there.
    pub what: String,
    /// What was expected, or what to write instead.
    pub way_out: String,
}

/// Why the evaluation of a condition failed for an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at {at}; {}", fault.way_out())]
pub struct ConditionFault {
    /// The part of the condition that failed, in bytes from the start.
    pub offset: usize,
    /// The same place as line and column.
    pub at: Spot,
    /// What happened there.
    pub fault: Fault,
}

/// What can go wrong when a condition is evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A map does not have the requested key.
    #[error("there is no `{0}`")]
    NoKey(String),
    /// An index outside the list or text.
    #[error("index {index} is outside 0..{size}")]
    NoIndex {
        /// The index.
        index: String,
        /// The number of elements.
        size: usize,
    },
    /// An operation that does not exist for these types.
    #[error("`{operation}` does not take {found}")]
    NoOverload {
        /// The operator or function.
        operation: &'static str,
        /// The types of its operands.
        found: String,
    },
    /// A result outside the range of its type.
    #[error("the result of `{0}` is out of range")]
    Overflow(&'static str),
    /// A division by zero.
    #[error("division by zero in `{0}`")]
    ByZero(&'static str),
    /// A value that cannot be converted.
    #[error("{value} is no {wanted}")]
    NoConversion {
        /// The value; of a text only its type.
        value: String,
        /// The type to convert to.
        wanted: &'static str,
    },
    /// A pattern of `matches` that does not compile.
    #[error("{pattern} of `matches` does not compile: {reason}")]
    Pattern {
        /// The pattern, shortened, if the condition contains it.
        pattern: String,
        /// The reason from the regex compiler.
        reason: String,
    },
    /// A map literal with the same key twice.
    #[error("the map has the key `{0}` twice")]
    DoubledKey(String),
    /// The result is not a boolean.
    #[error("the answer is a value of type {0}, not true or false")]
    NotBool(&'static str),
    /// A list or map of the condition is nested too deeply.
    #[error("the value is nested more than {DEEPEST} levels deep")]
    TooDeep,
    /// The evaluation exceeds its step limit.
    #[error("the condition needs more than {STEPS} steps")]
    Exhausted,
}

impl Fault {
    /// What the author of the condition can do.
    pub fn way_out(&self) -> &'static str {
        match self {
            Self::NoKey(_) => "ask `has(…)` first, as in `has(data.args) && …`",
            Self::NoIndex { .. } => "compare with `size(…)` first",
            Self::NoOverload { operation: ".", .. } => "only maps have fields: ask `type(…) == map` first",
            Self::NoOverload { operation, .. } if WANT_BOOL.contains(operation) => {
                "compare the value, as in `… == 'text'`"
            }
            Self::NoOverload { .. } => "convert with `int(…)`, `double(…)` or `string(…)`, or ask `type(…)` first",
            Self::Overflow(_) => "use smaller numbers, or `double(…)`",
            Self::ByZero(_) => "compare the divisor with 0 first",
            Self::NoConversion { .. } => "ask `matches(…)` or `type(…)` first",
            Self::Pattern { .. } => "mend the regular expression, or use `contains(…)`",
            Self::DoubledKey(_) => "keep one of the two entries",
            Self::NotBool(_) => "end it with a comparison, such as `… == 'text'`",
            Self::TooDeep => "build flatter lists and maps",
            Self::Exhausted => "look at less data, or do the work in the hook itself",
        }
    }
}

/// The operations that accept only booleans.
const WANT_BOOL: &[&str] = &["!", "&&", "||", "? :", "all", "exists", "exists_one", "filter", "map"];

/// A fault and the offset of the part that failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) at: usize,
    pub(crate) fault: Fault,
}

/// Builds errors with their place in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'t>(pub(crate) &'t str);

impl Text<'_> {
    pub(crate) fn error(self, offset: usize, what: impl Into<String>, way_out: impl Into<String>) -> ConditionError {
        ConditionError { offset, at: Spot::of(self.0, offset), what: what.into(), way_out: way_out.into() }
    }

    pub(crate) fn too_long(self) -> ConditionError {
        let what = format!("the condition has {} bytes and passes the limit of {LONGEST}", self.0.len());
        self.error(self.0.floor_char_boundary(LONGEST), what, "shorten it, or do the work in the hook itself")
    }

    pub(crate) fn fault(self, failure: Failure) -> ConditionFault {
        ConditionFault { offset: failure.at, at: Spot::of(self.0, failure.at), fault: failure.fault }
    }
}

/// A text in quotes, shortened for a message.
pub(crate) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("`{}{dots}`", short.escape_debug())
}
