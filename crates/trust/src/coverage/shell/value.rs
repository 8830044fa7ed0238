//! Finds the values of words in shell text, as far as the text itself shows them.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ollm_shell::{Body, Command, List, ListOperator, Piece, Word};

use ollm_store::plain_path;

use super::super::{LONGEST_PATH, Search};

/// Commands that print nothing and change no folder.
const SILENT: &[&str] = &[":", "true", "set", "unset", "exit"];
/// Replaces a value that is only known at run time; as shell text it is also unknown.
const UNKNOWN: &str = "$(…)";

/// The most bytes of values that are kept; only expansions make so many.
pub(super) const MOST_BYTES: usize = 4 << 20;
/// The most words of a path that is followed.
const MOST_WORDS: usize = 8;

/// What is known at a place of the text.
#[derive(Default)]
pub(in super::super) struct Scope<'a> {
    /// The file with the text. `None` for a command line, all of which was written for this hook.
    pub(super) file: Option<&'a Path>,
    /// Variables that the text sets, each with its values in order; `None` for an unknown value.
    variables: HashMap<String, Vec<Option<ShellValue>>>,
    /// The names of the variables in the order they were set.
    order: Vec<String>,
    /// How many bytes the values take together.
    bytes: usize,
    /// How deep this part nests in the text, counted like the reader of shell text does.
    pub(super) depth: usize,
    /// Whether this part may not run.
    pub(super) branch: bool,
    /// Whether the working folder of this part is unknown.
    pub(super) astray: bool,
}

/// The value of a variable or an expansion.
#[derive(Clone)]
pub(super) struct ShellValue {
    pub(super) text: String,
    /// Whether no other part of the text may set another value.
    certain: bool,
    /// Whether the value derives from the script's place, which is in the copy at run time.
    in_copy: bool,
}

impl ShellValue {
    fn literal(text: &str) -> ShellValue {
        ShellValue { text: text.to_owned(), certain: true, in_copy: false }
    }

    fn map(self, change: impl FnOnce(&str) -> String) -> ShellValue {
        ShellValue { text: change(&self.text), ..self }
    }
}

/// The parts that a word consists of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MadeOf {
    /// Text alone.
    Text,
    /// The script's place, which is in the copy at run time.
    OwnPlace,
    /// Other expansions.
    Expansions,
    /// One of several words from an unquoted expansion.
    Fields,
}

/// A word with its expansions filled in. Unknown expansions stay in it.
#[derive(Clone)]
pub(super) struct FilledWord {
    pub(super) text: String,
    pub(super) known: bool,
    /// Whether the text is known for sure.
    pub(super) certain: bool,
    pub(super) made_of: MadeOf,
    /// The place of the word in its text.
    pub(super) span: Range<usize>,
}

impl FilledWord {
    pub(super) fn value(self) -> Option<ShellValue> {
        self.known.then_some(ShellValue {
            text: self.text,
            certain: self.certain,
            in_copy: self.made_of == MadeOf::OwnPlace,
        })
    }
}

impl Scope<'_> {
    pub(in super::super) fn in_file(file: Option<&Path>) -> Scope<'_> {
        Scope { file, ..Scope::default() }
    }

    /// The number of assignments so far.
    pub(super) fn assigned(&self) -> usize {
        self.order.len()
    }

    /// Undoes all assignments but the first `kept`.
    pub(super) fn forget(&mut self, kept: usize) {
        for name in self.order.drain(kept..) {
            self.variables.get_mut(&name).map(Vec::pop);
        }
    }

    /// Sets a variable. If the new value is unknown or depends on a branch, the earlier value stays, but is no longer
    /// certain.
    pub(super) fn assign(&mut self, name: &str, value: Option<ShellValue>) {
        let value = value.filter(|value| value.text.len() <= LONGEST_PATH && self.bytes <= MOST_BYTES);
        let before = self.variable(name).cloned().flatten();
        let is_open = |before: &ShellValue| value.as_ref().is_none_or(|new| self.branch && new.text != before.text);
        let value = match before.filter(is_open) {
            Some(before) => Some(ShellValue { certain: false, ..before }),
            None => value,
        };
        self.bytes += value.as_ref().map_or(0, |value| value.text.len());
        self.variables.entry(name.to_owned()).or_default().push(value);
        self.order.push(name.to_owned());
    }

    fn variable(&self, name: &str) -> Option<&Option<ShellValue>> {
        self.variables.get(name)?.last()
    }
}

