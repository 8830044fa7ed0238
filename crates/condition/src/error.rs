//! What can be wrong with a condition, when it is read and when it is asked, in words that name the place and the way
//! out.

use crate::spot::Spot;

use crate::{DEEPEST, LONGEST, STEPS};

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at {at}; {way_out}")]
pub struct ConditionError {
    /// Where it went wrong, in bytes from the start.
    pub offset: usize,
    /// The same place for people.
    pub at: Spot,
    /// What is wrong there.
    pub what: String,
    /// What was expected, or what to write instead.
    pub way_out: String,
}

/// Why a condition has no answer for an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at {at}; {}", fault.way_out())]
pub struct ConditionFault {
    /// The part of the condition that failed, in bytes from the start.
    pub offset: usize,
    /// The same place for people.
    pub at: Spot,
    /// What happened there.
    pub fault: Fault,
}

/// What can go wrong when a condition is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A map without the key that was asked for.
    #[error("there is no `{0}`")]
    NoKey(String),
    /// An index outside the list or text.
    #[error("index {index} is outside 0..{size}")]
    NoIndex {
        /// The index.
        index: String,
        /// How many elements there are.
        size: usize,
    },
    /// An operation that these types do not have.
    #[error("`{operation}` does not take {found}")]
    NoOverload {
        /// The operator or function.
        operation: &'static str,
        /// The types it was given.
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
        /// The type it should become.
        wanted: &'static str,
    },
    /// A pattern of `matches` that does not compile.
    #[error("{pattern} of `matches` does not compile: {reason}")]
    Pattern {
        /// The pattern, if it is written in the condition, shortened.
        pattern: String,
        /// What the compiler says.
        reason: String,
    },
    /// A map literal with the same key twice.
    #[error("the map has the key `{0}` twice")]
    DoubledKey(String),
    /// The answer is no boolean.
    #[error("the answer is a value of type {0}, not true or false")]
    NotBool(&'static str),
    /// A list or map the condition put together.
    #[error("the value is nested more than {DEEPEST} levels deep")]
    TooDeep,
    /// The condition needs too much work for this event.
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

/// The operations that take nothing but true or false.
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
