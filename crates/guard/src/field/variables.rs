//! Collects every value that a script gives to its variables anywhere.
//!
//! The order does not matter: a variable has every value that is assigned to it anywhere. One value that is not a
//! literal makes the variable unknown. An assignment to a name that is not literal makes all variables unknown that
//! nothing else sets.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    collections::HashMap,
    path::PathBuf,
    rc::Rc,
    sync::Arc,
};

use ollm_shell::{Body, Command, Elements, List, Piece, Redirect, Word, bare, parse, program_variable};

use super::{ShellPlace, values::Values};
use crate::names::QuickMap;

/// The text of one assignment: unquoted text up front, and the pieces behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AssignedText<'a> {
    pub(super) lead: &'a str,
    pub(super) rest: &'a [Piece],
    pub(super) kind: ValueKind,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// It is assigned, and stays whole.
    Assigned,
    /// One word of a loop: wildcards in it are expanded.
    Element,
    /// What a substitution prints for a loop: each word is a value of its own.
    Listing,
}

/// What a script assigns to one variable.
pub(super) enum Assigned<'v, 'a> {
    /// Nothing.
    Never,
    /// These values.
    Values(&'v [AssignedText<'a>]),
    /// What `read` finds.
    Read,
    /// Something that is not known.
    Unknown,
}

