//! Reads one word: its quotes and expansions, and the variables in each of their quoting positions.

use super::scan::{Mark, Scanner};
use crate::template::{Position, TemplateError, parse};

/// Stands in a word's text for what only the shell knows.
pub(super) const HOLE: char = '\u{fffc}';

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Word {
    /// The word as written.
    pub(super) source: String,
    /// The word without its quotes, a [`HOLE`] for every expansion.
    pub(super) text: String,
    /// Nothing in it is quoted or expanded.
    pub(super) plain: bool,
    /// Some of it is quoted.
    quoted: bool,
    /// It expands `$@`, of which not even quotes leave anything if there are no parameters.
    splat: bool,
    /// The first variable in it.
    pub(super) mark: Option<Mark>,
}

/// How the text around a variable is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    None,
    Single,
    Double,
    /// In double quotes, in the pattern of a `${name#pattern}`.
    Pattern,
}

impl Word {
    /// Whether the shell may find that there is no word here.
    pub(super) fn vanishes(&self) -> bool {
        self.text.is_empty() && !self.plain && (self.splat || !self.quoted)
    }

    /// The name of the variable that the word assigns, if it is an assignment.
    pub(super) fn assigned(&self) -> Option<&str> {
        let (name, _) = self.source.split_once('=')?;
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        (starts && name.chars().all(is_name)).then_some(name)
    }
}

impl<'a> Scanner<'a> {
    /// A word up to the next blank or operator; empty if there is none.
    pub(super) fn word(&mut self) -> Result<Word, TemplateError> {
        let mut word = Word { plain: true, ..Word::default() };
        let start = self.at;
        while let Some(next) = self.peek() {
            if " \t\n;&|<>()".contains(next) || self.continues()? {
                break;
            }
            self.bare(next, Quoting::None, &mut word)?;
        }
        self.source.get(start..self.at).unwrap_or_default().clone_into(&mut word.source);
        Ok(word)
    }

    /// Whether a line continuation ends the word here.
    fn continues(&self) -> Result<bool, TemplateError> {
        match self.rest().strip_prefix("\\\n") {
            None => Ok(false),
            Some(after) if after.starts_with([' ', '\t']) => Ok(true),
            Some(_) => Err(self.unclear("a line continuation within a word")),
        }
    }

    /// One piece of a word outside quotes.
    fn bare(&mut self, next: char, quoting: Quoting, word: &mut Word) -> Result<(), TemplateError> {
        if self.variable(quoting, word)? {
            return Ok(());
        }
        match next {
            '\'' => self.single(word),
            '"' => self.double(word),
            '\\' => self.escape(word),
            '$' => self.dollar(quoting, word),
            '`' => self.backticks(word),
            _ => {
                word.text.push(next);
                self.copy(next.len_utf8());
                Ok(())
            }
        }
    }

    /// Replaces the variable that stands here, if one does.
    fn variable(&mut self, quoting: Quoting, word: &mut Word) -> Result<bool, TemplateError> {
        let Some((path, length)) = parse::variable(self.rest()) else {
            return Ok(false);
        };
        let mark = self.mark(path);
        if let Some(position) = &self.forbidden {
            return Err(mark.refuse(position.clone()));
        }
        let index = self.paths.iter().position(|known| known == path).unwrap_or_else(|| {
            self.paths.push(path.to_owned());
            self.paths.len() - 1
        });
        let reference = format!("${{{}}}", super::name(index));
        match quoting {
            Quoting::None | Quoting::Pattern => self.out.extend(["\"", &reference, "\""]),
            Quoting::Single => self.out.extend(["'\"", &reference, "\"'"]),
            Quoting::Double => self.out.push_str(&reference),
        }
        self.at += length;
        self.expands(Some(mark), word);
        Ok(true)
    }

    /// Notes an expansion in the word, and the variable it brings along.
    fn expands(&mut self, mark: Option<Mark>, word: &mut Word) {
        word.plain = false;
        word.text.push(HOLE);
        if let Some(mark) = mark {
            self.marks.push(mark.clone());
            word.mark.get_or_insert(mark);
        }
    }

    fn single(&mut self, word: &mut Word) -> Result<(), TemplateError> {
        let opened = self.at;
        word.plain = false;
        word.quoted = true;
        self.copy(1);
        loop {
            if self.variable(Quoting::Single, word)? {
                continue;
            }
            let next = self.quoted("a single quote", opened)?;
            self.copy(next.len_utf8());
            if next == '\'' {
                return Ok(());
            }
            word.text.push(next);
        }
    }

