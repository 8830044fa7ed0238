//! What a word becomes when the shell expands it, as far as that can be known beforehand.
//!
//! A variable counts as every value the script gives it, wherever it does so. What is not known stays visible: a
//! [`Field`] keeps the text before and after the unknown part.

mod brace;
mod variables;

use std::path::Path;

use ollm_shell::{Body, List, Piece, Step, Word, bare};

pub(crate) use variables::Variables;

/// Where commands run, and what the shell would put for `~`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Every folder this may be.
    pub(crate) folders: Vec<std::path::PathBuf>,
    /// Whether it may be yet another one.
    pub(crate) lost: bool,
    /// The user's home.
    pub(crate) home: Option<std::path::PathBuf>,
}

/// One argument as a program would receive it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// The text, or the part before what is not known.
    pub(crate) text: String,
    /// The part behind what is not known; `None` when all is known.
    pub(crate) tail: Option<String>,
    /// Whether wildcards in it count.
    pub(crate) glob: bool,
}

impl Field {
    /// A field whose text is known.
    pub(crate) fn literal(text: impl Into<String>) -> Field {
        Field { text: text.into(), tail: None, glob: false }
    }

    /// A field of which nothing is known.
    pub(crate) fn unknown() -> Field {
        Field { text: String::new(), tail: Some(String::new()), glob: false }
    }

    /// The whole text, when it is known and stands for itself.
    pub(crate) fn known(&self) -> Option<&str> {
        (self.tail.is_none() && !self.glob).then_some(self.text.as_str())
    }

    /// Whether part of it is not known.
    pub(crate) fn open(&self) -> bool {
        self.tail.is_some()
    }

    fn push(&mut self, text: &str) {
        self.tail.as_mut().unwrap_or(&mut self.text).push_str(text);
    }

    fn lose(&mut self) {
        self.tail = Some(String::new());
    }

    /// The field as it was written, more or less.
    pub(crate) fn shown(&self) -> String {
        match &self.tail {
            None => self.text.clone(),
            Some(tail) => format!("{}…{tail}", self.text),
        }
    }
}

/// The fields one word may become.
pub(crate) type Fields = Vec<Field>;

/// How many ways of expanding one command are followed.
const MOST_WAYS: usize = 64;

/// How far values of variables are followed into one another.
const FARTHEST: usize = 8;

/// The words of a script's text and what they expand to.
pub(crate) struct Expander<'a> {
    pub(crate) variables: &'a Variables<'a>,
    pub(crate) place: &'a Place,
}

impl<'a> Expander<'a> {
    /// Every list of fields that these words may become.
    pub(crate) fn words(&self, words: &'a [Word]) -> Vec<Fields> {
        let mut ways: Vec<Fields> = vec![Fields::new()];
        for word in words {
            let mut choices = self.word(word, 0);
            if ways.len() * choices.len() > MOST_WAYS {
                choices = vec![vec![Field::unknown()]];
            }
            ways = combined(ways, &choices);
        }
        ways
    }

    /// Every list of fields that one word may become.
    pub(crate) fn word(&self, word: &'a [Piece], far: usize) -> Vec<Fields> {
        match bare(word) {
            Some(text) => brace::expand(text).map_or_else(
                || vec![vec![Field { text: brace::stem(text).to_owned(), tail: Some(String::new()), glob: false }]],
                |texts| self.braced(&texts),
            ),
            None if brace::spread(word) => vec![vec![Field::unknown()]],
            None => self.pieces(word, far),
        }
    }

    fn braced(&self, texts: &[String]) -> Vec<Fields> {
        let mut ways = vec![Fields::new()];
        for text in texts {
            let mut partial = vec![Partial::default()];
            self.plain(&mut partial, text, true);
            let fields: Vec<Fields> = partial.into_iter().map(Partial::finish).collect();
            ways = combined(ways, &fields);
            ways.truncate(MOST_WAYS);
        }
        ways
    }

