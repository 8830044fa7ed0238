//! What a word becomes when the shell expands it, as far as that can be known beforehand.
//!
//! A variable counts as every value the script gives it, wherever it does so. What is not known stays visible: a
//! [`Field`] keeps the text before and after the unknown part.

mod brace;
mod variables;

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    rc::Rc,
};

use ollm_shell::{Body, List, Piece, Step, Word, bare};

use crate::program;

use variables::{Assigned, KnownValues, ValueKind};
pub(crate) use variables::{Variables, literal};

/// Where commands run, and what the shell would put for `~`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Every folder this may be.
    pub(crate) folders: Vec<std::path::PathBuf>,
    /// Whether it may be yet another one.
    pub(crate) lost: bool,
    /// The user's home.
    pub(crate) home: Option<std::path::PathBuf>,
    /// Folders under another name: what they are called here, and where they really are.
    pub(crate) mounts: Vec<(String, String)>,
    /// Whether it is another machine or a container.
    pub(crate) elsewhere: bool,
}

/// One argument as a program would receive it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field {
    /// The text, or the part before what is not known.
    pub(crate) text: String,
    /// The part behind what is not known; `None` when all is known.
    pub(crate) tail: Option<String>,
    /// Whether wildcards in it count.
    pub(crate) glob: bool,
    /// What it would be if the variables that nothing in the script sets were empty; only where they alone are not known.
    pub(crate) hollow: Option<String>,
}

impl Field {
    /// A field whose text is known.
    pub(crate) fn literal(text: impl Into<String>) -> Field {
        Field { text: text.into(), ..Field::default() }
    }

    /// A field of which nothing is known.
    pub(crate) fn unknown() -> Field {
        Field::below("")
    }

    /// A field of which only the beginning is known.
    pub(crate) fn below(text: impl Into<String>) -> Field {
        Field { text: text.into(), tail: Some(String::new()), ..Field::default() }
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
        if let Some(hollow) = &mut self.hollow {
            hollow.push_str(text);
        }
    }

    fn lose(&mut self) {
        self.tail = Some(String::new());
        self.hollow = None;
    }

    /// Goes on with the value of a variable that nothing sets here: whatever it is, or this.
    fn lose_unset(&mut self, otherwise: &str) {
        let before = if self.tail.is_none() { Some(self.text.clone()) } else { self.hollow.take() };
        self.hollow = before.map(|before| before + otherwise);
        self.tail = Some(String::new());
    }

    /// Goes on with another field.
    fn append(&mut self, other: &Field) {
        self.push(&other.text);
        self.glob |= other.glob;
        if let Some(tail) = &other.tail {
            self.lose();
            self.push(tail);
        }
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
pub(crate) const FARTHEST: usize = 8;

/// The words of a script's text and what they expand to.
pub(crate) struct Expander<'a> {
    pub(crate) variables: &'a Variables<'a>,
    pub(crate) place: &'a Place,
    /// What is set around the script.
    pub(crate) outer: &'a Outer,
    /// What `read` finds, where that is known.
    pub(crate) fed: &'a [Field],
}

/// What surrounds a script: the one that runs it, and what that one has set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outer {
    /// Variables that are set there, and every value they may have; nothing if some of them are not known.
    pub(crate) names: Rc<HashMap<String, Option<Vec<String>>>>,
    /// Whether any variable may be set there.
    pub(crate) anything: bool,
    /// Whether values may fall apart at other separators.
    pub(crate) separators_change: bool,
    /// `$1`, `$2` and so on, if the script is given them.
    pub(crate) positional: Option<Fields>,
}

impl Outer {
    /// Adds a variable of which no value is known.
    pub(crate) fn taint(&mut self, name: &str) {
        Rc::make_mut(&mut self.names).insert(name.to_owned(), None);
    }
}

impl<'a> Expander<'a> {
    /// Every list of fields that these words may become.
    pub(crate) fn words(&self, words: &'a [Word]) -> Vec<Fields> {
        self.ways(words, 0)
    }

