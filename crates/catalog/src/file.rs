//! One file: reading it, parsing it, and telling its problems with their places.

use std::{ops::Range, path::Path};

use ollm_protocol::{Code, Remedy};
use ollm_store::raw::read_stamped;
use ollm_store::{FileError, Redactor};

use crate::load::Stamp;
use crate::node::{Cursor, Node, Part, Spot};
use crate::problem::{Problem, Severity};

mod json;
mod lines;
mod toml;
mod yaml;

pub(crate) use json::loose;
pub use json::{TrailingCommas, json_value};
use lines::Lines;
pub(crate) use lines::Position;
pub(crate) use toml::to_json as toml_value;

/// Problems of one file beyond this number are only counted.
const MOST_PROBLEMS: usize = 100;

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// JSON, in which comments are let pass.
    Json,
    /// JSON of another program, in which a comma may also stand before a closing bracket.
    LooseJson,
    /// YAML.
    Yaml,
    /// TOML of another program, which is only read.
    Toml,
    /// One of the two: what begins with a bracket or a comment of JSON is JSON.
    Either,
}

impl Syntax {
    /// How a file of this name is written.
    pub fn of(path: &Path) -> Syntax {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => Syntax::Json,
            Some("yaml" | "yml") => Syntax::Yaml,
            _ => Syntax::Either,
        }
    }

    /// How a file of another agent is written, by its name.
    pub(crate) fn of_agent(path: &Path) -> Syntax {
        if path.extension().is_some_and(|extension| extension == "toml") { Syntax::Toml } else { Syntax::LooseJson }
    }

    /// How this text is written: JSON or YAML.
    pub(crate) fn settle(self, text: &str) -> Syntax {
        match self {
            Syntax::Either if text.trim_start().starts_with(['{', '[', '/']) || text.trim().is_empty() => Syntax::Json,
            Syntax::Either => Syntax::Yaml,
            known => known,
        }
    }
}

/// A text as a tree, and where the parts of the tree stand in it.
#[derive(Debug)]
pub(crate) struct ParsedText {
    pub(crate) node: Node,
    mark: Mark,
}

impl ParsedText {
    /// What an empty text means.
    pub(crate) fn nothing() -> ParsedText {
        let (value, inside) = (Position::default(), Vec::new());
        ParsedText { node: Node::Null, mark: Mark { key: None, value, letters: None, inside } }
    }

    /// The position of a spot.
    pub(crate) fn locate(&self, spot: &Spot) -> Position {
        self.mark.locate(spot)
    }
}

/// Where a value stands.
#[derive(Clone, Debug)]
struct Mark {
    /// Its key, which items of lists do not have.
    key: Option<Position>,
    value: Position,
    /// The bytes in which it is written.
    letters: Option<Range<usize>>,
    /// What is in it, in the order of the tree.
    inside: Vec<Mark>,
}

impl Mark {
    fn at(&self, steps: &[usize]) -> Option<&Mark> {
        steps.iter().try_fold(self, |mark, step| mark.inside.get(*step))
    }

    fn locate(&self, spot: &Spot) -> Position {
        let place = |mark: &Mark| match spot.part {
            Part::Key => mark.key.unwrap_or(mark.value),
            Part::Value | Part::Inside(_) => mark.value,
        };
        self.at(&spot.steps).map(place).unwrap_or_default()
    }
}

/// Parses YAML; why it cannot be, with the place.
pub(crate) fn parse_yaml(text: &str) -> Result<Node, SyntaxFault> {
    parse(text, Syntax::Yaml)
}

/// Parses a text; why it cannot be, with the place.
pub(crate) fn parse(text: &str, syntax: Syntax) -> Result<Node, SyntaxFault> {
    parse_marked(text, syntax).map(|parsed| parsed.node)
}

/// Parses a text, once for its values and for their places.
pub(crate) fn parse_marked(text: &str, syntax: Syntax) -> Result<ParsedText, SyntaxFault> {
    match syntax.settle(text) {
        Syntax::Yaml => yaml::parse(text),
        Syntax::Toml => toml::parse(text),
        Syntax::LooseJson => json::parse(text, TrailingCommas::Allowed),
        Syntax::Json | Syntax::Either => json::parse(text, TrailingCommas::Refused),
    }
}

/// Reads JSON as people write it, out of a file or of what a person typed; why it is none, with the place and its line.
///
/// ```
/// use std::path::Path;
///
/// use ollm_catalog::{TrailingCommas, read_json};
/// let problem = read_json(Path::new("--data"), "{\"a\": x}", TrailingCommas::Refused).unwrap_err();
/// assert_eq!((problem.line, problem.column), (1, 7));
/// assert_eq!(problem.snippet.unwrap().text, "{\"a\": x}");
/// ```
pub fn read_json(path: &Path, text: &str, commas: TrailingCommas) -> Result<serde_json::Value, Box<Problem>> {
    let broken = |fault| Box::new(Document::new(path, Syntax::Json, text.to_owned()).broken(fault));
    json::parse(text, commas).map(|parsed| parsed.node.to_json()).map_err(broken)
}

