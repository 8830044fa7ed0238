//! Errors in scripts with holes. Messages name the place and what to do.

use std::fmt;

/// Why values cannot be put into a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// The hole is in a place where its value could not stay plain data.
    #[error("`{hole}` at {at} stands {position}; {}", position.way_out())]
    Position {
        /// The name of the hole.
        hole: String,
        /// Its position.
        at: Spot,
        /// The kind of the place.
        position: Position,
    },
    /// The script uses a construct that shells read differently, so no hole in it can be placed safely.
    #[error(
        "{construct} at {at} is not read alike by every `sh`, so the script cannot hold {{{{variables}}}}; \
         write it in plain POSIX form, or read the event's JSON from stdin in a script file"
    )]
    Unclear {
        /// The construct.
        construct: &'static str,
        /// Its position.
        at: Spot,
    },
    /// A quote, brace or parenthesis is never closed.
    #[error("{opened} at {at} is never closed, so the script cannot hold {{{{variables}}}}")]
    Unclosed {
        /// What was opened.
        opened: &'static str,
        /// Where it was opened.
        at: Spot,
    },
    /// Quotes, braces and parentheses are nested too deeply.
    #[error("the script nests too deeply at {at}; move it into a script file")]
    TooDeep {
        /// The position where the limit was exceeded.
        at: Spot,
    },
    /// The script is too long.
    #[error("the command has {size} bytes, more than 65536; move it into a script file")]
    TooLong {
        /// Its size in bytes.
        size: usize,
    },
    /// The script holds a NUL byte.
    #[error("the command holds a NUL byte, which no program can be given")]
    Nul,
}

/// A position in a text, counted from 1 in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// A place in a shell script where a value cannot stay plain data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Position {
    /// `$(( … ))`, or a variable used there.
    Arithmetic,
    /// `` ` … ` ``.
    Backticks,
    /// The body or the end word of `<<`.
    HereDocument,
    /// `\{{x}}`.
    Escaped,
    /// `${{x}}`.
    AfterDollar,
    /// The name or the operator of `${…}`.
    Parameter,
    /// `${name=…}` outside double quotes.
    UnquotedDefault,
    /// `${…}` within the pattern of another.
    NestedPattern,
    /// The target of `>&` or `<&`, which bash expands twice.
    Descriptor,
    /// The program of a command.
    Command,
    /// The script file that this program runs.
    Script(String),
    /// The program text of this interpreter.
    Code(String),
    /// An argument this interpreter could take for an option that carries code.
    Option(String),
    /// The standard input of this interpreter, which reads its program there.
    Stdin(String),
    /// A variable name for this builtin, or for a loop.
    Name(String),
    /// The format word of `printf`.
    Format,
    /// The value of an environment variable that decides what runs.
    Environment(String),
}

impl Position {
    /// What the author of the template can do instead.
    pub fn way_out(&self) -> &'static str {
        match self {
            Self::Command | Self::Script(_) | Self::Environment(_) => {
                "the value would choose what is run: name the program, and pass the value as an argument"
            }
            Self::Code(_) | Self::Stdin(_) => {
                "the value would be run as code: pass it as an argument after the program text, \
                 or read the event's JSON from stdin"
            }
            Self::Option(_) => "put `--` before it",
            Self::Format => "write `printf '%s'` and pass the value as the next argument",
            Self::UnquotedDefault => "put double quotes around the `${…}`",
            Self::Escaped | Self::AfterDollar => "put the variable in quotes of its own, or take the sign away",
            Self::Arithmetic
            | Self::Backticks
            | Self::HereDocument
            | Self::Descriptor
            | Self::Parameter
            | Self::NestedPattern
            | Self::Name(_) => {
                "its value cannot be kept as plain data there: read the event's JSON from stdin, \
                 or pass the value as an argument"
            }
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arithmetic => f.write_str("inside arithmetic `$((…))`"),
            Self::Backticks => f.write_str("inside backticks"),
            Self::HereDocument => f.write_str("inside a here-document"),
            Self::Descriptor => f.write_str("as the target of `>&` or `<&`"),
            Self::Escaped => f.write_str("directly after a backslash"),
            Self::AfterDollar => f.write_str("directly after `$`"),
            Self::Parameter => f.write_str("in the name of a `${…}`"),
            Self::UnquotedDefault => f.write_str("in an unquoted `${…=…}`"),
            Self::NestedPattern => f.write_str("in a `${…}` within the pattern of another"),
            Self::Command => f.write_str("as the command itself"),
            Self::Script(program) => write!(f, "as the script that `{program}` runs"),
            Self::Code(program) => write!(f, "inside program text for `{program}`"),
            Self::Option(program) => write!(f, "where `{program}` could read it as an option that carries code"),
            Self::Stdin(program) => {
                write!(f, "before `{program}`, which reads its program from stdin")
            }
            Self::Name(builtin) => write!(f, "as a variable name for `{builtin}`"),
            Self::Format => f.write_str("as the format of `printf`"),
            Self::Environment(name) => write!(f, "in the value of `{name}`"),
        }
    }
}

impl Spot {
    pub(super) fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self { line: before.matches('\n').count() + 1, column: line.chars().count() + 1 }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 1 {
            write!(f, "line {}, ", self.line)?;
        }
        write!(f, "column {}", self.column)
    }
}
