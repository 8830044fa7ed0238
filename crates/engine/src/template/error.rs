//! What can go wrong when a template is filled in, in words that name the variable and the way out.

use ollm_condition::Spot;
use ollm_shell::template::PlaceError;

/// Why a template was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// A variable stands where its value could become code, or the script is no text to put variables into.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The value holds a NUL byte, which no argument or environment variable can carry.
    #[error(
        "the value of `{variable}` holds a NUL byte, which no argument can carry; read the event's JSON from stdin"
    )]
    Nul {
        /// The variable's path.
        variable: String,
    },
    /// The value is longer than one argument or environment variable may be.
    #[error(
        "the value of `{variable}` has {size} bytes, more than one argument can carry (128 KiB); \
         read the event's JSON from stdin"
    )]
    TooLong {
        /// The variable's path.
        variable: String,
        /// The value's size in bytes.
        size: usize,
    },
}

/// What deserves a word, though the template works.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateWarning {
    /// The scope has no such variable.
    #[error("unknown variable `{variable}`: it is empty here")]
    Unknown {
        /// The variable's path.
        variable: String,
    },
    /// Braces that hold no plain path were left as they stand.
    #[error("`{text}` at {at} is no variable and stays as it is")]
    Literal {
        /// The braces, shortened.
        text: String,
        /// Where they stand.
        at: Spot,
    },
}