/// The text of a file.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub(crate) path: &'a Path,
    syntax: Syntax,
    text: String,
    /// Where everything stands in it, if it could be parsed.
    mark: Option<Mark>,
    /// The state of the file that was read, if it was.
    pub(crate) state: Option<Stamp>,
}

/// What stands for a value that must not be shown; its line is not shown either.
pub(crate) const HIDDEN: &str = "(hidden)";

/// Something wrong with a node, before its position is known.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) code: Code,
    pub(crate) severity: Severity,
    /// The node; the whole file without one.
    pub(crate) spot: Option<Spot>,
    pub(crate) value: Option<String>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    pub(crate) remedy: Option<Remedy>,
}

impl Finding {
    /// Something wrong with a part of a node, whose value is shown.
    pub(crate) fn at(
        code: Code,
        severity: Severity,
        at: &Cursor<'_>,
        part: Part,
        message: String,
        help: Option<String>,
    ) -> Finding {
        Finding { code, severity, spot: Some(at.spot(part)), value: Some(at.node.shown()), message, help, remedy: None }
    }
}

/// Why a text is not what its syntax demands.
#[derive(Debug)]
pub(crate) struct SyntaxFault {
    pub(crate) at: Option<Position>,
    pub(crate) message: String,
    pub(crate) help: Option<&'static str>,
}

impl SyntaxFault {
    /// The reason, with its place where that is known.
    pub(crate) fn placed(&self) -> String {
        match self.at {
            Some(at) => format!("{} at {at}", self.message),
            None => self.message.clone(),
        }
    }
}

/// Reads and parses a file; `None` when it does not exist.
pub(crate) fn read(path: &Path, syntax: Syntax, max: u64) -> Result<Option<(Document<'_>, Node)>, Box<Problem>> {
    let Some((bytes, state)) = stamped(path, max)? else {
        return Ok(None);
    };
    let (document, node) = open(path, syntax, bytes)?;
    Ok(Some((Document { state: Some(state), ..document }, node)))
}

/// Reads a file, with the state of the very file that was read; `None` when it does not exist.
pub(crate) fn stamped(path: &Path, max: u64) -> Result<Option<(Vec<u8>, Stamp)>, Box<Problem>> {
    let read = read_stamped(path, max).map_err(|error| unreadable(path, &error))?;
    Ok(read.map(|(bytes, meta)| (bytes, Stamp::of_state(&meta))))
}

/// Reads a file; `None` when it does not exist.
pub(crate) fn bytes(path: &Path, max: u64) -> Result<Option<Vec<u8>>, Box<Problem>> {
    Ok(stamped(path, max)?.map(|(bytes, _)| bytes))
}

/// Reads a file that is plain text; `None` when it does not exist.
pub(crate) fn text(path: &Path, max: u64) -> Result<Option<String>, Box<Problem>> {
    bytes(path, max)?.map(|bytes| text_of(path, bytes)).transpose()
}

