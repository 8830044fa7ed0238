//! What the words of shell text stand for, as far as the text itself says so.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ollm_shell::{Body, Command, Joint, List, Piece, Word};

use ollm_store::plain_path;

use super::super::{LONGEST_PATH, Search};

/// Commands that print nothing and lead nowhere.
const SILENT: &[&str] = &[":", "true", "set", "unset", "exit"];
/// Stands for a value that is only known when it runs; as shell text it is just as unknown.
const UNKNOWN: &str = "$(…)";

/// Values that take more bytes together are not kept; only expansions make so many.
pub(super) const MOST_BYTES: usize = 4 << 20;
/// Nobody asks for a path with more words.
const MOST_WORDS: usize = 8;

/// What is known while text is read.
#[derive(Default)]
pub(in super::super) struct Scope<'a> {
    /// The file the text stands in; none for a command line, whose every part somebody wrote for this hook.
    pub(super) file: Option<&'a Path>,
    /// Variables that the text itself sets: the values one after the other, where these are known.
    variables: HashMap<String, Vec<Option<Value>>>,
    /// The names of the variables in the order they were set.
    order: Vec<String>,
    /// How many bytes the values take.
    bytes: usize,
    /// How deep this part nests in the text, counted as the reader of shell text counts.
    pub(super) depth: usize,
    /// Whether this part may as well not run.
    pub(super) branch: bool,
    /// Whether nobody knows which folder this part runs in.
    pub(super) astray: bool,
}

/// What a variable or an expansion stands for.
#[derive(Clone)]
pub(super) struct Value {
    pub(super) text: String,
    /// Whether nothing else in the text may give another value.
    certain: bool,
    /// Whether it comes from the place of the script, which is that of its copy when it runs.
    in_copy: bool,
}

impl Value {
    fn literal(text: &str) -> Value {
        Value { text: text.to_owned(), certain: true, in_copy: false }
    }

    fn map(self, change: impl FnOnce(&str) -> String) -> Value {
        Value { text: change(&self.text), ..self }
    }
}

/// What a word is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MadeOf {
    /// Text alone.
    Text,
    /// The place of the script, which is that of its copy when it runs.
    OwnPlace,
    /// Other expansions.
    Expansions,
}

/// A word with its expansions filled in; what is unknown is still there as an expansion.
#[derive(Clone)]
pub(super) struct Filled {
    pub(super) text: String,
    pub(super) known: bool,
    /// Whether it is known for sure.
    pub(super) certain: bool,
    pub(super) made_of: MadeOf,
    /// Where the word stands in its text.
    pub(super) span: Range<usize>,
}

impl Filled {
    pub(super) fn value(self) -> Option<Value> {
        self.known.then_some(Value {
            text: self.text,
            certain: self.certain,
            in_copy: self.made_of == MadeOf::OwnPlace,
        })
    }
}

impl Scope<'_> {
    pub(super) fn in_file(file: Option<&Path>) -> Scope<'_> {
        Scope { file, ..Scope::default() }
    }

    /// How many assignments there were so far.
    pub(super) fn assigned(&self) -> usize {
        self.order.len()
    }

    /// Forgets all assignments but the first ones.
    pub(super) fn forget(&mut self, kept: usize) {
        for name in self.order.drain(kept..) {
            self.variables.get_mut(&name).map(Vec::pop);
        }
    }

    /// A value that is unknown or depends on a branch leaves the one before, which is then no longer certain.
    pub(super) fn assign(&mut self, name: &str, value: Option<Value>) {
        let value = value.filter(|value| value.text.len() <= LONGEST_PATH && self.bytes <= MOST_BYTES);
        let before = self.variable(name).cloned().flatten();
        let is_open = |before: &Value| value.as_ref().is_none_or(|new| self.branch && new.text != before.text);
        let value = match before.filter(is_open) {
            Some(before) => Some(Value { certain: false, ..before }),
            None => value,
        };
        self.bytes += value.as_ref().map_or(0, |value| value.text.len());
        self.variables.entry(name.to_owned()).or_default().push(value);
        self.order.push(name.to_owned());
    }

    fn variable(&self, name: &str) -> Option<&Option<Value>> {
        self.variables.get(name)?.last()
    }
}

impl Search<'_> {
    pub(super) fn filled(&self, word: &Word, scope: &Scope<'_>) -> Filled {
        let most = word.span.len() + LONGEST_PATH;
        let span = word.span.clone();
        let is_text = word.iter().all(|piece| matches!(piece, Piece::Plain(_) | Piece::Quoted(_)));
        let made_of = if is_text { MadeOf::Text } else { MadeOf::Expansions };
        let mut filled = Filled { text: String::new(), known: true, certain: true, made_of, span };
        for piece in word {
            filled.certain &= !matches!(piece, Piece::Plain(text) if is_pattern(text));
            if let Some(value) = self.expansion(piece, scope) {
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
                return Filled { text: UNKNOWN.to_owned(), known: false, certain: false, ..filled };
            }
        }
        filled.known &= !filled.text.contains("{{");
        filled.certain &= filled.known;
        filled
    }

    /// What a piece of a word stands for.
    fn expansion(&self, piece: &Piece, scope: &Scope<'_>) -> Option<Value> {
        match piece {
            Piece::Plain(text) | Piece::Quoted(text) => Some(Value::literal(text)),
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

    fn value(&self, name: &str, scope: &Scope<'_>) -> Option<Value> {
        if let Some(value) = scope.variable(name) {
            return value.clone();
        }
        let in_copy = matches!(name, "0" | "BASH_SOURCE");
        let path = match name {
            _ if in_copy => scope.file,
            "PWD" => self.here.first().map(PathBuf::as_path),
            _ => self.folders.iter().find(|(known, _)| *known == name).map(|(_, path)| path.as_path()),
        };
        path.map(|path| Value { in_copy, ..Value::literal(&path.display().to_string()) })
    }

    /// The path that commands print, where these are the usual ones to ask for a path.
    fn printed(&self, list: &List, scope: &Scope<'_>) -> Option<Value> {
        let mut folder = self.here.first()?.clone();
        let mut printed: Option<String> = None;
        let (mut certain, mut in_copy) = (true, false);
        for step in list {
            let [Command { body: Body::Simple { words, .. }, .. }] = step.pipeline.as_slice() else { return None };
            if words.len() > MOST_WORDS {
                return None;
            }
            let words: Vec<Value> = words.iter().map(|word| self.filled(word, scope).value()).collect::<Option<_>>()?;
            certain &= words.iter().all(|word| word.certain);
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
            if step.joint == Joint::Or {
                break;
            }
        }
        Some(Value { text: printed?, certain, in_copy })
    }
}

/// Whether a shell replaces text outside of quotes by the names of files, or by several words.
fn is_pattern(text: &str) -> bool {
    let has_both = |open: char, close: char| {
        text.find(open).is_some_and(|at| text.get(at..).is_some_and(|rest| rest.contains(close)))
    };
    text.contains(['*', '?']) || has_both('[', ']') || has_both('{', '}') && text != "{}" && !text.contains("{{")
}

/// How an expansion looks whose value is unknown.
fn unknown(piece: &Piece) -> String {
    match piece {
        Piece::Variable { name, .. } => format!("${{{name}}}"),
        Piece::Parameter { name, .. } if !name.is_empty() => format!("${{{name}}}"),
        _ => UNKNOWN.to_owned(),
    }
}

/// What `dirname` prints.
fn parent(path: &str) -> String {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((parent, _)) => parent.to_owned(),
        None => ".".to_owned(),
    }
}