    fn pieces(&self, word: &'a [Piece], far: usize) -> Vec<Fields> {
        let mut ways = vec![Partial::default()];
        for (index, piece) in word.iter().enumerate() {
            match piece {
                Piece::Plain(text) => self.plain(&mut ways, text, index == 0),
                Piece::Quoted(text) => push(&mut ways, text),
                Piece::Variable { name, quoted } => self.variable(&mut ways, name, *quoted, far),
                Piece::Output { list, quoted } => match self.output(list) {
                    Some(texts) => choose(&mut ways, &texts, *quoted),
                    None => lose(&mut ways),
                },
                // Joined with other text, or empty, shells make different things of it.
                Piece::Process(list) if word.len() == 1 && !list.is_empty() => push(&mut ways, "/dev/fd/63"),
                Piece::Parameter { name, quoted, .. } if is_checked(piece) => {
                    self.variable(&mut ways, name, *quoted, far);
                }
                Piece::Process(_)
                | Piece::Parameter { .. }
                | Piece::Arithmetic(_)
                | Piece::Opaque(_)
                | Piece::Hole(_) => lose(&mut ways),
            }
        }
        ways.into_iter().map(Partial::finish).collect()
    }

    fn plain(&self, ways: &mut Vec<Partial>, text: &str, first: bool) {
        let mut text = text;
        if first && let Some(rest) = text.strip_prefix('~') {
            let (user, tail) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            self.tilde(ways, user);
            text = tail;
        }
        for way in ways {
            let field = way.open();
            field.push(text);
            field.glob |= is_pattern(text);
        }
    }

    fn tilde(&self, ways: &mut Vec<Partial>, user: &str) {
        match user {
            "" => self.variable(ways, "HOME", true, 0),
            "+" => self.variable(ways, "PWD", true, 0),
            "root" => choose(ways, &["/root".to_owned()], true),
            name if name.chars().all(|next| next.is_ascii_alphanumeric() || next == '_') => {
                choose(ways, &[format!("/home/{name}")], true);
            }
            _ => lose(ways),
        }
    }

    fn variable(&self, ways: &mut Vec<Partial>, name: &str, quoted: bool, far: usize) {
        match self.values(name, far) {
            // With other separators a value may fall apart anywhere.
            Some(values) if quoted || !self.variables.separators_change => choose(ways, &values, quoted),
            _ => lose(ways),
        }
    }

    /// Every value a variable may have, if all are known.
    fn values(&self, name: &str, far: usize) -> Option<Vec<String>> {
        let mut values = match name {
            "HOME" => self.place.home.iter().filter_map(|home| utf8(home)).collect(),
            "PWD" if self.place.lost => return None,
            "PWD" => self.place.folders.iter().filter_map(|folder| utf8(folder)).collect(),
            _ => Vec::new(),
        };
        if far < FARTHEST {
            for value in self.variables.of(name)? {
                for fields in self.value(value, far + 1) {
                    let [field] = fields.as_slice() else { return None };
                    values.push(field.tail.is_none().then(|| field.text.clone())?);
                }
            }
        }
        (!values.is_empty() && values.len() <= MOST_WAYS).then_some(values)
    }

    /// A value is expanded like a quoted word: it is not split.
    fn value(&self, value: &variables::Value<'a>, far: usize) -> Vec<Fields> {
        let mut ways = vec![Partial::default()];
        if let [way] = ways.as_mut_slice() {
            way.open();
        }
        if !value.lead.is_empty() {
            self.plain(&mut ways, value.lead, true);
        }
        for (index, piece) in value.rest.iter().enumerate() {
            match piece {
                Piece::Plain(text) => self.plain(&mut ways, text, index == 0 && value.lead.is_empty()),
                Piece::Quoted(text) => push(&mut ways, text),
                Piece::Variable { name, .. } => self.variable(&mut ways, name, true, far),
                Piece::Output { list, .. } => match self.output(list) {
                    Some(texts) => choose(&mut ways, &texts, true),
                    None => lose(&mut ways),
                },
                Piece::Parameter { name, .. } if is_checked(piece) => self.variable(&mut ways, name, true, far),
                Piece::Process(_)
                | Piece::Parameter { .. }
                | Piece::Arithmetic(_)
                | Piece::Opaque(_)
                | Piece::Hole(_) => lose(&mut ways),
            }
        }
        ways.into_iter().map(Partial::finish).collect()
    }

