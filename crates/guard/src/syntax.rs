//! The shape of a shell script, as far as it decides which commands run and which files they write.
//!
//! Conditions and branches are not told apart: whatever could run is in here.

use std::{cell::OnceCell, rc::Rc};

/// Steps in the order they are written.
pub(crate) type List = Vec<Step>;

/// One pipeline and how the next one hangs on it.
#[derive(Debug)]
pub(crate) struct Step {
    /// The commands, each feeding the next.
    pub(crate) pipeline: Vec<Command>,
    /// What stands between this pipeline and the next.
    pub(crate) joint: Joint,
}

/// What stands between two pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joint {
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;` or a line end
    Then,
    /// `&`
    Background,
}

/// One command with its redirections.
#[derive(Debug)]
pub(crate) struct Command {
    /// What runs.
    pub(crate) body: Body,
    /// Where its input and output go.
    pub(crate) redirects: Vec<Redirect>,
}

/// What runs.
#[derive(Debug)]
pub(crate) enum Body {
    /// Assignments and words.
    Simple { assigns: Vec<Assign>, words: Vec<Word> },
    /// `{ … }`, `if`, `while`, `case`: words looked at, and lists that may run in this shell.
    Branches { words: Vec<Word>, lists: Vec<List> },
    /// `( … )`
    Subshell(List),
    /// `for` and `select`; without words it takes the positional parameters.
    For { name: String, words: Option<Vec<Word>>, list: List },
    /// A function and what it does when called.
    Function { name: String, body: Box<Command> },
}

/// `NAME=value`, `NAME+=value`, `NAME[i]=value` or `NAME=(…)`.
#[derive(Debug)]
pub(crate) struct Assign {
    /// The variable.
    pub(crate) name: String,
    /// The value, when it is one plain scalar.
    pub(crate) value: Option<Word>,
    /// Words whose value is not followed.
    pub(crate) others: Vec<Word>,
}

/// One redirection.
#[derive(Debug)]
pub(crate) enum Redirect {
    /// `>`, `>>`, `>|`, `<>`, `&>`, `>&`: the file named is opened for writing.
    Write(Word),
    /// `<`: the standard input comes from the file named.
    Read(Word),
    /// A here-string: text fed to the command.
    Text(Word),
    /// A here-document: its text stands below the line that names it, so it is filled in later.
    Document {
        /// The text.
        body: Rc<OnceCell<Word>>,
        /// Whether it is the standard input, and not some other descriptor.
        input: bool,
    },
    /// Another descriptor is read or copied.
    Other(Word),
}

/// One word before expansion.
pub(crate) type Word = Vec<Piece>;

/// A part of a word.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Unquoted text: wildcards, braces and `~` still count.
    Plain(String),
    /// Quoted text.
    Quoted(String),
    /// `$NAME`
    Variable { name: String, quoted: bool },
    /// `$(…)` or backticks.
    Output { list: List, quoted: bool },
    /// `<(…)` or `>(…)`
    Process(List),
    /// Any other expansion, with the words inside it.
    Opaque(Word),
}

/// The text of a word that is only unquoted text, as keywords are.
pub(crate) fn bare(word: &[Piece]) -> Option<&str> {
    match word {
        [Piece::Plain(text)] => Some(text),
        _ => None,
    }
}