    pub(crate) fn ways(&self, words: &'a [Word], far: usize) -> Vec<Fields> {
        let mut ways: Vec<Fields> = vec![Fields::new()];
        for word in words {
            let mut choices = self.word(word, far);
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
            Some(text) => brace::expand(text)
                .map_or_else(|| vec![vec![Field::below(brace::stem(text))]], |texts| self.braced(&texts)),
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
                // Joined with other text, or empty, shells make different things of it.
                Piece::Process(list) if word.len() == 1 && !list.is_empty() => {
                    push(&mut ways, if self.prints_its_own_code(list) { "/dev/null" } else { "/dev/fd/63" });
                }
                _ => self.piece(&mut ways, piece, index == 0, None, far),
            }
        }
        ways.into_iter().map(Partial::finish).collect()
    }

    /// One piece; `quoted` says whether values stay in one field, whatever the piece says.
    fn piece(&self, ways: &mut Vec<Partial>, piece: &'a Piece, first: bool, quoted: Option<bool>, far: usize) {
        match piece {
            Piece::Plain(text) => self.plain(ways, text, first),
            Piece::Quoted(text) => push(ways, text),
            Piece::Variable { name, quoted: own } => self.variable(ways, name, quoted.unwrap_or(*own), far),
            Piece::Output { list, quoted: own } => match self.output(list, far) {
                Some(texts) => choose(ways, &texts, quoted.unwrap_or(*own)),
                None => match self.listed(list, far) {
                    Some(fields) => go_on(ways, &fields),
                    None => lose(ways),
                },
            },
            Piece::Parameter { name, operator, word, quoted: own } => {
                self.parameter(ways, name, operator, word, quoted.unwrap_or(*own), far);
            }
            Piece::Process(_) | Piece::Arithmetic(_) | Piece::Opaque(_) | Piece::Hole(_) => lose(ways),
        }
    }

    fn parameter(&self, ways: &mut Vec<Partial>, name: &str, operator: &str, word: &'a Word, quoted: bool, far: usize) {
        let named = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        match operator {
            // The command runs only if the variable has a value, so the value is what counts.
            ":?" | "?" if named => match self.values(name, far) {
                Values::Unset => ways.iter_mut().for_each(|way| way.open().lose_unset("set")),
                _ => self.variable(ways, name, quoted, far),
            },
            ":-" | "-" if named && far < FARTHEST => {
                let mut given = ways.clone();
                match self.values(name, far) {
                    Values::Unset => given.iter_mut().for_each(|way| way.open().lose_unset("set")),
                    _ => self.variable(&mut given, name, quoted, far),
                }
                for (index, piece) in word.iter().enumerate() {
                    self.piece(ways, piece, index == 0, Some(quoted), far + 1);
                }
                ways.extend(given);
                if ways.len() > MOST_WAYS {
                    lose(ways);
                    ways.truncate(1);
                }
            }
            "" if word.is_empty() => self.positional(ways, name, quoted),
            _ => lose(ways),
        }
    }

    /// `$1`, `$@` and the like.
    fn positional(&self, ways: &mut [Partial], name: &str, quoted: bool) {
        let given = self.outer.positional.as_ref().filter(|_| !self.variables.positional_change);
        let Some(positional) = given else { return lose(ways) };
        match name.parse::<usize>() {
            Ok(at) => match positional.get(at) {
                Some(field) if quoted || field.known().is_none_or(|text| !text.contains([' ', '\t', '\n'])) => {
                    for way in ways {
                        way.open().append(field);
                    }
                }
                Some(_) => lose(ways),
                None => push(ways, ""),
            },
            Err(_) if matches!(name, "@" | "*") => {
                for way in ways {
                    for (index, field) in positional.iter().skip(1).enumerate() {
                        if index > 0 {
                            way.done.extend(way.current.take());
                        }
                        way.open().append(field);
                    }
                }
            }
            Err(_) => lose(ways),
        }
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
            name if name.starts_with(['+', '-']) || name.bytes().all(|byte| byte.is_ascii_digit()) => lose(ways),
            name => push(ways, &format!("~{name}")),
        }
    }

    fn variable(&self, ways: &mut Vec<Partial>, name: &str, quoted: bool, far: usize) {
        // With other separators a value may fall apart anywhere.
        let whole = quoted || !(self.variables.separators_change || self.outer.separators_change);
        match self.values(name, far) {
            Values::Texts(values) if whole => choose(ways, &values, quoted),
            Values::Files(fields) => go_on(ways, &fields),
            Values::Unset => ways.iter_mut().for_each(|way| way.open().lose_unset("")),
            Values::Texts(_) | Values::Unknown => lose(ways),
        }
    }

    /// Every text a variable may hold, if all are known.
    pub(crate) fn texts(&self, name: &str) -> Option<Vec<String>> {
        match self.values(name, 0) {
            Values::Texts(texts) => Some(texts),
            Values::Files(_) | Values::Unset | Values::Unknown => None,
        }
    }

    /// Every value a variable may have; looked up once for each place.
    fn values(&self, name: &str, far: usize) -> Values {
        if !matches!(self.variables.of(name), Assigned::Values(_)) {
            return self.looked_up(name, far);
        }
        if let Some(known) = self.variables.known.borrow().get(name)
            && (&known.folders, known.lost) == (&self.place.folders, self.place.lost)
        {
            return known.values.clone();
        }
        let values = self.looked_up(name, far);
        if far == 0 {
            let (folders, lost) = (self.place.folders.clone(), self.place.lost);
            let known = KnownValues { folders, lost, values: values.clone() };
            self.variables.known.borrow_mut().insert(name.to_owned(), known);
        }
        values
    }

    fn looked_up(&self, name: &str, far: usize) -> Values {
        let mut values: Vec<String> = match name {
            "HOME" => self.place.home.iter().filter_map(|home| utf8(home)).collect(),
            "PWD" if self.place.lost => return Values::Unknown,
            "PWD" => self.place.folders.iter().filter_map(|folder| utf8(folder)).collect(),
            _ => Vec::new(),
        };
        let mut files = Fields::new();
        if matches!(self.variables.of(name), Assigned::Read) && !self.fed.is_empty() {
            return Values::Files(self.fed.to_vec());
        }
        match self.outer.names.get(name) {
            None => {}
            Some(None) => return Values::Unknown,
            Some(Some(outer)) => values.extend(outer.iter().cloned()),
        }
        match self.variables.of(name) {
            Assigned::Never if !values.is_empty() => {}
            Assigned::Never => return self.unset(name),
            Assigned::Read | Assigned::Unknown => return Values::Unknown,
            Assigned::Values(_) if far >= FARTHEST => return Values::Unknown,
            Assigned::Values(assigned) => {
                for value in assigned {
                    if let ("", [Piece::Output { list, .. }]) = (value.lead, value.rest)
                        && let Some(listed) = self.listed(list, far)
                    {
                        files.extend(listed);
                        continue;
                    }
                    for fields in self.value(value, far + 1) {
                        let [Field { text, tail: None, glob, .. }] = fields.as_slice() else { return Values::Unknown };
                        match value.kind {
                            ValueKind::Listing => values.extend(text.split_whitespace().map(str::to_owned)),
                            ValueKind::Element if *glob => files.push(Field { glob: true, ..Field::literal(text) }),
                            _ => values.push(text.clone()),
                        }
                    }
                }
            }
        }
        let mut seen = HashSet::new();
        values.retain(|value| seen.insert(value.clone()));
        if !files.is_empty() {
            files.extend(values.into_iter().map(Field::literal));
            return Values::Files(files);
        }
        if values.is_empty() || values.len() > MOST_WAYS { Values::Unknown } else { Values::Texts(values) }
    }

    /// A variable that nothing in the script sets: the user's, or empty.
    fn unset(&self, name: &str) -> Values {
        if self.outer.anything
            || self.variables.anything
            || self.variables.sourced
            || name == "HOME"
            || program::is_precious_variable(name)
        {
            return Values::Unknown;
        }
        program::by_convention(name).map_or(Values::Unset, |program| Values::Texts(vec![program.to_owned()]))
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
            self.piece(&mut ways, piece, index == 0 && value.lead.is_empty(), Some(true), far);
        }
        ways.into_iter().map(Partial::finish).collect()
    }

    /// What a substitution prints, for the few commands whose answer is known.
    fn output(&self, list: &'a List, far: usize) -> Option<Vec<String>> {
        if self.prints_its_own_code(list) {
            return Some(vec![String::new()]);
        }
        let words = simple(list)?;
        if far >= FARTHEST {
            return None;
        }
        let mut texts = Vec::new();
        for fields in self.ways(words, far + 1) {
            let words: Vec<&str> = fields.iter().map(|field| field.known()).collect::<Option<_>>()?;
            texts.extend(self.printed(&words)?);
        }
        (texts.len() <= MOST_WAYS).then_some(texts)
    }

    fn printed(&self, words: &[&str]) -> Option<Vec<String>> {
        let one = |text: String| Some(vec![text]);
        match words {
            ["pwd"] if !self.place.lost => Some(self.place.folders.iter().filter_map(|folder| utf8(folder)).collect()),
            ["mktemp", rest @ ..] if rest.iter().all(|option| *option == "-d") => one("/tmp/tmp.new".to_owned()),
            ["echo", "-n", rest @ ..] | ["echo", rest @ ..]
                if !rest.concat().contains('\\') && !rest.first().is_some_and(|first| first.starts_with('-')) =>
            {
                one(rest.join(" "))
            }
            ["printf", format, rest @ ..] => one(formatted(format, rest)?),
            ["dirname", file] => one(parent(file)),
            ["basename", file] => one(file.trim_end_matches('/').rsplit('/').next()?.to_owned()),
            ["realpath", file] | ["readlink", "-f", file] => one((*file).to_owned()),
            [name, rest @ ..] if !rest.concat().contains('/') => one(program::printed_word(name)?.to_owned()),
            _ => None,
        }
    }

    /// Whether a substitution is one program that prints its own code.
    fn prints_its_own_code(&self, list: &'a List) -> bool {
        let words = simple(list).map(|words| self.ways(words, FARTHEST));
        words.is_some_and(|ways| {
            let plain = |fields: &Fields| fields.iter().all(|field| field.known().is_some());
            let own = |fields: &Fields| fields.first().is_some_and(|first| program::prints_its_own_code(&first.text));
            ways.iter().all(|fields| plain(fields) && own(fields))
        })
    }
}