#[derive(Debug)]
enum Entry<'a> {
    Values(Vec<AssignedText<'a>>),
    /// The elements of an array.
    Array(Vec<(Elements, &'a [Word])>),
    Read,
    Unknown,
}

/// The values of a variable or a substitution, and where they hold.
#[derive(Debug)]
pub(super) struct KnownValues {
    folders: Arc<[PathBuf]>,
    lost: bool,
    values: Rc<Values>,
}

impl KnownValues {
    pub(super) fn new(place: &ShellPlace, values: &Rc<Values>) -> KnownValues {
        KnownValues { folders: Arc::clone(&place.folders), lost: place.lost, values: Rc::clone(values) }
    }

    /// The values, if they hold at this place.
    pub(super) fn at(&self, place: &ShellPlace) -> Option<Rc<Values>> {
        let holds = self.lost == place.lost && place.has_folders(&self.folders);
        holds.then(|| Rc::clone(&self.values))
    }
}

/// What a script assigns.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a doubt of its own about the values")]
pub(crate) struct Variables<'a> {
    entries: HashMap<String, Entry<'a>>,
    /// Whether the script changes how unquoted values are split.
    pub(crate) separators_change: bool,
    /// Whether variables may be set whose names are not known, so that no value is.
    pub(crate) anything: bool,
    /// Whether text from elsewhere is run, which may set variables that nothing here sets behind it.
    pub(crate) sourced: bool,
    /// Whether text in variables may be evaluated: arithmetic, prompts, `${x@P}`.
    pub(crate) evaluates: bool,
    /// Whether `$1` and the like change: by `set`, by `shift`, in functions.
    pub(crate) positional_change: bool,
    /// How many values and substitutions were looked at so far: they may refer to one another again and again.
    pub(super) looks: Cell<usize>,
    /// How many searches for a value led to the one that goes on.
    pub(super) level: Cell<usize>,
    /// The variables whose values are being looked up, each for the one before.
    pub(super) sought: RefCell<Vec<String>>,
    /// How many `eval` stand around it.
    evals: usize,
    /// What was found out so far.
    pub(super) known: RefCell<HashMap<String, KnownValues>>,
    /// What substitutions inside others print: each is looked at once, however far in it was met first.
    pub(super) printed: RefCell<QuickMap<*const List, KnownValues>>,
}

/// How many values of one variable are followed.
const MOST_VALUES: usize = 64;

/// How many values and substitutions are looked at in one script.
const MOST_LOOKS: usize = 50_000;

/// How deep `eval` in `eval` is followed.
const MOST_EVALS: usize = 2;

/// Builtins whose arguments are assignments.
const DECLARERS: &[&str] = &["export", "declare", "local", "readonly", "typeset"];

/// Builtins that put something into the variables they name.
const FILLERS: &[&str] = &["mapfile", "readarray", "getopts", "printf", "unset", "let", "wait", "coproc"];

impl<'a> Variables<'a> {
    /// All assignments of a list and of everything inside it.
    pub(crate) fn of_list(list: &'a List) -> Variables<'a> {
        let mut variables = Variables::default();
        variables.list(list);
        variables
    }

    /// The names that are assigned.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// What is assigned to a name; not known if it takes too long to look.
    pub(super) fn of(&self, name: &str) -> Assigned<'_, 'a> {
        let values = match self.entries.get(name) {
            Some(_) if self.anything => return Assigned::Unknown,
            None => return Assigned::Never,
            Some(Entry::Read) => return Assigned::Read,
            Some(Entry::Array(_) | Entry::Unknown) => return Assigned::Unknown,
            Some(Entry::Values(values)) => values,
        };
        let few = self.affords(values.len()) && values.len() <= MOST_VALUES;
        if few { Assigned::Values(values) } else { Assigned::Unknown }
    }

    /// What is assigned to an array as a whole; nothing if its elements may come from elsewhere.
    pub(super) fn array(&self, name: &str) -> Option<&[(Elements, &'a [Word])]> {
        match self.entries.get(name) {
            Some(Entry::Array(assigned)) if !self.anything => Some(assigned),
            _ => None,
        }
    }

    /// Whether so many more values or substitutions may be looked at.
    pub(super) fn affords(&self, looks: usize) -> bool {
        self.looks.set(self.looks.get() + looks);
        self.looks.get() <= MOST_LOOKS
    }

    fn add(&mut self, name: &str, value: Option<AssignedText<'a>>) {
        self.separators_change |= name == "IFS";
        self.evaluates |= program_variable(name).is_some_and(|variable| variable.holds.is_expanded());
        match (self.entries.get_mut(name), value) {
            (Some(Entry::Values(known)), Some(value)) => known.push(value),
            (Some(entry), _) => *entry = Entry::Unknown,
            (None, Some(value)) => drop(self.entries.insert(name.to_owned(), Entry::Values(vec![value]))),
            (None, None) => drop(self.entries.insert(name.to_owned(), Entry::Unknown)),
        }
    }

    fn add_elements(&mut self, name: &str, elements: Elements, words: &'a [Word]) {
        match self.entries.get_mut(name) {
            None => drop(self.entries.insert(name.to_owned(), Entry::Array(vec![(elements, words)]))),
            Some(Entry::Array(assigned)) => assigned.push((elements, words)),
            Some(entry) => *entry = Entry::Unknown,
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
                    // Before a command it holds for that command's environment only, and so do other separators.
                    let lasts = words.is_empty();
                    let changed = self.separators_change;
                    let value = assign.value.as_ref().filter(|_| lasts);
                    let value = value.map(|word| AssignedText { lead: "", rest: word, kind: ValueKind::Assigned });
                    match assign.elements.filter(|_| lasts && assign.name != "IFS") {
                        Some(elements) => self.add_elements(&assign.name, elements, &assign.others),
                        None => self.add(&assign.name, value),
                    }
                    self.separators_change = changed || (lasts && assign.name == "IFS");
                    self.words(&assign.others);
                    self.words(&assign.value);
                }
                self.builtin(words);
                self.words(words);
            }
            Body::Branches { words, lists, repeats } => {
                // The words of `[[ … ]]`, of `((…))` and of `for ((…))` are among them.
                self.evaluates |= lists.is_empty() || (*repeats && !words.is_empty());
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
            Body::Function { body, .. } => {
                self.positional_change = true;
                self.command(body);
            }
        }
    }

    /// One element of a loop: followed only if it stands for exactly one value.
    fn element(&mut self, name: &str, word: &'a Word) {
        let listing = matches!(word.pieces.as_slice(), [Piece::Output { quoted: false, .. }]);
        let single = listing
            || all_elements(word).is_some()
            || word.iter().all(|piece| match piece {
                Piece::Plain(text) => !text.contains('{'),
                Piece::Quoted(_) => true,
                Piece::Variable { quoted, .. } | Piece::Output { quoted, .. } => *quoted,
                Piece::Process { .. }
                | Piece::Parameter { .. }
                | Piece::Arithmetic(_)
                | Piece::Opaque(_)
                | Piece::Hole(_) => false,
            });
        let kind = if listing { ValueKind::Listing } else { ValueKind::Element };
        self.add(name, single.then_some(AssignedText { lead: "", rest: word, kind }));
    }

    fn builtin(&mut self, words: &'a [Word]) {
        let prefix = |word: &&Word| matches!(bare(word), Some("builtin" | "command"));
        let words = words.get(words.iter().take_while(prefix).count()..).unwrap_or_default();
        let Some((command, arguments)) = words.split_first() else { return };
        match bare(command).map(Cow::Borrowed).or_else(|| literal(command).map(Cow::Owned)).as_deref() {
            Some("eval") => self.evaluated(arguments),
            Some("trap") => {
                let text = arguments.iter().position(|word| !text_of(word).starts_with('-'));
                let text = text.and_then(|at| arguments.get(at..=at)).unwrap_or_default();
                if text.iter().all(|word| literal(word).is_some()) {
                    self.evaluated(text);
                }
            }
            Some("source" | ".") => self.run_elsewhere(),
            Some("set" | "shift") => self.positional_change = true,
            Some("test" | "[") => self.evaluates = true,
            Some("read") => {
                self.evaluates |= arguments.iter().any(|word| has_subscript(word));
                self.filled(arguments, Some(()));
            }
            Some(declarer) if DECLARERS.contains(&declarer) => {
                self.evaluates |= arguments.iter().any(|word| has_subscript(word));
                self.declared(arguments);
            }
            Some(filler) if FILLERS.contains(&filler) => {
                // A name is a name however it is quoted; what `printf` prints without `-v` is none.
                let prints =
                    filler == "printf" && !arguments.first().is_some_and(|first| text_of(first).starts_with("-v"));
                if !prints {
                    self.evaluates = true;
                    self.filled(arguments, None);
                }
            }
            _ => {}
        }
    }

    fn declared(&mut self, arguments: &'a [Word]) {
        // Others change what is assigned later: small letters, numbers, lists.
        let keeps = |word: &Word| {
            let text = text_of(word);
            text.strip_prefix('-').is_none_or(|letters| letters.bytes().all(|letter| b"grx".contains(&letter)))
        };
        let keeps_values = arguments.iter().all(keeps);
        for argument in arguments {
            if let Some((Piece::Plain(first), rest)) = argument.split_first()
                && let Some((name, lead)) = first.split_once('=')
            {
                match name.strip_suffix('+') {
                    Some(name) => self.add(name, None),
                    None => self.add(name, Some(AssignedText { lead, rest, kind: ValueKind::Assigned })),
                }
                continue;
            }
            match literal(argument) {
                // Arithmetic in values, other names for the same variable.
                Some(option) if option.starts_with('-') => {
                    self.evaluates |= option.contains(['i', 'n']);
                    self.anything |= option.contains('n');
                }
                // Without a value it has the one that it is given elsewhere.
                Some(text) if keeps_values && !text.contains(['=', '[']) => {}
                Some(text) => self.add(text.split(['=', '+', '[']).next().unwrap_or_default(), None),
                None => {
                    let name = text_of(argument);
                    match name.split_once('=') {
                        Some((name, _)) if !name.is_empty() => self.add(name.trim_end_matches('+'), None),
                        _ => self.anything = true,
                    }
                }
            }
        }
    }

    /// Names that get a value from elsewhere; those of `read` get what it reads.
    fn filled(&mut self, arguments: &'a [Word], read: Option<()>) {
        for argument in arguments {
            let Some(text) = literal(argument) else {
                self.anything = true;
                continue;
            };
            if text.starts_with('-') {
                continue;
            }
            let name = text.split(['=', '[', '+', '-']).next().unwrap_or_default();
            match (read, self.entries.get(name)) {
                (Some(()), None | Some(Entry::Read)) => drop(self.entries.insert(name.to_owned(), Entry::Read)),
                _ => self.add(name, None),
            }
        }
    }

    /// Text that is not known runs here, and may give another value to every variable that was set before.
    fn run_elsewhere(&mut self) {
        (self.sourced, self.positional_change) = (true, true);
        self.entries.values_mut().for_each(|entry| *entry = Entry::Unknown);
    }

    /// What `eval` runs may assign anything.
    fn evaluated(&mut self, arguments: &'a [Word]) {
        let again = arguments.iter().take_while(|word| bare(word) == Some("eval")).count();
        let arguments = arguments.get(again..).unwrap_or_default();
        let text: Option<Vec<String>> = arguments.iter().map(|word| literal(word)).collect();
        let list = text.filter(|_| self.evals < MOST_EVALS).and_then(|words| parse(&words.join(" "), 0).ok());
        let Some(list) = list else { return self.run_elsewhere() };
        let mut inner = Variables { evals: self.evals + 1, ..Variables::default() };
        inner.list(&list);
        self.anything |= inner.anything;
        self.sourced |= inner.sourced;
        self.separators_change |= inner.separators_change;
        self.evaluates |= inner.evaluates;
        self.positional_change |= inner.positional_change;
        let names: Vec<String> = inner.names().map(str::to_owned).collect();
        for name in &names {
            self.add(name, None);
        }
    }

    fn words(&mut self, words: impl IntoIterator<Item = &'a Word>) {
        words.into_iter().for_each(|word| self.word(word));
    }

    fn word(&mut self, word: &'a Word) {
        for piece in word {
            match piece {
                Piece::Output { list, .. } | Piece::Process { list, .. } => self.list(list),
                Piece::Parameter { name, operator, word: inner, .. } => {
                    if operator.contains('=') {
                        self.add(name, None);
                    }
                    // Unusual ones: subscripts, offsets, `@P`, names in other variables.
                    self.evaluates |= operator.is_empty() && !inner.is_empty();
                    self.word(inner);
                }
                Piece::Arithmetic(inner) | Piece::Opaque(inner) => {
                    self.evaluates = true;
                    self.word(inner);
                }
                Piece::Plain(_) | Piece::Quoted(_) | Piece::Variable { .. } | Piece::Hole(_) => {}
            }
        }
    }
}

/// The array of which a word is all elements: `"${files[@]}"`.
pub(super) fn all_elements(word: &[Piece]) -> Option<&str> {
    let mut pieces = word.iter().filter(|piece| !matches!(piece, Piece::Quoted(text) if text.is_empty()));
    match (pieces.next(), pieces.next()) {
        (Some(Piece::Parameter { name, operator: "", word, .. }), None) => {
            (!name.is_empty() && literal(word).as_deref() == Some("[@]")).then_some(name)
        }
        _ => None,
    }
}

/// A word that is nothing but text, as a program would get it.
pub(crate) fn literal(word: &[Piece]) -> Option<String> {
    word.iter()
        .map(|piece| match piece {
            Piece::Plain(text) | Piece::Quoted(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// Whether a word has a subscript in quotes, which the builtin that gets it evaluates.
fn has_subscript(word: &[Piece]) -> bool {
    word.iter().any(|piece| matches!(piece, Piece::Quoted(text) if text.contains('[')))
}

/// The text of a word up to the first expansion.
fn text_of(word: &[Piece]) -> String {
    word.iter()
        .map_while(|piece| match piece {
            Piece::Plain(text) | Piece::Quoted(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}