/// The text that bytes are, without the mark that some editors put before it.
fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String, Box<Problem>> {
    let text = String::from_utf8(bytes).map_err(|error| not_text(path, &error))?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Parses the content of a file.
pub(crate) fn open(path: &Path, syntax: Syntax, bytes: Vec<u8>) -> Result<(Document<'_>, Node), Box<Problem>> {
    let document = Document::new(path, syntax, text_of(path, bytes)?);
    match parse_marked(&document.text, document.syntax) {
        Ok(ParsedText { node, mark }) => Ok((Document { mark: Some(mark), ..document }, node)),
        Err(broken) => Err(Box::new(document.broken(broken))),
    }
}

impl<'a> Document<'a> {
    /// A text of which no part has a place.
    pub(crate) fn new(path: &'a Path, syntax: Syntax, text: String) -> Document<'a> {
        Document { path, syntax: syntax.settle(&text), text, mark: None, state: None }
    }

    /// A text that was parsed already.
    pub(crate) fn parsed(path: &'a Path, syntax: Syntax, text: &str, parsed: &ParsedText) -> Document<'a> {
        Document { mark: Some(parsed.mark.clone()), ..Document::new(path, syntax, text.to_owned()) }
    }
}

impl Document<'_> {
    /// The position of a spot.
    pub(crate) fn locate(&self, spot: &Spot) -> Position {
        let at = self.mark.as_ref().map(|mark| mark.locate(spot)).unwrap_or_default();
        match (spot.part, self.letters(spot)) {
            (Part::Inside(bytes), Some(letters)) => lines::inside(at, letters, bytes),
            _ => at,
        }
    }

    /// The letters in which a value is written, also one that an alias stands for.
    pub(crate) fn letters(&self, spot: &Spot) -> Option<&str> {
        let letters = self.mark.as_ref()?.at(&spot.steps)?.letters.clone()?;
        self.text.get(letters).map(str::trim)
    }

    /// The findings with their positions; too many are cut short.
    pub(crate) fn problems(&self, mut findings: Vec<Finding>) -> Vec<Problem> {
        if findings.is_empty() {
            return Vec::new();
        }
        // The worst first, so that a flood of warnings cannot hide an error.
        findings.sort_by_key(|finding| finding.severity);
        let more = findings.len().saturating_sub(MOST_PROBLEMS);
        findings.truncate(MOST_PROBLEMS);
        let lines = Lines::new(&self.text);
        let mut problems: Vec<Problem> = findings.into_iter().map(|finding| self.problem(finding, &lines)).collect();
        hide_lines(&mut problems);
        problems.sort_by_key(|problem| (problem.line, problem.column));
        if more > 0 {
            let message = format!("{more} more problems in this file are not shown");
            problems.push(Problem {
                file: self.path.to_owned(),
                ..whole_file(Code::TooMuch, Severity::Warning, self.path, message)
            });
        }
        problems
    }

    fn problem(&self, finding: Finding, lines: &Lines<'_>) -> Problem {
        let at = finding.spot.as_ref().map(|spot| self.locate(spot)).unwrap_or_default();
        let redactor = Redactor::default();
        let hide = |text: String| redactor.redact_str(&text).into_owned();
        Problem {
            code: finding.code,
            severity: finding.severity,
            file: self.path.to_owned(),
            line: at.line,
            column: at.column,
            field: finding.spot.map(|spot| spot.field).unwrap_or_default(),
            value: finding.value,
            message: hide(finding.message),
            help: finding.help.map(hide),
            remedy: finding.remedy,
            snippet: lines.snippet(at),
        }
    }

    /// Why it cannot be parsed, with the place.
    pub(crate) fn broken(&self, broken: SyntaxFault) -> Problem {
        let at = broken.at.unwrap_or_default();
        Problem {
            line: at.line,
            column: at.column,
            help: broken.help.map(str::to_owned),
            snippet: Lines::new(&self.text).snippet(at),
            ..whole_file(Code::InvalidSyntax, Severity::Error, self.path, broken.message)
        }
    }
}

/// Drops the text of every line that holds a hidden value, for all problems of the line.
fn hide_lines(problems: &mut [Problem]) {
    let is_hidden = |problem: &&Problem| problem.value.as_deref() == Some(HIDDEN);
    let hidden: Vec<usize> = problems.iter().filter(is_hidden).map(|problem| problem.line).collect();
    for problem in problems.iter_mut().filter(|problem| hidden.contains(&problem.line)) {
        problem.snippet = None;
    }
}

/// A problem with one line of a file.
pub(crate) fn problem_at(code: Code, path: &Path, text: &str, line: usize, message: String) -> Problem {
    let snippet = Lines::new(text).snippet(Position { line, column: 1 });
    Problem { line, column: 1, snippet, ..whole_file(code, Severity::Error, path, message) }
}

/// A problem with a file as a whole.
pub(crate) fn whole_file(code: Code, severity: Severity, path: &Path, message: String) -> Problem {
    Problem::of_file(code, severity, path, message)
}

fn unreadable(path: &Path, error: &FileError) -> Box<Problem> {
    let (message, help) = match error {
        FileError::Io { doing, source, .. } => {
            let help = match source.kind() {
                std::io::ErrorKind::PermissionDenied => "make it readable for its owner (chmod u+r)",
                _ => "repair or remove it",
            };
            (format!("cannot {doing} it: {source}"), help)
        }
        FileError::TooLarge { size, max, .. } => {
            (format!("it has {size} bytes, at most {max} are read"), "make it smaller or move it away")
        }
        FileError::NotRegular { kind, .. } => {
            (format!("it is a {kind}, not a regular file"), "replace it by a file or remove it")
        }
        other => (other.to_string(), "repair or remove it"),
    };
    Box::new(Problem {
        help: Some(help.to_owned()),
        ..whole_file(Code::UnreadableFile, Severity::Error, path, message)
    })
}

fn not_text(path: &Path, error: &std::string::FromUtf8Error) -> Box<Problem> {
    let good = error.utf8_error().valid_up_to();
    let start = error.as_bytes().get(..good).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default();
    let at = Lines::new(start).position(start.len());
    let value = error.as_bytes().get(good).map(|byte| format!("0x{byte:02x}"));
    Box::new(Problem {
        line: at.line,
        column: at.column,
        value,
        help: Some("save it as UTF-8".to_owned()),
        snippet: Lines::new(&String::from_utf8_lossy(error.as_bytes())).snippet(at),
        ..whole_file(Code::UnreadableFile, Severity::Error, path, "it is not UTF-8 text".to_owned())
    })
}
