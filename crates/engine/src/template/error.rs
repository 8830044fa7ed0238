//! Errors and warnings of templates; each message names the variable and the remedy.

use ollm_condition::Spot;
use ollm_shell::template::PlaceError;

/// Why a template was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// A variable stands where its value could become code, or the script cannot hold variables.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The value holds a NUL byte, which arguments and environment variables cannot carry.
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

/// A problem with a template that works all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateWarning {
    /// The scope has no such variable.
    #[error("unknown variable `{variable}`: it is empty here")]
    Unknown {
        /// The variable's path.
        variable: String,
    },
    /// Braces without a plain path were left unchanged.
    #[error("`{text}` at {at} is no variable and stays as written")]
    Literal {
        /// The braces, shortened.
        text: String,
        /// Where they stand.
        at: Spot,
    },
}
