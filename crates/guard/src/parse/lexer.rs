//! The position in the text: blanks, operators, keywords, redirections, here-documents.

use std::{cell::OnceCell, collections::VecDeque, rc::Rc};

use super::{DEEPEST, Parsed, Unreadable};
use crate::syntax::{Piece, Redirect, Word, bare};

/// The text and where we are in it.
pub(super) struct Lexer {
    chars: Vec<char>,
    place: usize,
    depth: usize,
    /// Characters that look-ahead may still visit.
    budget: usize,
    /// Here-documents named on the current line.
    pending: VecDeque<Pending>,
    /// The redirections of the simple command just read.
    pub(super) redirects: Vec<Redirect>,
}

struct Pending {
    delimiter: String,
    strip_tabs: bool,
    expand: bool,
    body: Rc<OnceCell<Word>>,
}

/// Stands for "no character": the text itself never contains it.
pub(super) const END: char = '\0';

impl Lexer {
    pub(super) fn new(text: &str, depth: usize) -> Lexer {
        let chars: Vec<char> = text.chars().collect();
        let budget = chars.len().saturating_mul(8).saturating_add(1024);
        Lexer { chars, place: 0, depth, budget, pending: VecDeque::new(), redirects: Vec::new() }
    }

    /// The character so many places ahead.
    pub(super) fn at(&self, ahead: usize) -> char {
        self.chars.get(self.place + ahead).copied().unwrap_or(END)
    }

    pub(super) fn at_end(&self) -> bool {
        self.place >= self.chars.len()
    }

