//! Words become fields: braces, tildes, variables, substitutions.

use ollm_shell::{List, Piece, Word, bare, wrapper};

use super::{
    Field, Fields, OuterScript, ShellPlace, Variables, brace, literal,
    output::is_silent,
    partial::{MOST_WAYS, PartialFields, choose, combined, go_on, is_pattern, lose, push},
    values::Values,
};

/// Stands for a stream of unknown content.
pub(crate) const UNSEEN_STREAM: &str = "/dev/fd/63";

/// How far values of variables are followed into one another.
pub(crate) const FARTHEST: usize = 8;

/// The words of a script's text and what they expand to.
pub(crate) struct Expander<'a> {
    pub(crate) variables: &'a Variables<'a>,
    pub(crate) place: &'a ShellPlace,
    /// What is set around the script.
    pub(crate) outer: &'a OuterScript,
    /// What `read` finds, where that is known.
    pub(crate) fed: &'a [Field],
}

impl<'a> Expander<'a> {
    /// For words at this place.
    pub(crate) fn new(
        variables: &'a Variables<'a>,
        place: &'a ShellPlace,
        outer: &'a OuterScript,
        fed: &'a [Field],
    ) -> Expander<'a> {
        Expander { variables, place, outer, fed }
    }

    /// Every list of fields that these words may become.
    pub(crate) fn words(&self, words: &'a [Word]) -> Vec<Fields> {
        self.ways(words, 0)
    }

    /// The same behind the fields of the words before; with `alike`, of values of a word that are alike only the first.
    pub(crate) fn words_behind(
        &self,
        before: Fields,
        words: &'a [Word],
        alike: Option<fn(&str) -> bool>,
    ) -> Vec<Fields> {
        self.ways_behind(before, words, 0, alike)
    }

    pub(crate) fn ways(&self, words: &'a [Word], far: usize) -> Vec<Fields> {
        self.ways_of(words, far, None)
    }

    /// The lists of fields that one word may become, without those that are alike, apart from the first.
    fn distinct(&self, word: &'a [Piece], far: usize, alike: fn(&str) -> bool) -> Vec<Fields> {
        let mut seen = false;
        let mut is_new = |is_alike: bool| !is_alike || !std::mem::replace(&mut seen, true);
        // The values of a variable are told apart before fields are made of them.
        if let [Piece::Variable { name, quoted }] = word
            && let Values::Texts(texts) = &*self.values(name, far)
            && !self.separators_change()
        {
            let texts: Vec<String> = texts.iter().filter(|text| is_new(alike(text))).cloned().collect();
            let mut ways = vec![PartialFields::default()];
            choose(&mut ways, &texts, *quoted);
            return ways.into_iter().map(PartialFields::finish).collect();
        }
        let mut choices = self.word(word, far);
        choices.retain(|choice| is_new(choice.iter().all(|field| field.known().is_some_and(alike))));
        choices
    }

    /// The fields that the first words become, as long as each can become only one.
    pub(crate) fn plain_fields(words: &[Word]) -> Fields {
        let mut fields = Fields::with_capacity(words.len());
        fields.extend(words.iter().map_while(|word| simple_field(word)));
        fields
    }

    fn ways_of(&self, words: &'a [Word], far: usize, alike: Option<fn(&str) -> bool>) -> Vec<Fields> {
        self.ways_behind(Fields::with_capacity(words.len()), words, far, alike)
    }

    /// The same behind fields that are known.
    fn ways_behind(
        &self,
        before: Fields,
        words: &'a [Word],
        far: usize,
        alike: Option<fn(&str) -> bool>,
    ) -> Vec<Fields> {
        let mut ways: Vec<Fields> = vec![before];
        for word in words {
            if let Some(field) = simple_field(word) {
                match ways.as_mut_slice() {
                    [way] => way.push(field),
                    ways => ways.iter_mut().for_each(|way| way.push(field.clone())),
                }
                continue;
            }
            let mut choices = match alike {
                Some(alike) => self.distinct(word, far, alike),
                None => self.word(word, far),
            };
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
            None if matches!(word, [Piece::Output { list, .. }] if self.output(list, far).is_unknown()) => {
                vec![vec![Field::unknown()]]
            }
            None => self.pieces(word, far),
        }
    }

    fn braced(&self, texts: &[String]) -> Vec<Fields> {
        let mut ways = vec![Fields::new()];
        for text in texts {
            let mut partial = vec![PartialFields::default()];
            self.plain(&mut partial, text, true);
            let fields: Vec<Fields> = partial.into_iter().map(PartialFields::finish).collect();
            ways = combined(ways, &fields);
            ways.truncate(MOST_WAYS);
        }
        ways
    }

    fn pieces(&self, word: &'a [Piece], far: usize) -> Vec<Fields> {
        let mut ways = vec![PartialFields::default()];
        for (index, piece) in word.iter().enumerate() {
            match piece {
                // Joined with other text, or empty, shells make different things of it.
                Piece::Process { list, prints } if is_apart(word) && !list.is_empty() => {
                    push(&mut ways, if *prints { self.stream(list, far) } else { "/dev/fd/62" });
                }
                _ => self.piece(&mut ways, piece, index == 0, None, far),
            }
        }
        ways.into_iter().map(PartialFields::finish).collect()
    }

    /// The file that a program gets for a process substitution, by what is known of what that prints.
    fn stream(&self, list: &'a List, far: usize) -> &'static str {
        if self.prints_its_own_code(list) {
            "/dev/null"
        } else if self.prints_known_text(list, far) {
            "/dev/fd/61"
        } else {
            UNSEEN_STREAM
        }
    }

    /// One piece; `quoted` overrides the piece in whether values stay in one field.
    pub(super) fn piece(
        &self,
        ways: &mut Vec<PartialFields>,
        piece: &'a Piece,
        first: bool,
        quoted: Option<bool>,
        far: usize,
    ) {
        match piece {
            Piece::Plain(text) => self.plain(ways, text, first),
            Piece::Quoted(text) => push(ways, text),
            Piece::Variable { name, quoted: own } => self.variable(ways, name, quoted.unwrap_or(*own), far),
            Piece::Output { list, quoted: own } => match self.output(list, far).as_ref() {
                Values::Texts(texts) => choose(ways, texts, quoted.unwrap_or(*own)),
                Values::Files(fields) => go_on(ways, fields, quoted.unwrap_or(*own)),
                Values::Unset | Values::Unknown => lose(ways),
            },
            Piece::Parameter { name, operator, word, quoted: own } => {
                self.parameter(ways, name, operator, word, quoted.unwrap_or(*own), far);
            }
            Piece::Process { .. } | Piece::Arithmetic(_) | Piece::Opaque(_) | Piece::Hole(_) => lose(ways),
        }
    }

    fn parameter(
        &self,
        ways: &mut Vec<PartialFields>,
        name: &str,
        operator: &str,
        word: &'a Word,
        quoted: bool,
        far: usize,
    ) {
        let named = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        match operator {
            // The command runs only if the variable has a value, so the value is what counts.
            ":?" | "?" if named => match &*self.values(name, far) {
                Values::Unset => ways.iter_mut().for_each(|way| way.open().lose_unset("set")),
                _ => self.variable(ways, name, quoted, far),
            },
            ":-" | "-" if named && far < FARTHEST => {
                let mut given = ways.clone();
                match &*self.values(name, far) {
                    Values::Unset => given.iter_mut().for_each(|way| way.open().lose_unset("set")),
                    _ => self.variable(&mut given, name, quoted, far),
                }
                self.otherwise(ways, given, word, quoted, far);
            }
            // What the script is given, if it is known whether it is given anything.
            ":-" | "-" if is_number(name) && far < FARTHEST && !self.variables.positional_change => {
                let mut given = ways.clone();
                match &self.outer.positional {
                    Some(_) => self.positional(&mut given, name, quoted),
                    None => given.iter_mut().for_each(|way| way.open().lose_unset("set")),
                }
                self.otherwise(ways, given, word, quoted, far);
            }
            "" if word.is_empty() => self.positional(ways, name, quoted),
            "" if named && matches!(literal(word).as_deref(), Some("[@]" | "[*]")) => {
                let is_joined = quoted && literal(word).as_deref() == Some("[*]");
                match self.arrays(name, far).filter(|arrays| !is_joined && self.keeps_elements(arrays, quoted)) {
                    Some(arrays) => {
                        *ways = ways.iter().flat_map(|way| arrays.iter().map(|array| way.with_all(array))).collect();
                    }
                    None => lose(ways),
                }
                if ways.len() > MOST_WAYS {
                    lose(ways);
                    ways.truncate(1);
                }
            }
            _ => lose(ways),
        }
    }

    /// The default of a variable, beside what it may be.
    fn otherwise(
        &self,
        ways: &mut Vec<PartialFields>,
        given: Vec<PartialFields>,
        word: &'a Word,
        quoted: bool,
        far: usize,
    ) {
        for (index, piece) in word.iter().enumerate() {
            match piece {
                // Text in a default counts as quoted, but for a tilde at its start.
                Piece::Quoted(text) if index == 0 && !quoted && text.starts_with('~') => self.plain(ways, text, true),
                _ => self.piece(ways, piece, index == 0, Some(quoted), far + 1),
            }
        }
        ways.extend(given);
        if ways.len() > MOST_WAYS {
            lose(ways);
            ways.truncate(1);
        }
    }

    /// `$1`, `$@` and the like.
    fn positional(&self, ways: &mut [PartialFields], name: &str, quoted: bool) {
        // The number of the shell: digits that a script cannot choose. `$!` may be empty, and `$#` and `$?` can be
        // chosen.
        if name == "$" {
            return push(ways, "0");
        }
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

    pub(super) fn plain(&self, ways: &mut Vec<PartialFields>, text: &str, first: bool) {
        let mut text = text;
        // `of=~/x`: some shells take it for an assignment.
        if first && let Some(at) = assigned_home(text) {
            let (name, value) = text.split_at(at);
            push(ways, name);
            text = value;
        }
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

    fn tilde(&self, ways: &mut Vec<PartialFields>, user: &str) {
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

    /// Whether each element of these arrays stays one argument.
    fn keeps_elements(&self, arrays: &[Fields], quoted: bool) -> bool {
        let is_one_word = |field: &Field| {
            field.known().is_some_and(|text| !text.is_empty() && !text.contains([' ', '\t', '\n']) && !is_pattern(text))
        };
        quoted || (!self.separators_change() && arrays.iter().flatten().all(is_one_word))
    }

    fn separators_change(&self) -> bool {
        self.variables.separators_change || self.outer.separators_change
    }

    fn variable(&self, ways: &mut Vec<PartialFields>, name: &str, quoted: bool, far: usize) {
        // With other separators a value may fall apart anywhere.
        let whole = quoted || !self.separators_change();
        match &*self.values(name, far) {
            Values::Texts(values) if whole => choose(ways, values, quoted),
            Values::Files(fields) => go_on(ways, fields, quoted),
            Values::Unset => ways.iter_mut().for_each(|way| way.open().lose_unset("")),
            Values::Texts(_) | Values::Unknown => lose(ways),
        }
    }
}

/// Whether a parameter is one of those that a script is given.
fn is_number(name: &str) -> bool {
    name != "0" && !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Where the value begins in a word that looks like an assignment of the person's own home. A name does not begin with a digit.
fn assigned_home(text: &str) -> Option<usize> {
    let at = text.find('=')?;
    let is_home = text.get(at + 1..).is_some_and(|value| value == "~" || value.starts_with("~/"));
    let is_name = wrapper::is_assignment(text) && !text.starts_with(|first: char| first.is_ascii_digit());
    (is_home && is_name).then_some(at + 1)
}

/// Whether a process substitution is a word of its own, or the value of an option.
fn is_apart(word: &[Piece]) -> bool {
    matches!(word, [_]) || matches!(word, [Piece::Plain(option), _] if option.ends_with('='))
}

/// The one field that a word becomes in which nothing expands, or all of it to something unknown; most words are such.
fn simple_field(word: &[Piece]) -> Option<Field> {
    match word {
        [Piece::Plain(text)] if !text.starts_with('~') && !brace::may_expand(text) && assigned_home(text).is_none() => {
            Some(Field { glob: is_pattern(text), ..Field::literal(text) })
        }
        [Piece::Quoted(text)] => Some(Field::literal(text)),
        [Piece::Output { list, .. }] if is_silent(list) => Some(Field::unknown()),
        _ => None,
    }
}