/// What a variable may hold.
#[derive(Clone, Debug)]
enum Values {
    Texts(Vec<String>),
    /// Names of files that were listed.
    Files(Fields),
    /// The user's value, or none.
    Unset,
    Unknown,
}

/// The words of a list that is one plain command.
fn simple(list: &List) -> Option<&[Word]> {
    let [Step { pipeline, .. }] = list.as_slice() else { return None };
    let [command] = pipeline.as_slice() else { return None };
    let Body::Simple { assigns, words } = &command.body else { return None };
    (assigns.is_empty() && command.redirects.is_empty()).then_some(words)
}

/// What `printf` prints, for formats with nothing but `%s` and `%d` in them.
pub(crate) fn formatted(format: &str, arguments: &[&str]) -> Option<String> {
    let format = format.strip_suffix("\\n").unwrap_or(format);
    let mut parts = format.split("%s").flat_map(|part| part.split("%d"));
    let mut text = parts.next()?.to_owned();
    let mut arguments = arguments.iter();
    for part in parts {
        text.push_str(arguments.next().unwrap_or(&""));
        text.push_str(part);
    }
    let plain = !format.replace("%s", "").replace("%d", "").contains(['%', '\\']);
    (plain && arguments.next().is_none()).then_some(text)
}

fn parent(file: &str) -> String {
    let file = file.trim_end_matches('/');
    match file.rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
        None => ".".to_owned(),
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

    /// The same, going on with another field.
    fn with(&self, field: &Field) -> Partial {
        let mut way = self.clone();
        way.open().append(field);
        way
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

/// Goes on with each of several fields.
fn go_on(ways: &mut Vec<Partial>, fields: &[Field]) {
    if ways.len() * fields.len() > MOST_WAYS {
        return lose(ways);
    }
    *ways = ways.iter().flat_map(|way| fields.iter().map(|field| way.with(field))).collect();
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