    pub(super) fn place(&self) -> usize {
        self.place
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    pub(super) fn skip(&mut self, count: usize) {
        self.place = (self.place + count).min(self.chars.len());
    }

    /// The next character, eaten.
    pub(super) fn take(&mut self) -> Option<char> {
        let next = self.chars.get(self.place).copied();
        self.place += usize::from(next.is_some());
        next
    }

    pub(super) fn ahead(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, wanted)| self.at(ahead) == wanted)
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.ahead(text);
        if found {
            self.skip(text.chars().count());
        }
        found
    }

    pub(super) fn need(&mut self, text: &str) -> Parsed<()> {
        self.skip_blanks();
        if self.eat(text) { Ok(()) } else { Err(Unreadable::Syntax) }
    }

    /// Runs one level deeper.
    pub(super) fn nest<T>(&mut self, inner: impl FnOnce(&mut Lexer) -> Parsed<T>) -> Parsed<T> {
        // A list and the command in it are two steps of one level.
        if self.depth >= 2 * DEEPEST {
            return Err(Unreadable::TooDeep);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Skips spaces, line continuations and a comment.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            match self.at(0) {
                ' ' | '\t' => self.skip(1),
                '\\' if self.at(1) == '\n' => self.skip(2),
                '#' if self.begins_word() => {
                    while !self.at_end() && self.at(0) != '\n' {
                        self.skip(1);
                    }
                }
                _ => return,
            }
        }
    }

    fn begins_word(&self) -> bool {
        let before = self.place.checked_sub(1).and_then(|place| self.chars.get(place));
        before.is_none_or(|before| matches!(before, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' | '`'))
    }

    /// Skips blanks and line ends; the here-documents of each line stand below it.
    pub(super) fn skip_lines(&mut self) -> Parsed<()> {
        loop {
            self.skip_blanks();
            if self.at(0) != '\n' {
                return Ok(());
            }
            self.skip(1);
            self.read_documents()?;
        }
    }

    /// Whether no here-document is still waiting for its text.
    pub(super) fn documents_read(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn waiting(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn sees(&self, keyword: &str) -> bool {
        self.ahead(keyword) && ends_word(self.at(keyword.chars().count()))
    }

    pub(super) fn eat_keyword(&mut self, keyword: &str) -> bool {
        let seen = self.sees(keyword);
        if seen {
            self.skip(keyword.chars().count());
        }
        self.skip_blanks();
        seen
    }

    pub(super) fn need_keyword(&mut self, keyword: &str) -> Parsed<()> {
        self.skip_lines()?;
        if self.eat_keyword(keyword) { Ok(()) } else { Err(Unreadable::Syntax) }
    }

    /// A variable name.
    pub(super) fn name(&mut self) -> Parsed<String> {
        self.skip_blanks();
        let mut name = String::new();
        while is_name(self.at(0), name.is_empty()) {
            name.push(self.at(0));
            self.skip(1);
        }
        if name.is_empty() { Err(Unreadable::Syntax) } else { Ok(name) }
    }

    /// A function name behind `function`.
    pub(super) fn function_name(&mut self) -> Parsed<String> {
        self.skip_blanks();
        let mut name = String::new();
        while !ends_word(self.at(0)) && !matches!(self.at(0), '$' | '`' | '\\' | '"' | '\'') {
            name.push(self.at(0));
            self.skip(1);
        }
        if name.is_empty() || !ends_word(self.at(0)) { Err(Unreadable::Syntax) } else { Ok(name) }
    }

    /// The name and subscript before `=` or `+=`, and how many characters they take.
    pub(super) fn assigned_name(&self) -> Option<(String, Option<String>, usize)> {
        let mut name = String::new();
        let mut length = 0;
        while is_name(self.at(length), length == 0) {
            name.push(self.at(length));
            length += 1;
        }
        if name.is_empty() {
            return None;
        }
        let mut subscript = None;
        if self.at(length) == '[' {
            let mut text = String::new();
            let mut open = 0_usize;
            loop {
                let next = self.at(length);
                length += 1;
                match next {
                    '[' => open += 1,
                    ']' => open = open.saturating_sub(1),
                    END | '\n' => return None,
                    _ => {}
                }
                if open == 0 {
                    break;
                }
                text.push(next);
            }
            subscript = Some(text);
        }
        let equals = self.at(length) == '=' || (self.at(length) == '+' && self.at(length + 1) == '=');
        equals.then_some((name, subscript, length))
    }

    /// Where the `((` just before `ahead` is closed by `))`, if it is: then it is arithmetic and not two subshells.
    pub(super) fn arithmetic_end(&mut self, ahead: usize) -> Parsed<Option<usize>> {
        let mut open = 2_usize;
        let mut ahead = ahead;
        let mut quote = None;
        loop {
            let next = self.at(ahead);
            if next == END {
                return Ok(None);
            }
            self.budget = self.budget.checked_sub(1).ok_or(Unreadable::TooDeep)?;
            ahead += 1;
            match (quote, next) {
                (Some(mark), next) if mark == next => quote = None,
                (None | Some('"' | '`'), '\\') => ahead += 1,
                (None, '\'' | '"' | '`') => quote = Some(next),
                (None, '(') => open += 1,
                (None, ')') => {
                    open -= 1;
                    if open == 1 {
                        return Ok((self.at(ahead) == ')').then_some(self.place + ahead + 1));
                    }
                }
                _ => {}
            }
        }
    }

    /// The redirection that begins here, eaten.
    pub(super) fn redirect(&mut self) -> Parsed<Option<Redirect>> {
        self.skip_blanks();
        let mut digits = 0;
        while self.at(digits).is_ascii_digit() {
            digits += 1;
        }
        let input = digits == 0 || (digits == 1 && self.at(0) == '0');
        if matches!(self.at(digits), '<' | '>') && !(self.at(digits + 1) == '(' && digits == 0) {
            self.skip(digits);
        } else if !(self.at(0) == '&' && self.at(1) == '>') {
            return Ok(None);
        }
        if self.eat("<<<") {
            let text = self.target()?;
            return Ok(Some(if input { Redirect::Text(text) } else { Redirect::Other(text) }));
        }
        if self.ahead("<<") {
            return self.here_document(input).map(Some);
        }
        if self.eat("<&") {
            return Ok(Some(Redirect::Other(self.target()?)));
        }
        if self.eat(">&") {
            let target = self.target()?;
            let copies =
                bare(&target).is_some_and(|text| text.chars().all(|next| next.is_ascii_digit() || next == '-'));
            return Ok(Some(if copies { Redirect::Other(target) } else { Redirect::Write(target) }));
        }
        if ["&>>", "&>", "<>", ">>", ">|", ">"].into_iter().any(|operator| self.eat(operator)) {
            return Ok(Some(Redirect::Write(self.target()?)));
        }
        if self.eat("<") {
            let file = self.target()?;
            return Ok(Some(if input { Redirect::Read(file) } else { Redirect::Other(file) }));
        }
        Err(Unreadable::Syntax)
    }

    fn target(&mut self) -> Parsed<Word> {
        self.word()?.ok_or(Unreadable::Syntax)
    }

    fn here_document(&mut self, input: bool) -> Parsed<Redirect> {
        self.skip(2);
        let strip_tabs = self.eat("-");
        let word = self.target()?;
        let mut delimiter = String::new();
        let mut expand = true;
        for piece in &word {
            match piece {
                Piece::Plain(text) => delimiter.push_str(text),
                Piece::Quoted(text) => {
                    expand = false;
                    delimiter.push_str(text);
                }
                _ => return Err(Unreadable::Syntax),
            }
        }
        let body = Rc::new(OnceCell::new());
        self.pending.push_back(Pending { delimiter, strip_tabs, expand, body: Rc::clone(&body) });
        Ok(Redirect::Document { body, input })
    }

    /// Reads the here-documents of the line that just ended.
    fn read_documents(&mut self) -> Parsed<()> {
        while let Some(pending) = self.pending.pop_front() {
            let text = self.document(&pending)?;
            let word = if pending.expand { self.inner(&text)? } else { vec![Piece::Quoted(text)] };
            // A fresh cell is filled exactly once.
            let _ = pending.body.set(word);
        }
        Ok(())
    }

    fn document(&mut self, pending: &Pending) -> Parsed<String> {
        let mut text = String::new();
        loop {
            if self.at_end() {
                return Err(Unreadable::Syntax);
            }
            let line = self.line(pending);
            if line == pending.delimiter {
                return Ok(text);
            }
            text.push_str(&line);
            text.push('\n');
        }
    }

    /// One line, joined with the next ones where a backslash ends it and that counts.
    fn line(&mut self, pending: &Pending) -> String {
        let mut line = String::new();
        let mut fresh = true;
        let mut escaped = false;
        while let Some(next) = self.take() {
            if fresh && pending.strip_tabs && next == '\t' {
                continue;
            }
            fresh = false;
            if next == '\n' {
                if pending.expand && escaped {
                    line.pop();
                    escaped = false;
                    continue;
                }
                break;
            }
            escaped = next == '\\' && !escaped;
            line.push(next);
        }
        line
    }
}

/// Whether a word cannot go on with this character.
pub(super) fn ends_word(next: char) -> bool {
    matches!(next, END | ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

/// Whether a variable name can have this character.
pub(super) fn is_name(next: char, first: bool) -> bool {
    next == '_' || next.is_ascii_alphabetic() || (!first && next.is_ascii_digit())
}