    fn double(&mut self, word: &mut Word) -> Result<(), TemplateError> {
        let opened = self.at;
        word.plain = false;
        word.quoted = true;
        self.copy(1);
        loop {
            if self.variable(Quoting::Double, word)? {
                continue;
            }
            let next = self.quoted("a double quote", opened)?;
            match next {
                '"' => {
                    self.copy(1);
                    return Ok(());
                }
                '\\' => self.escape(word)?,
                '$' => self.dollar(Quoting::Double, word)?,
                '`' => self.backticks(word)?,
                _ => {
                    word.text.push(next);
                    self.copy(next.len_utf8());
                }
            }
        }
    }

    /// The next character of something that must still be closed.
    fn quoted(&self, opened: &'static str, at: usize) -> Result<char, TemplateError> {
        let next = self.peek().ok_or_else(|| self.unclosed(opened, at))?;
        if next == '\n' && self.awaits_document() {
            return Err(self.unclear("a quoted line break before a here-document"));
        }
        Ok(next)
    }

    /// A backslash and the character after it.
    fn escape(&mut self, word: &mut Word) -> Result<(), TemplateError> {
        word.plain = false;
        word.quoted = true;
        self.copy(1);
        if let Some((path, _)) = parse::variable(self.rest()) {
            return Err(self.mark(path).refuse(Position::Escaped));
        }
        let Some(next) = self.peek() else {
            return Err(self.unclear("a backslash at the end"));
        };
        if next == '\n' && self.awaits_document() {
            return Err(self.unclear("a quoted line break before a here-document"));
        }
        word.text.push(next);
        self.copy(next.len_utf8());
        Ok(())
    }

    fn backticks(&mut self, word: &mut Word) -> Result<(), TemplateError> {
        let opened = self.at;
        self.copy(1);
        loop {
            match self.quoted("a backtick", opened)? {
                '`' => break,
                '\\' => {
                    self.copy(1);
                    let next = self.quoted("a backtick", opened)?;
                    self.copy_plain(next.len_utf8(), &Position::Backticks)?;
                }
                next => self.copy_plain(next.len_utf8(), &Position::Backticks)?,
            }
        }
        self.copy(1);
        self.expands(None, word);
        Ok(())
    }

    fn dollar(&mut self, quoting: Quoting, word: &mut Word) -> Result<(), TemplateError> {
        let after = self.rest().get(1..).unwrap_or_default();
        if let Some((path, _)) = parse::variable(after) {
            return Err(self.mark(path).refuse(Position::AfterDollar));
        }
        match after.chars().next() {
            Some('(') if after.starts_with("((") => self.arithmetic(word)?,
            Some('(') => {
                let before = self.marks.len();
                self.copy(2);
                self.substitution()?;
                let mark = self.marks.get(before).cloned();
                self.expands(mark, word);
            }
            Some('{') => self.braces(quoting, word)?,
            Some('[') => return Err(self.unclear("`$[`")),
            Some('\'' | '"') if quoting == Quoting::None => {
                return Err(self.unclear("`$'…'` or `$\"…\"`"));
            }
            Some('\\') if after.starts_with("\\\n") => {
                return Err(self.unclear("a line continuation within a word"));
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name: String = after.chars().take_while(|c| is_name(*c)).collect();
                if name == "_" {
                    return Err(self.unclear("`$_`"));
                }
                self.copy(1 + name.len());
                self.reference(&name, word);
            }
            Some(c) if is_special(c) || c.is_ascii_digit() => {
                self.copy(2);
                word.splat |= c == '@';
                self.expands(None, word);
            }
            _ => {
                word.plain = false;
                word.text.push('$');
                self.copy(1);
            }
        }
        Ok(())
    }

    /// A shell variable is expanded: it may hold a value.
    fn reference(&mut self, name: &str, word: &mut Word) {
        let mark = self.tainted.get(name).cloned();
        self.expands(mark, word);
    }

    /// `$((…))`, in which the shell would look into a value.
    fn arithmetic(&mut self, word: &mut Word) -> Result<(), TemplateError> {
        let opened = self.at;
        self.deeper()?;
        self.copy("$((".len());
        let outer = self.forbidden.replace(Position::Arithmetic);
        let mut open = 0_usize;
        loop {
            if self.variable(Quoting::Double, word)? {
                continue;
            }
            match self.quoted("`$((`", opened)? {
                ')' if open == 0 => break,
                ')' => {
                    open -= 1;
                    self.copy(1);
                }
                '(' => {
                    open += 1;
                    self.copy(1);
                }
                '$' => {
                    let before = self.marks.len();
                    self.dollar(Quoting::Double, word)?;
                    if let Some(mark) = self.marks.get(before) {
                        return Err(mark.refuse(Position::Arithmetic));
                    }
                }
                c if is_name(c) => self.operand()?,
                c if " \t\n+-*/%<>=!&|^~?:,".contains(c) => self.copy(1),
                _ => return Err(self.unclear("an unusual `$((…))`")),
            }
        }
        if !self.rest().starts_with("))") {
            return Err(self.unclear("an unusual `$((…))`"));
        }
        self.copy("))".len());
        self.forbidden = outer;
        self.shallower();
        self.expands(None, word);
        Ok(())
    }

