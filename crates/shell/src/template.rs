//! Scripts with holes: finds where a value may stand in shell text without ever becoming part of it.
//!
//! The script is parsed once to learn the quoting of every hole. A reference to an environment variable fills the hole,
//! quoted for that place ([`Quoting::reference`]). Two kinds of places are refused: those where the shell would
//! interpret the value (arithmetic, here-documents), and those where a program would run it (`eval`, `sh -c`, `awk`).
//! The list of such programs covers the known ones; it proves nothing about other programs.
//!
//! If the script has a hole, text that `sh` implementations read differently is refused too. A wrong guess about the
//! end of a quote would turn the next value into code. A script without holes is not checked.

mod command;
mod error;

use std::collections::BTreeMap;
use std::ops::Range;

use crate::quote::single_quoted;
use crate::read::{Context, ParseError, parse_with_holes};
use crate::tree::{self, Body, List, Piece, Redirect, Word};
use crate::variables::program_variable;
use command::Command;
pub use error::{PlaceError, Position, Spot};

pub use crate::read::Quoting;

/// The longest script that may have holes.
const LONGEST: usize = 64 << 10;

/// How often a script with loops or functions is searched, until no further variable is found that holds a value.
const MOST_ROUNDS: usize = 8;

/// Replaces text in an argument that only the shell knows.
const HOLE: char = '\u{fffc}';

/// A part of a text that a value replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Its range of bytes.
    pub span: Range<usize>,
    /// Its name in messages.
    pub name: String,
}

impl Quoting {
    /// The text that refers to an environment variable in a place with this quoting.
    pub fn reference(self, name: &str) -> String {
        match self {
            Quoting::None | Quoting::Pattern => format!("\"${{{name}}}\""),
            Quoting::Single => format!("'\"${{{name}}}\"'"),
            Quoting::Double => format!("${{{name}}}"),
        }
    }
}

/// The quoting of each hole of a script; `None` for a hole in a comment. The holes come in the order of the text.
///
/// ```
/// use ollm_shell::template::{Hole, Quoting, place};
/// let hole = |span| Hole { span, name: "X".to_owned() };
/// assert_eq!(place("echo X 'a X'", &[hole(5..6), hole(10..11)]).unwrap(), [Some(Quoting::None), Some(Quoting::Single)]);
/// assert!(place("eval X", &[hole(5..6)]).is_err());
/// ```
pub fn place(script: &str, holes: &[Hole]) -> Result<Vec<Option<Quoting>>, PlaceError> {
    if script.len() > LONGEST {
        return Err(PlaceError::TooLong { size: script.len() });
    }
    if script.contains('\0') {
        return Err(PlaceError::Nul);
    }
    if holes.is_empty() {
        return Ok(Vec::new());
    }
    let spans: Vec<Range<usize>> = holes.iter().map(|hole| hole.span.clone()).collect();
    let (list, findings) = parse_with_holes(script, &spans);
    let spot = |at: usize| Spot::of(script, at);
    let refuse = |Refusal { hole, position }: Refusal| {
        let (name, start) = holes.get(hole).map(|hole| (hole.name.clone(), hole.span.start)).unwrap_or_default();
        PlaceError::Position { hole: name, at: spot(start), position }
    };
    for (hole, context) in findings.contexts.iter().enumerate() {
        if let Some(position) = context.and_then(misplaced) {
            return Err(refuse(Refusal { hole, position }));
        }
    }
    // Reports the first problem in the text; later ones may only follow from it.
    let unclear = findings.unclear.filter(|(_, at)| list.as_ref().err().is_none_or(|error| *at <= error.at()));
    if let Some((construct, at)) = unclear {
        return Err(PlaceError::Unclear { construct, at: spot(at) });
    }
    let list = list.map_err(|error| match error {
        ParseError::TooDeep { at } => PlaceError::TooDeep { at: spot(at) },
        ParseError::Unclosed { opened, at } => PlaceError::Unclosed { opened, at: spot(at) },
        ParseError::Syntax { construct, at } => PlaceError::Unclear { construct, at: spot(at) },
    })?;
    judge(&list).map_err(|objection| match objection {
        Objection::Refused(refusal) => refuse(refusal),
        Objection::Unclear(construct, at) => PlaceError::Unclear { construct, at: spot(at) },
    })?;
    let quoting = |(context, hole): (&Option<Context>, &Hole)| match context {
        Some(Context::Word(quoting)) => Ok(Some(*quoting)),
        Some(Context::Comment) => Ok(None),
        _ => Err(PlaceError::Unclear { construct: "what surrounds a variable", at: spot(hole.span.start) }),
    };
    findings.contexts.iter().zip(holes).map(quoting).collect()
}