    /// What a substitution prints, for the few commands whose answer is known.
    fn output(&self, list: &List) -> Option<Vec<String>> {
        let [Step { pipeline, .. }] = list.as_slice() else { return None };
        let [command] = pipeline.as_slice() else { return None };
        let Body::Simple { assigns, words } = &command.body else { return None };
        if !assigns.is_empty() || !command.redirects.is_empty() {
            return None;
        }
        let words: Vec<&str> = words.iter().map(|word| bare(word)).collect::<Option<_>>()?;
        match words.as_slice() {
            ["pwd"] if !self.place.lost => Some(self.place.folders.iter().filter_map(|folder| utf8(folder)).collect()),
            ["mktemp", rest @ ..] if rest.iter().all(|option| *option == "-d") => Some(vec!["/tmp/tmp.new".to_owned()]),
            _ => None,
        }
    }
}

/// Whether this is `${NAME:?…}`: the command runs only if the variable has a value, so the value is what counts.
fn is_checked(piece: &Piece) -> bool {
    match piece {
        Piece::Parameter { name, operator: ":?" | "?", word, .. } => {
            let named = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
            named && word.iter().all(|piece| matches!(piece, Piece::Quoted(_)))
        }
        _ => false,
    }
}

/// Every way followed by every choice.
fn combined(mut ways: Vec<Fields>, choices: &[Fields]) -> Vec<Fields> {
    if let [choice] = choices {
        for way in &mut ways {
            way.extend(choice.iter().cloned());
        }
        return ways;
    }
    let longer = |way: &Fields| choices.iter().map(|choice| [way.as_slice(), choice].concat()).collect::<Vec<_>>();
    ways.iter().flat_map(longer).collect()
}

fn utf8(path: &Path) -> Option<String> {
    path.to_str().map(str::to_owned)
}

/// Fields under construction.
#[derive(Clone, Default)]
struct Partial {
    done: Fields,
    current: Option<Field>,
}

impl Partial {
    fn open(&mut self) -> &mut Field {
        self.current.get_or_insert_with(|| Field::literal(""))
    }

    /// Adds text that falls apart at blanks.
    fn split(&mut self, text: &str) {
        let glob = is_pattern(text);
        let mut parts = text.split([' ', '\t', '\n']).peekable();
        while let Some(part) = parts.next() {
            if !part.is_empty() {
                let field = self.open();
                field.push(part);
                field.glob |= glob;
            }
            if parts.peek().is_some() {
                self.done.extend(self.current.take());
            }
        }
    }

    fn finish(mut self) -> Fields {
        self.done.extend(self.current);
        self.done
    }
}

fn push(ways: &mut [Partial], text: &str) {
    for way in ways {
        way.open().push(text);
    }
}

fn lose(ways: &mut [Partial]) {
    for way in ways {
        way.open().lose();
    }
}

/// Whether a shell would look for files that fit this text.
fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?']) || (text.contains('[') && text.len() > 1)
}

/// Goes on with each of several texts.
fn choose(ways: &mut Vec<Partial>, texts: &[String], quoted: bool) {
    if ways.len() * texts.len() > MOST_WAYS {
        lose(ways);
        return;
    }
    *ways = ways
        .iter()
        .flat_map(|way| {
            texts.iter().map(move |text| {
                let mut way = way.clone();
                if quoted {
                    way.open().push(text);
                } else {
                    way.split(text);
                }
                way
            })
        })
        .collect();
}