impl Search<'_> {
    /// The words that one word expands to: an unquoted expansion may produce several, or none.
    pub(super) fn fields(&self, word: &Word, scope: &Scope<'_>) -> Vec<FilledWord> {
        let filled = self.filled(word, scope);
        let is_split = |piece: &Piece| {
            let is_open = matches!(
                piece,
                Piece::Variable { quoted: false, .. }
                    | Piece::Parameter { quoted: false, .. }
                    | Piece::Output { quoted: false, .. }
            );
            let splits = |value: ShellValue| value.text.is_empty() || value.text.contains(char::is_whitespace);
            is_open && self.expansion(piece, scope).is_some_and(splits)
        };
        if !filled.known || !word.iter().any(is_split) {
            return vec![filled];
        }
        let part = |text: &str| FilledWord { text: text.to_owned(), made_of: MadeOf::Fields, ..filled.clone() };
        filled.text.split_whitespace().map(part).collect()
    }

    pub(super) fn filled(&self, word: &Word, scope: &Scope<'_>) -> FilledWord {
        let most = word.span.len() + LONGEST_PATH;
        let span = word.span.clone();
        let is_text = word.iter().all(|piece| matches!(piece, Piece::Plain(_) | Piece::Quoted(_)));
        let made_of = if is_text { MadeOf::Text } else { MadeOf::Expansions };
        let mut filled = FilledWord { text: String::new(), known: true, certain: true, made_of, span };
        for (at, piece) in word.iter().enumerate() {
            filled.certain &= !matches!(piece, Piece::Plain(text) if is_pattern(text));
            let tilde = tilde(piece, word.len() == 1).filter(|_| at == 0);
            if tilde.is_some() {
                filled.made_of = MadeOf::Expansions;
            }
            let value = match tilde {
                Some(tilde) => self.at_home(tilde, scope),
                None => self.expansion(piece, scope),
            };
            if let Some(value) = value {
                filled.text.push_str(&value.text);
                filled.certain &= value.certain;
                if value.in_copy {
                    filled.made_of = MadeOf::OwnPlace;
                }
            } else {
                filled.text.push_str(&unknown(piece));
                filled.known = false;
            }
            if filled.text.len() > most {
                return FilledWord { text: UNKNOWN.to_owned(), known: false, certain: false, ..filled };
            }
        }
        filled.known &= !filled.text.contains("{{");
        filled.certain &= filled.known;
        filled
    }

    /// The value of a piece of a word.
    fn expansion(&self, piece: &Piece, scope: &Scope<'_>) -> Option<ShellValue> {
        match piece {
            Piece::Plain(text) | Piece::Quoted(text) => Some(ShellValue::literal(text)),
            Piece::Variable { name, .. } => self.value(name, scope),
            Piece::Parameter { name, operator, word, .. } => {
                let value = self.value(name, scope);
                let operand = || self.filled(word, scope).value();
                match (*operator, name.as_str()) {
                    (":-" | "-" | ":=" | "=", _) => value.or_else(|| {
                        let is_set = scope.variable(name).is_some();
                        if is_set { None } else { operand() }
                    }),
                    (":?" | "?", _) | ("", "0") => value,
                    ("%", _) if operand()?.text == "/*" => Some(value?.map(parent)),
                    ("", "BASH_SOURCE") => match operand()?.text.strip_prefix("[0]")? {
                        "%/*" => Some(value?.map(parent)),
                        rest if rest.is_empty() || rest.starts_with(":-") => value,
                        _ => None,
                    },
                    _ => None,
                }
            }
            Piece::Output { list, .. } => self.printed(list, scope),
            Piece::Process { .. } | Piece::Arithmetic(_) | Piece::Opaque(_) | Piece::Hole(_) => None,
        }
    }

    /// The path behind a leading tilde.
    pub(super) fn at_home(&self, text: &str, scope: &Scope<'_>) -> Option<ShellValue> {
        let (user, rest) = text.find('/').map_or((text, ""), |at| text.split_at(at));
        let name = match user {
            "~" => "HOME",
            "~+" => "PWD",
            _ => return None,
        };
        Some(self.value(name, scope)?.map(|folder| format!("{folder}{rest}")))
    }

    fn value(&self, name: &str, scope: &Scope<'_>) -> Option<ShellValue> {
        if let Some(value) = scope.variable(name) {
            return value.clone();
        }
        let in_copy = matches!(name, "0" | "BASH_SOURCE");
        let path = match name {
            _ if in_copy => scope.file,
            "PWD" => self.here.first().map(PathBuf::as_path),
            _ => self.folders.iter().find(|(known, _)| *known == name).map(|(_, path)| path.as_path()),
        };
        path.map(|path| ShellValue { in_copy, ..ShellValue::literal(&path.display().to_string()) })
    }

    /// The path that commands print, if they are the usual ones for finding a path.
    fn printed(&self, list: &List, scope: &Scope<'_>) -> Option<ShellValue> {
        let mut folder = self.here.first()?.clone();
        let mut printed: Option<String> = None;
        let (mut certain, mut in_copy) = (true, false);
        for step in list {
            let [Command { body: Body::Simple { words, .. }, .. }] = step.pipeline.as_slice() else { return None };
            if words.len() > MOST_WORDS {
                return None;
            }
            let words: Vec<ShellValue> =
                words.iter().map(|word| self.filled(word, scope).value()).collect::<Option<_>>()?;
            certain &= words.iter().all(|word| word.certain);
            // The program is found in the same way as by its name.
            if let [first, option, name] = words.as_slice()
                && matches!((first.text.as_str(), option.text.as_str()), ("command", "-v") | ("type", "-P"))
            {
                return Some(ShellValue { certain, ..name.clone() }).filter(|_| list.len() == 1);
            }
            in_copy |= words.iter().any(|word| word.in_copy);
            let mut words = words.iter().map(|word| word.text.as_str());
            let program = words.find(|word| !matches!(*word, "command" | "builtin"))?;
            let arg = words.clone().find(|word| !word.starts_with('-'));
            let path = match program {
                "cd" => {
                    folder = plain_path(&folder.join(arg?));
                    continue;
                }
                silent if SILENT.contains(&silent) => continue,
                "pwd" => folder.display().to_string(),
                "dirname" => parent(arg?),
                "readlink" | "realpath" => folder.join(arg?).display().to_string(),
                "git" if words.eq(["rev-parse", "--show-toplevel"]) => self.places.top.display().to_string(),
                _ => return None,
            };
            if printed.replace(path).is_some() {
                return None;
            }
            if step.joint == ListOperator::Or {
                break;
            }
        }
        Some(ShellValue { text: printed?, certain, in_copy })
    }
}

/// Whether a shell replaces unquoted text by file names, or by several words.
fn is_pattern(text: &str) -> bool {
    let has_both = |open: char, close: char| {
        text.find(open).is_some_and(|at| text.get(at..).is_some_and(|rest| rest.contains(close)))
    };
    text.contains(['*', '?']) || has_both('[', ']') || has_both('{', '}') && text != "{}" && !text.contains("{{")
}

/// The text at the start of a word whose tilde a shell replaces by a folder.
fn tilde(piece: &Piece, is_whole_word: bool) -> Option<&str> {
    match piece {
        Piece::Plain(text) if text.starts_with('~') && (is_whole_word || text.contains('/')) => Some(text),
        _ => None,
    }
}

/// The text of an expansion whose value is unknown.
fn unknown(piece: &Piece) -> String {
    match piece {
        Piece::Variable { name, .. } => format!("${{{name}}}"),
        Piece::Parameter { name, .. } if !name.is_empty() => format!("${{{name}}}"),
        Piece::Plain(text) => text.clone(),
        _ => UNKNOWN.to_owned(),
    }
}

/// The output of `dirname`.
fn parent(path: &str) -> String {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((parent, _)) => parent.to_owned(),
        None => ".".to_owned(),
    }
}
