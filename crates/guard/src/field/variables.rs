//! Every value a script gives to its variables, wherever it does so.

use std::{cell::Cell, collections::HashMap};

use ollm_shell::{Body, Command, List, Piece, Redirect, Word, bare};

/// The text of one assignment: unquoted text up front, and the pieces behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'a> {
    pub(super) lead: &'a str,
    pub(super) rest: &'a [Piece],
}

/// What a script assigns.
#[derive(Debug, Default)]
pub(crate) struct Variables<'a> {
    /// `None`: some value cannot be known.
    values: HashMap<&'a str, Option<Vec<Value<'a>>>>,
    /// Whether the script changes how unquoted values are split.
    pub(super) separators_change: bool,
    /// How many values were looked at so far: they may refer to one another again and again.
    looks: Cell<usize>,
}

/// How many values of one variable are followed.
const MOST_VALUES: usize = 64;

/// How many values are looked at in one script.
const MOST_LOOKS: usize = 50_000;

/// Builtins whose arguments are assignments.
const DECLARERS: &[&str] = &["export", "declare", "local", "readonly", "typeset"];

/// Builtins that put something into the variables they name.
const FILLERS: &[&str] = &["read", "mapfile", "readarray", "getopts", "printf", "unset", "let", "wait"];

impl<'a> Variables<'a> {
    /// All assignments of a list and of everything inside it.
    pub(crate) fn of_list(list: &'a List) -> Variables<'a> {
        let mut variables = Variables::default();
        variables.list(list);
        variables
    }

    /// The values assigned to a name; nothing if some of them cannot be known, or if it takes too long to look.
    pub(super) fn of(&self, name: &str) -> Option<&[Value<'a>]> {
        let Some(values) = self.values.get(name) else { return Some(&[]) };
        let values = values.as_deref().filter(|values| values.len() <= MOST_VALUES)?;
        self.looks.set(self.looks.get() + values.len());
        (self.looks.get() <= MOST_LOOKS).then_some(values)
    }

    fn add(&mut self, name: &'a str, value: Option<Value<'a>>) {
        let values = self.values.entry(name).or_insert_with(|| Some(Vec::new()));
        match (values.as_mut(), value) {
            (Some(known), Some(value)) => known.push(value),
            _ => *values = None,
        }
    }

    fn list(&mut self, list: &'a List) {
        for command in list.iter().flat_map(|step| &step.pipeline) {
            self.command(command);
        }
    }

    fn command(&mut self, command: &'a Command) {
        self.words(command.redirects.iter().filter_map(Redirect::word));
        match &command.body {
            Body::Simple { assigns, words } => {
                for assign in assigns {
                    // Before a command it holds for that command's environment only.
                    let value = assign.value.as_ref().filter(|_| words.is_empty());
                    self.separators_change |= words.is_empty() && assign.name == "IFS";
                    self.add(&assign.name, value.map(|word| Value { lead: "", rest: word }));
                    self.words(&assign.others);
                    self.words(&assign.value);
                }
                self.builtin(words);
                self.words(words);
            }
            Body::Branches { words, lists, .. } => {
                self.words(words);
                for list in lists {
                    self.list(list);
                }
            }
            Body::Subshell(list) => self.list(list),
            Body::For { name, words, list } => {
                match words {
                    None => self.add(name, None),
                    Some(words) => words.iter().for_each(|word| self.element(name, word)),
                }
                self.words(words.iter().flatten());
                self.list(list);
            }
            Body::Function { body, .. } => self.command(body),
        }
    }

    /// One element of a loop: followed only if it stands for exactly one value.
    fn element(&mut self, name: &'a str, word: &'a Word) {
        let single = word.iter().all(|piece| match piece {
            Piece::Plain(text) => !text.contains(['{', '*', '?', '[']),
            Piece::Quoted(_) => true,
            Piece::Variable { quoted, .. } | Piece::Output { quoted, .. } => *quoted,
            Piece::Process(_) | Piece::Parameter { .. } | Piece::Arithmetic(_) | Piece::Opaque(_) | Piece::Hole(_) => {
                false
            }
        });
        self.add(name, single.then_some(Value { lead: "", rest: word }));
    }

    fn builtin(&mut self, words: &'a [Word]) {
        let Some((command, arguments)) = words.split_first() else { return };
        let Some(command) = bare(command) else { return };
        if DECLARERS.contains(&command) {
            for argument in arguments {
                let Some((Piece::Plain(first), rest)) = argument.split_first() else { continue };
                let Some((name, lead)) = first.split_once('=') else { continue };
                self.separators_change |= name == "IFS";
                match name.strip_suffix('+') {
                    Some(name) => self.add(name, None),
                    None => self.add(name, Some(Value { lead, rest })),
                }
            }
        } else if FILLERS.contains(&command) {
            for name in arguments.iter().filter_map(|argument| bare(argument)) {
                self.add(name.split(['=', '[']).next().unwrap_or(name), None);
            }
        }
    }

    fn words(&mut self, words: impl IntoIterator<Item = &'a Word>) {
        words.into_iter().for_each(|word| self.word(word));
    }

    fn word(&mut self, word: &'a Word) {
        for piece in word {
            match piece {
                Piece::Output { list, .. } | Piece::Process(list) => self.list(list),
                Piece::Parameter { word: inner, .. } | Piece::Arithmetic(inner) | Piece::Opaque(inner) => {
                    self.word(inner);
                }
                Piece::Plain(_) | Piece::Quoted(_) | Piece::Variable { .. } | Piece::Hole(_) => {}
            }
        }
    }
}