/// Refuses arguments of a program that would run a value as code. The rules are those for a shell line with these
/// words.
pub fn check_words(words: &[&str], holes: impl Fn(&str) -> Vec<Hole>) -> Result<(), PlaceError> {
    let line: Vec<String> = words.iter().map(|word| single_quoted(word)).collect();
    let line = line.join(" ");
    place(&line, &holes(&line)).map(drop)
}

/// A hole, and why it is refused.
#[derive(Debug)]
struct Refusal {
    hole: usize,
    position: Position,
}

/// Why a script cannot be filled.
enum Objection {
    Refused(Refusal),
    /// A construct that shells read differently, and its offset.
    Unclear(&'static str, usize),
}

impl From<Refusal> for Objection {
    fn from(refusal: Refusal) -> Objection {
        Objection::Refused(refusal)
    }
}

fn misplaced(context: Context) -> Option<Position> {
    Some(match context {
        Context::Word(_) | Context::Comment => return None,
        Context::Arithmetic => Position::Arithmetic,
        Context::Backticks => Position::Backticks,
        Context::HereDocument => Position::HereDocument,
        Context::Escaped => Position::Escaped,
        Context::AfterDollar => Position::AfterDollar,
        Context::ParameterName => Position::Parameter,
        Context::UnquotedDefault => Position::UnquotedDefault,
        Context::NestedPattern => Position::NestedPattern,
        Context::LoopName => Position::Name("for".to_owned()),
    })
}

/// Follows values through the script, repeatedly while more variables turn out to hold one. A loop or a function may
/// use a variable that is set only later in the text.
fn judge(list: &List) -> Result<(), Objection> {
    let mut flow = Flow::default();
    for _ in 0..MOST_ROUNDS {
        let before = flow.tainted.len();
        flow.uses.clear();
        flow.list(list)?;
        if !flow.repeats || flow.tainted.len() == before {
            return Ok(());
        }
    }
    Err(Objection::Unclear("a chain of variables in a loop", 0))
}

/// Where values are, while the script is searched in the order of its text.
#[derive(Default)]
struct Flow {
    /// Every use of a hole so far, direct or through a shell variable.
    uses: Vec<usize>,
    /// Shell variables that hold a value, each with its hole.
    tainted: BTreeMap<String, usize>,
    /// Whether some text may run again after later text.
    repeats: bool,
}

impl Flow {
    fn list(&mut self, list: &List) -> Result<(), Objection> {
        list.iter().flat_map(|step| &step.pipeline).try_for_each(|command| self.command(command))
    }

    fn command(&mut self, command: &tree::Command) -> Result<(), Objection> {
        if let Body::Simple { assigns, words } = &command.body {
            for assign in assigns {
                for word in assign.value.iter().chain(&assign.others) {
                    let hole = self.argument(word)?.hole;
                    self.assign(&assign.name, hole)?;
                }
            }
            return self.simple(words, &command.redirects);
        }
        // Commands inside a compound command read its input.
        self.redirects(&command.redirects)?;
        match &command.body {
            Body::Simple { .. } => {}
            Body::Branches { words, lists, repeats } => {
                self.repeats |= repeats;
                words.iter().try_for_each(|word| self.argument(word).map(drop))?;
                lists.iter().try_for_each(|list| self.list(list))?;
            }
            Body::Subshell(list) => self.list(list)?,
            Body::For { name, words, list } => {
                self.repeats = true;
                for word in words.iter().flatten() {
                    let hole = self.argument(word)?.hole;
                    self.assign(name, hole)?;
                }
                self.list(list)?;
            }
            Body::Function { body, .. } => {
                self.repeats = true;
                self.command(body)?;
            }
        }
        Ok(())
    }

    fn simple(&mut self, words: &[Word], redirects: &[Redirect]) -> Result<(), Objection> {
        let mut command = self.redirects(redirects)?;
        for word in words {
            let argument = self.argument(word)?;
            command.words.push(argument);
        }
        if let Some(construct) = command.redefines() {
            let at = words.first().map(|word| word.span.start).unwrap_or_default();
            return Err(Objection::Unclear(construct, at));
        }
        command::check(&command, self.uses.last().copied())?;
        // Some shells keep the last argument in `$_`.
        if let Some(hole) = command.words.iter().find_map(|word| word.hole) {
            self.tainted.entry("_".to_owned()).or_insert(hole);
        }
        for word in command.declarations() {
            if let Some(name) = word.assigned() {
                self.assign(name, word.hole)?;
            }
        }
        Ok(())
    }

