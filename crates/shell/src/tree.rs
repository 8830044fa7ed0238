//! The tree of a shell script: which commands run, with which words, and which files they open.
//!
//! Conditions and branches are not distinguished: the tree contains everything that could run.

use std::cell::OnceCell;
use std::ops::{Deref, Range};
use std::rc::Rc;

/// Steps in the order they are written.
pub type List = Vec<Step>;

/// One pipeline, and the operator after it.
#[derive(Debug)]
pub struct Step {
    /// The commands; each writes to the next.
    pub pipeline: Vec<Command>,
    /// The operator between this pipeline and the next.
    pub joint: ListOperator,
}

/// An operator between two pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOperator {
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
pub struct Command {
    /// What runs.
    pub body: Body,
    /// Where its input and output go.
    pub redirects: Vec<Redirect>,
}

/// The body of a command.
#[derive(Debug)]
pub enum Body {
    /// Assignments and words.
    Simple {
        /// The assignments before the words.
        assigns: Vec<Assign>,
        /// The program and its arguments.
        words: Vec<Word>,
    },
    /// `{ … }`, `if`, `while`, `case`: the words they test, and lists that may run in this shell.
    Branches {
        /// The words they test.
        words: Vec<Word>,
        /// The lists that may run.
        lists: Vec<List>,
        /// Whether they may run repeatedly, as in `while`.
        repeats: bool,
    },
    /// `( … )`
    Subshell(List),
    /// `for` and `select`.
    For {
        /// The variable.
        name: String,
        /// Its values; without them it uses the positional parameters.
        words: Option<Vec<Word>>,
        /// The list that runs for each value.
        list: List,
    },
    /// A function and its body.
    Function {
        /// The name.
        name: String,
        /// Its body.
        body: Box<Command>,
    },
}

/// `NAME=value`, `NAME+=value`, `NAME[i]=value` or `NAME=(…)`.
#[derive(Debug)]
pub struct Assign {
    /// The variable.
    pub name: String,
    /// The value, when it is one plain scalar.
    pub value: Option<Word>,
    /// The other words in it: subscripts, elements of an array, text that is appended.
    pub others: Vec<Word>,
    /// Whether the other words are elements of an array and nothing else.
    pub elements: Option<Elements>,
}

/// What an assignment `NAME=(…)` does with the elements that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// `=`: it replaces them.
    All,
    /// `+=`: it adds to them.
    More,
}

/// One redirection.
#[derive(Debug)]
pub enum Redirect {
    /// `>`, `>>`, `>|`, `&>`: opens the named file for writing.
    Write {
        /// The file.
        file: Word,
        /// Whether the old content stays.
        appends: bool,
    },
    /// `<`: opens the named file for reading; with `<>` also for writing.
    Read {
        /// The file.
        file: Word,
        /// Whether it becomes the standard input instead of another descriptor.
        input: bool,
        /// Whether it is opened for writing too.
        writes: bool,
    },
    /// `<&` or `>&`: copies or closes another descriptor; with `>&` it may write a file.
    Duplicate {
        /// The descriptor or the file.
        target: Word,
        /// Whether it becomes the standard input.
        input: bool,
        /// Whether the target is a file opened for writing.
        writes: bool,
    },
    /// A here-string: text as input for the command.
    Text {
        /// The text.
        text: Word,
        /// Whether it is the standard input.
        input: bool,
    },
    /// A here-document: its text follows below the line that announces it, so the cell is filled later.
    Document {
        /// The text.
        body: Rc<OnceCell<Word>>,
        /// Whether it is the standard input.
        input: bool,
    },
}

impl Redirect {
    /// The word that names the file or holds the text.
    pub fn word(&self) -> Option<&Word> {
        match self {
            Redirect::Write { file: word, .. }
            | Redirect::Read { file: word, .. }
            | Redirect::Duplicate { target: word, .. }
            | Redirect::Text { text: word, .. } => Some(word),
            Redirect::Document { body, .. } => body.get(),
        }
    }
}

/// One word before expansion: its pieces, and its position in the text.
#[derive(Debug, Default)]
pub struct Word {
    /// The pieces, in order.
    pub pieces: Vec<Piece>,
    /// Its range of bytes in the text.
    pub span: Range<usize>,
}

impl Deref for Word {
    type Target = [Piece];

    fn deref(&self) -> &[Piece] {
        &self.pieces
    }
}

impl<'a> IntoIterator for &'a Word {
    type Item = &'a Piece;
    type IntoIter = std::slice::Iter<'a, Piece>;

    fn into_iter(self) -> Self::IntoIter {
        self.pieces.iter()
    }
}

/// A part of a word.
#[derive(Debug)]
pub enum Piece {
    /// Unquoted text, where wildcards, braces and `~` are special.
    Plain(String),
    /// Quoted text.
    Quoted(String),
    /// `$NAME` or `${NAME}`
    Variable {
        /// The name.
        name: String,
        /// Whether the value stays in one field.
        quoted: bool,
    },
    /// `${NAME operator word}`, or a parameter that is no variable, such as `$1` or `$@`.
    Parameter {
        /// The name; empty if it is an unusual one.
        name: String,
        /// The operator, such as `:-`; empty if there is none, or an unusual one.
        operator: &'static str,
        /// What follows the operator.
        word: Word,
        /// Whether the value stays in one field.
        quoted: bool,
    },
    /// `$(…)` or backticks.
    Output {
        /// What runs.
        list: List,
        /// Whether its output stays in one field.
        quoted: bool,
    },
    /// `<(…)` or `>(…)`
    Process {
        /// What runs.
        list: List,
        /// Whether the list prints what the command reads; otherwise it reads what the command writes.
        prints: bool,
    },
    /// `$((…))`, with the text and the expansions inside it.
    Arithmetic(Word),
    /// Any other expansion, with the pieces inside it.
    Opaque(Word),
    /// The hole with this index: a place in the text that a value replaces later.
    Hole(usize),
}

/// The text of a word that consists of unquoted text only, as keywords do.
pub fn bare(word: &[Piece]) -> Option<&str> {
    match word {
        [Piece::Plain(text)] => Some(text),
        _ => None,
    }
}