    /// A number or a variable's name in arithmetic.
    fn operand(&mut self) -> Result<(), TemplateError> {
        let name: String = self.rest().chars().take_while(|c| is_name(*c)).collect();
        if let Some(mark) = self.tainted.get(&name) {
            return Err(mark.refuse(Position::Arithmetic));
        }
        self.copy(name.len());
        Ok(())
    }

    /// `${…}` of the POSIX forms.
    fn braces(&mut self, quoting: Quoting, word: &mut Word) -> Result<(), TemplateError> {
        let opened = self.at;
        self.deeper()?;
        self.copy("${".len());
        let (name, operator) = self.parameter()?;
        if name == "_" {
            return Err(self.unclear("`$_`"));
        }
        self.reference(name, word);
        word.splat |= name == "@";
        let outer = self.forbidden.clone();
        self.forbidden = match (&outer, quoting, operator) {
            (Some(position), _, _) => Some(position.clone()),
            (None, Quoting::None, "=" | ":=") => Some(Position::UnquotedDefault),
            (None, Quoting::Pattern, _) => Some(Position::NestedPattern),
            (None, _, _) => None,
        };
        let mut inner = Word::default();
        while self.quoted("`${`", opened)? != '}' {
            self.operand_word(quoting, operator, &mut inner)?;
        }
        self.copy(1);
        if let Some(mark) = inner.mark {
            word.mark.get_or_insert(mark);
        }
        self.forbidden = outer;
        self.shallower();
        Ok(())
    }

    /// The name and the operator of a `${…}`.
    fn parameter(&mut self) -> Result<(&'a str, &'a str), TemplateError> {
        let body = self.rest();
        if let Some(name) = length_of(body) {
            self.copy("#".len() + name.len());
            return Ok((name, ""));
        }
        let name = parameter_name(body);
        let after = body.get(name.len()..).unwrap_or_default();
        if let Some((path, _)) = parse::variable(body).or_else(|| parse::variable(after)) {
            return Err(self.mark(path).refuse(Position::Parameter));
        }
        let operator = operator(after).filter(|_| !name.is_empty());
        let operator = operator.ok_or_else(|| self.unclear("an unusual `${…}`"))?;
        self.copy(name.len() + operator.len());
        Ok((name, operator))
    }

    /// One piece of the word after the operator of a `${…}`.
    fn operand_word(&mut self, quoting: Quoting, operator: &str, word: &mut Word) -> Result<(), TemplateError> {
        let Some(next) = self.peek() else {
            return Ok(());
        };
        if next == '{' && parse::variable(self.rest()).is_none() {
            return Err(self.unclear("a brace inside `${…}`"));
        }
        if quoting == Quoting::None {
            return self.bare(next, Quoting::None, word);
        }
        if next == '\'' || next == '"' {
            return Err(self.unclear("a quote inside a quoted `${…}`"));
        }
        let pattern = operator.starts_with(['#', '%']);
        self.bare(next, if pattern { Quoting::Pattern } else { Quoting::Double }, word)
    }
}

/// The name in `#name}`, which asks for a length.
fn length_of(body: &str) -> Option<&str> {
    let body = body.strip_prefix('#')?;
    let name = parameter_name(body);
    (!name.is_empty() && body.get(name.len()..)?.starts_with('}')).then_some(name)
}

/// The parameter's name that begins the text, empty if none does.
fn parameter_name(body: &str) -> &str {
    let named = body.len() - body.trim_start_matches(is_name).len();
    let special = usize::from(named == 0 && body.starts_with(|c| is_special(c) && c != '!'));
    body.get(..named + special).unwrap_or_default()
}

/// The operator that begins the text: empty before the closing brace, `None` if POSIX knows no such operator.
fn operator(text: &str) -> Option<&'static str> {
    let operators = [":-", ":=", ":?", ":+", "-", "=", "?", "+", "##", "#", "%%", "%"];
    if text.starts_with('}') {
        return Some("");
    }
    operators.into_iter().find(|operator| text.starts_with(operator))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_special(c: char) -> bool {
    "@*#?-$!".contains(c)
}