    /// The standard input of a command, by its redirections.
    fn redirects(&mut self, redirects: &[Redirect]) -> Result<Command, Objection> {
        let mut command = Command::default();
        for redirect in redirects {
            let hole = redirect.word().map(|word| self.argument(word)).transpose()?.and_then(|word| word.hole);
            match (redirect, hole) {
                (Redirect::Duplicate { .. }, Some(hole)) => {
                    return Err(Refusal { hole, position: Position::Descriptor }.into());
                }
                (
                    Redirect::Read { input: true, .. }
                    | Redirect::Text { input: true, .. }
                    | Redirect::Document { input: true, .. },
                    hole,
                ) => {
                    command.input = hole.is_none();
                    command.input_hole = hole;
                }
                _ => {}
            }
        }
        Ok(command)
    }

    fn assign(&mut self, name: &str, hole: Option<usize>) -> Result<(), Refusal> {
        let Some(hole) = hole else { return Ok(()) };
        if program_variable(name).is_some() {
            return Err(Refusal { hole, position: Position::Environment(name.to_owned()) });
        }
        self.tainted.entry(name.to_owned()).or_insert(hole);
        Ok(())
    }

    /// A word as the program would get it, as far as that is known.
    fn argument(&mut self, word: &Word) -> Result<Argument, Objection> {
        let mut argument = Argument { plain: true, ..Argument::default() };
        for piece in word {
            argument.plain &= matches!(piece, Piece::Plain(_));
            match piece {
                Piece::Plain(text) => argument.text.push_str(text),
                Piece::Quoted(text) => {
                    argument.quoted = true;
                    argument.text.push_str(text);
                }
                Piece::Hole(hole) => self.expand(Some(*hole), &mut argument),
                Piece::Variable { name, .. } => self.reference(name, &mut argument),
                Piece::Parameter { name, word, .. } => {
                    argument.splat |= name == "@";
                    self.reference(name, &mut argument);
                    let inner = self.argument(word)?.hole;
                    argument.hole = argument.hole.or(inner);
                }
                Piece::Output { list, .. } | Piece::Process { list, .. } => {
                    let before = self.uses.len();
                    self.list(list)?;
                    let hole = self.uses.get(before).copied();
                    self.expand(hole, &mut argument);
                }
                Piece::Arithmetic(word) => {
                    self.arithmetic(word)?;
                    self.expand(None, &mut argument);
                }
                Piece::Opaque(word) => {
                    let hole = self.argument(word)?.hole;
                    self.expand(hole, &mut argument);
                }
            }
        }
        // The author is responsible for the script's own expansions; here they count as possibly empty.
        if argument.hole.is_none() {
            argument.text.retain(|next| next != HOLE);
        }
        if let Some(Piece::Plain(text)) = word.first() {
            argument.name = text.split_once('=').map(|(name, _)| name).filter(|name| is_name(name)).map(str::to_owned);
        }
        Ok(argument)
    }

    fn expand(&mut self, hole: Option<usize>, argument: &mut Argument) {
        argument.text.push(HOLE);
        self.uses.extend(hole);
        argument.hole = argument.hole.or(hole);
    }

    /// Notes the expansion of a shell variable, which may hold a value.
    fn reference(&mut self, name: &str, argument: &mut Argument) {
        let hole = self.tainted.get(name).copied();
        self.expand(hole, argument);
    }

    /// In arithmetic the shell would evaluate a value, even of a variable that is only named.
    fn arithmetic(&mut self, word: &Word) -> Result<(), Objection> {
        let before = self.uses.len();
        self.argument(word)?;
        let texts = word.iter().filter_map(|piece| if let Piece::Quoted(text) = piece { Some(text) } else { None });
        let is_part = |next: char| next.is_ascii_alphanumeric() || next == '_';
        let mut names = texts.flat_map(|text| text.split(|next| !is_part(next)));
        let operand = names.find_map(|name| self.tainted.get(name));
        match operand.or(self.uses.get(before)) {
            Some(&hole) => Err(Refusal { hole, position: Position::Arithmetic }.into()),
            None => Ok(()),
        }
    }
}

/// One word of a command.
#[derive(Debug, Clone, Default)]
struct Argument {
    /// The word without its quotes; if an expansion brings a value, a [`HOLE`] stands for every expansion.
    text: String,
    /// Nothing in it is quoted or expanded.
    plain: bool,
    /// Some of it is quoted.
    quoted: bool,
    /// It expands `$@`, which leaves nothing without parameters, even inside quotes.
    splat: bool,
    /// The first hole whose value it contains.
    hole: Option<usize>,
    /// The variable that it assigns, if it is an assignment.
    name: Option<String>,
}

impl Argument {
    /// Whether the word may disappear in the shell's expansion.
    fn vanishes(&self) -> bool {
        self.text.is_empty() && !self.plain && (self.splat || !self.quoted)
    }

    fn assigned(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|next| next.is_ascii_alphanumeric() || next == '_')
}

#[cfg(test)]
mod tests;
