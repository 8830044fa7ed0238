//! The lexer: reads blanks, operators, keywords, redirections and here-documents.

use std::{cell::OnceCell, collections::VecDeque, ops::Range, rc::Rc};

use super::{Context, DEEPEST, Findings, ParseError, ParseResult};
use crate::tree::{Piece, Redirect, Word, bare};

/// The text and the current position in it.
pub(crate) struct Lexer {
    letters: Vec<SourceChar>,
    place: usize,
    depth: usize,
    /// The offset after the last letter.
    end: usize,
    /// Letters that look-ahead may still visit.
    budget: usize,
    /// The parts of the text that are replaced later, in order.
    holes: Rc<[Range<usize>]>,
    /// If set, the context of every hole from here on.
    pub(super) forbidden: Option<Context>,
    /// How many `$(…)` and backticks surround this position.
    pub(super) substitutions: usize,
    pub(super) findings: Findings,
    /// Here-documents announced on the current line.
    pending: VecDeque<PendingHeredoc>,
    /// The redirections of the simple command just read.
    pub(super) redirects: Vec<Redirect>,
}

/// One character, and its offset in the whole text.
#[derive(Clone, Copy)]
pub(super) struct SourceChar {
    pub(super) next: char,
    at: u32,
}

impl SourceChar {
    fn new(next: char, at: usize) -> SourceChar {
        // Texts of gigabytes do not occur; only the positions in messages would be wrong.
        SourceChar { next, at: u32::try_from(at).unwrap_or(u32::MAX) }
    }

    fn at(self) -> usize {
        self.at as usize
    }
}

struct PendingHeredoc {
    delimiter: String,
    strip_tabs: bool,
    expand: bool,
    /// The position of its announcement.
    place: usize,
    body: Rc<OnceCell<Word>>,
}

/// Means "no character": the text itself never contains it.
pub(super) const END: char = '\0';

/// The character of a hole; outside holes it is an ordinary character.
const HOLE: char = '\u{fffc}';

/// The letters of a text. Most texts are ASCII, where each byte is a letter.
fn letters(text: &str) -> Vec<SourceChar> {
    if text.is_ascii() {
        return text.bytes().enumerate().map(|(at, byte)| SourceChar::new(char::from(byte), at)).collect();
    }
    text.char_indices().map(|(at, next)| SourceChar::new(next, at)).collect()
}

fn letters_with_holes(text: &str, holes: &[Range<usize>]) -> Vec<SourceChar> {
    let mut letters = Vec::with_capacity(text.len());
    let mut rest = holes.iter().peekable();
    let mut filled = 0;
    for (at, next) in text.char_indices() {
        if at < filled {
            continue;
        }
        let hole = rest.next_if(|hole| hole.start == at);
        filled = hole.map_or(filled, |hole| hole.end);
        letters.push(SourceChar::new(if hole.is_some() { HOLE } else { next }, at));
    }
    letters
}

impl Lexer {
    pub(crate) fn new(text: &str, holes: &[Range<usize>], depth: usize) -> Lexer {
        let letters = match holes {
            [] => letters(text),
            holes => letters_with_holes(text, holes),
        };
        let findings = Findings::new(holes.len());
        Lexer::over(letters, text.len(), Lexer { depth, holes: holes.into(), findings, ..Lexer::nowhere() })
    }

    fn nowhere() -> Lexer {
        Lexer {
            letters: Vec::new(),
            place: 0,
            depth: 0,
            end: 0,
            budget: 0,
            holes: Rc::new([]),
            forbidden: None,
            substitutions: 0,
            findings: Findings::new(0),
            pending: VecDeque::new(),
            redirects: Vec::new(),
        }
    }

    fn over(letters: Vec<SourceChar>, end: usize, state: Lexer) -> Lexer {
        let budget = letters.len().saturating_mul(8).saturating_add(1024);
        Lexer { letters, end, budget, ..state }
    }

    /// Reads letters taken from this text as a separate text.
    pub(super) fn within<T>(
        &mut self,
        letters: Vec<SourceChar>,
        read: impl FnOnce(&mut Lexer) -> ParseResult<T>,
    ) -> ParseResult<T> {
        let state = Lexer {
            depth: self.depth,
            holes: Rc::clone(&self.holes),
            forbidden: self.forbidden,
            substitutions: self.substitutions,
            findings: std::mem::take(&mut self.findings),
            ..Lexer::nowhere()
        };
        let mut lexer = Lexer::over(letters, self.offset(), state);
        let result = lexer.nest(read);
        self.findings = lexer.findings;
        result
    }

    /// The character this many places ahead.
    #[inline]
    pub(super) fn at(&self, ahead: usize) -> char {
        self.letters.get(self.place + ahead).map_or(END, |letter| letter.next)
    }

    pub(super) fn at_end(&self) -> bool {
        self.place >= self.letters.len()
    }

    pub(super) fn place(&self) -> usize {
        self.place
    }

    /// The current offset in the whole text.
    pub(super) fn offset(&self) -> usize {
        self.letters.get(self.place).map_or(self.end, |letter| letter.at())
    }

    pub(super) fn skip(&mut self, count: usize) {
        self.place = (self.place + count).min(self.letters.len());
    }

    /// Consumes the next character.
    pub(super) fn take(&mut self) -> Option<SourceChar> {
        let next = self.letters.get(self.place).copied();
        self.place += usize::from(next.is_some());
        next
    }

    /// Consumes the letters from here on that satisfy `is_like` and are no holes, and appends them to a text.
    pub(super) fn take_run(&mut self, text: &mut String, is_like: fn(char) -> bool) {
        let rest = self.letters.get(self.place..).unwrap_or_default();
        let length = rest.iter().take_while(|letter| letter.next != HOLE && is_like(letter.next)).count();
        text.extend(rest.iter().take(length).map(|letter| letter.next));
        self.place += length;
    }

    #[inline]
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

    /// Consumes the parenthesis that closes the one at this offset.
    pub(super) fn close(&mut self, opened: usize) -> ParseResult<()> {
        self.skip_blanks();
        if self.eat(")") {
            return Ok(());
        }
        if self.at_end() {
            return Err(ParseError::Unclosed { opened: "a parenthesis", at: opened });
        }
        self.wrong("an operator")
    }

    /// The error that names the construct at this position.
    pub(super) fn wrong<T>(&self, construct: &'static str) -> ParseResult<T> {
        Err(ParseError::Syntax { construct, at: self.offset() })
    }

    /// Notes that shells interpret the construct at this position differently.
    pub(super) fn unclear(&mut self, construct: &'static str) {
        self.unclear_at(construct, self.offset());
    }

    pub(super) fn unclear_at(&mut self, construct: &'static str, at: usize) {
        self.findings.unclear.get_or_insert((construct, at));
    }

    /// The hole this many places ahead.
    pub(super) fn hole(&self, ahead: usize) -> Option<usize> {
        self.letters.get(self.place + ahead).and_then(|letter| self.hole_of(*letter))
    }

    pub(super) fn hole_of(&self, letter: SourceChar) -> Option<usize> {
        if letter.next != HOLE {
            return None;
        }
        self.holes.binary_search_by_key(&letter.at(), |hole| hole.start).ok()
    }

    /// Runs `inner` one level deeper.
    pub(super) fn nest<T>(&mut self, inner: impl FnOnce(&mut Lexer) -> ParseResult<T>) -> ParseResult<T> {
        // A list and the command in it are two steps but one level.
        if self.depth >= 2 * DEEPEST {
            return Err(ParseError::TooDeep { at: self.offset() });
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Skips spaces, line continuations and a comment.
    #[inline]
    pub(super) fn skip_blanks(&mut self) {
        if !matches!(self.at(0), ' ' | '\t' | '\\' | '#') {
            return;
        }
        self.skip_blank_run();
    }

    #[inline(never)]
    fn skip_blank_run(&mut self) {
        loop {
            match self.at(0) {
                ' ' | '\t' => self.skip(1),
                '\\' if self.at(1) == '\n' => {
                    // A continuation with text on both sides could join two halves of a token.
                    let before = self.place.checked_sub(1).and_then(|place| self.letters.get(place));
                    let apart = before.is_none_or(|before| matches!(before.next, ' ' | '\t' | '\n'));
                    if !apart && !matches!(self.at(2), ' ' | '\t') {
                        self.unclear("a line continuation within a word");
                    }
                    self.skip(2);
                }
                '#' if self.begins_word() => self.comment(),
                _ => return,
            }
        }
    }

    fn comment(&mut self) {
        while !self.at_end() && self.at(0) != '\n' {
            // Old shells look for the end of `$(` inside comments, too.
            if self.substitutions > 0 && matches!(self.at(0), '\'' | '"' | '`' | '\\' | '(' | ')' | '$') {
                self.unclear("a comment inside `$(…)`");
            }
            if let Some(hole) = self.hole(0) {
                self.findings.place(hole, Context::Comment);
            }
            self.skip(1);
        }
    }

    fn begins_word(&self) -> bool {
        let before = self.place.checked_sub(1).and_then(|place| self.letters.get(place));
        before.is_none_or(|before| {
            matches!(before.next, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' | '`')
        })
    }

    /// Skips blanks and line ends, and reads the here-documents below each line.
    pub(super) fn skip_lines(&mut self) -> ParseResult<()> {
        loop {
            self.skip_blanks();
            if self.at(0) != '\n' {
                return Ok(());
            }
            if self.substitutions > 0 && !self.pending.is_empty() {
                self.unclear("a line break inside `$(…)` before a here-document");
            }
            self.skip(1);
            self.read_documents()?;
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn sees(&self, keyword: &str) -> bool {
        if !self.ahead(keyword) {
            return false;
        }
        let mut end = keyword.chars().count();
        // A line continuation after it counts as nothing.
        while self.at(end) == '\\' && self.at(end + 1) == '\n' {
            end += 2;
        }
        ends_word(self.at(end))
    }

    pub(super) fn eat_keyword(&mut self, keyword: &str) -> bool {
        let seen = self.sees(keyword);
        if seen {
            self.skip(keyword.chars().count());
        }
        self.skip_blanks();
        seen
    }

    /// Consumes the required keyword of the compound command that began at this offset.
    pub(super) fn need_keyword(&mut self, keyword: &str, opened: usize) -> ParseResult<()> {
        self.skip_lines()?;
        if self.eat_keyword(keyword) {
            return Ok(());
        }
        if self.at_end() {
            return Err(ParseError::Unclosed { opened: "a compound command", at: opened });
        }
        self.wrong("a compound command of unusual form")
    }

    /// A variable name.
    pub(super) fn name(&mut self) -> ParseResult<String> {
        self.skip_blanks();
        let mut name = String::new();
        while is_name(self.at(0), name.is_empty()) {
            name.push(self.at(0));
            self.skip(1);
        }
        if name.is_empty() { self.wrong("an unusual name") } else { Ok(name) }
    }

    /// A function name after `function`.
    pub(super) fn function_name(&mut self) -> ParseResult<String> {
        self.skip_blanks();
        let mut name = String::new();
        while !ends_word(self.at(0)) && !matches!(self.at(0), '$' | '`' | '\\' | '"' | '\'') {
            name.push(self.at(0));
            self.skip(1);
        }
        if name.is_empty() || !ends_word(self.at(0)) { self.wrong("an unusual name") } else { Ok(name) }
    }

    /// Whether a shell with arrays could look for a subscript here.
    pub(super) fn opens_subscript(&self) -> bool {
        let mut length = 0;
        while is_name(self.at(length), length == 0) {
            length += 1;
        }
        length > 0 && self.at(length) == '['
    }

    /// The name and subscript before `=` or `+=`, and how many letters they take.
    pub(super) fn assigned_name(&self) -> Option<(String, Option<Vec<SourceChar>>, usize)> {
        let mut length = 0;
        while is_name(self.at(length), length == 0) {
            length += 1;
        }
        // Most words are no assignments.
        if length == 0 || !matches!(self.at(length), '[' | '=' | '+') {
            return None;
        }
        let name = self.letters.get(self.place..self.place + length)?.iter().map(|letter| letter.next).collect();
        let mut subscript = None;
        if self.at(length) == '[' {
            let start = self.place + length + 1;
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
            }
            subscript = Some(self.letters.get(start..self.place + length - 1).unwrap_or_default().to_vec());
        }
        let equals = self.at(length) == '=' || (self.at(length) == '+' && self.at(length + 1) == '=');
        equals.then_some((name, subscript, length))
    }

    /// The position of the `))` that closes the `((` just before `ahead`. If there is one, this is arithmetic and not
    /// two subshells.
    pub(super) fn arithmetic_end(&mut self, ahead: usize) -> ParseResult<Option<usize>> {
        let mut open = 2_usize;
        let mut ahead = ahead;
        let mut quote = None;
        loop {
            let next = self.at(ahead);
            if next == END {
                return Ok(None);
            }
            self.budget = self.budget.checked_sub(1).ok_or(ParseError::TooDeep { at: self.offset() })?;
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

    /// Consumes the redirection that begins here.
    pub(super) fn redirect(&mut self) -> ParseResult<Option<Redirect>> {
        self.skip_blanks();
        let mut digits = 0;
        while self.at(digits).is_ascii_digit() {
            digits += 1;
        }
        if self.names_descriptor() {
            return self.wrong("a redirection of a named descriptor, of which only some shells know");
        }
        let input = digits == 0 || (digits == 1 && self.at(0) == '0');
        if matches!(self.at(digits), '<' | '>') && !(self.at(digits + 1) == '(' && digits == 0) {
            if digits > 1 {
                self.unclear("a redirection of an unusual descriptor");
            }
            self.skip(digits);
        } else if !(self.at(0) == '&' && self.at(1) == '>') {
            return Ok(None);
        }
        let at = self.offset();
        if self.eat("<<<") {
            self.unclear_at("`<<<`, `<(…)` or `>(…)`", at);
            return Ok(Some(Redirect::Text { text: self.target()?, input }));
        }
        if self.ahead("<<") {
            return self.here_document(input).map(Some);
        }
        if self.eat("<&") {
            return Ok(Some(Redirect::Duplicate { target: self.target()?, input, writes: false }));
        }
        if self.eat(">&") {
            let target = self.target()?;
            let copies =
                bare(&target).is_some_and(|text| text.chars().all(|next| next.is_ascii_digit() || next == '-'));
            return Ok(Some(Redirect::Duplicate { target, input: false, writes: !copies }));
        }
        let both = [("&>>", true), ("&>", false)];
        if let Some((_, appends)) = both.into_iter().find(|(operator, _)| self.eat(operator)) {
            self.unclear_at("`&>`, `|&` or `;&`", at);
            return Ok(Some(Redirect::Write { file: self.target()?, appends }));
        }
        let one = [(">>", true), (">|", false), (">", false)];
        if let Some((_, appends)) = one.into_iter().find(|(operator, _)| self.eat(operator)) {
            return Ok(Some(Redirect::Write { file: self.target()?, appends }));
        }
        let writes = self.eat("<>");
        if writes || self.eat("<") {
            return Ok(Some(Redirect::Read { file: self.target()?, input, writes }));
        }
        self.wrong("a redirection")
    }

    /// Whether `{name}<` or similar text is here: other shells read it as a word before a redirection.
    fn names_descriptor(&self) -> bool {
        if self.at(0) != '{' {
            return false;
        }
        let is_name = |next: char| next == '_' || next.is_ascii_alphanumeric();
        let mut length = 1;
        while is_name(self.at(length)) {
            length += 1;
        }
        length > 1 && self.at(length) == '}' && matches!(self.at(length + 1), '<' | '>')
    }

    fn target(&mut self) -> ParseResult<Word> {
        match self.word()? {
            Some(word) => Ok(word),
            None => self.wrong("a redirection without a target"),
        }
    }

    fn here_document(&mut self, input: bool) -> ParseResult<Redirect> {
        if self.substitutions > 0 {
            self.unclear("a here-document inside `$(…)`");
        }
        self.skip(2);
        let strip_tabs = self.eat("-");
        let outer = self.forbidden.replace(Context::HereDocument);
        let word = self.target()?;
        self.forbidden = outer;
        let mut delimiter = String::new();
        let mut expand = true;
        for piece in &word {
            match piece {
                Piece::Plain(text) => delimiter.push_str(text),
                Piece::Quoted(text) => {
                    expand = false;
                    delimiter.push_str(text);
                }
                _ => {
                    return Err(ParseError::Syntax { construct: "an unusual here-document end", at: word.span.start });
                }
            }
        }
        if delimiter.is_empty() || !delimiter.chars().all(|next| is_name(next, false)) {
            self.unclear_at("an unusual here-document end", word.span.start);
        }
        let body = Rc::new(OnceCell::new());
        let place = self.place;
        self.pending.push_back(PendingHeredoc { delimiter, strip_tabs, expand, place, body: Rc::clone(&body) });
        Ok(Redirect::Document { body, input })
    }

    /// Reads the here-documents of the line that just ended.
    pub(super) fn read_documents(&mut self) -> ParseResult<()> {
        let named = self.pending.front().map(|pending| pending.place);
        let line = named.and_then(|place| self.letters.get(place..self.place.saturating_sub(1)));
        if line.unwrap_or_default().iter().any(|letter| letter.next == '\n') {
            self.unclear("a quoted line break before a here-document");
        }
        while let Some(pending) = self.pending.pop_front() {
            let start = self.offset();
            let letters = self.document(&pending)?;
            let span = start..self.offset();
            let word = if pending.expand {
                self.inner(letters)?
            } else {
                let text = letters.iter().map(|letter| letter.next).collect();
                Word { pieces: vec![Piece::Quoted(text)], span }
            };
            // A fresh cell is empty, so setting it succeeds.
            let _ = pending.body.set(word);
        }
        Ok(())
    }

    fn document(&mut self, pending: &PendingHeredoc) -> ParseResult<Vec<SourceChar>> {
        let mut text = Vec::new();
        loop {
            // Shells only warn, and end it at the end of the text.
            if self.at_end() {
                self.unclear("a here-document that is never closed");
                return Ok(text);
            }
            let mut line = self.line(pending);
            if line.iter().map(|letter| letter.next).eq(pending.delimiter.chars()) {
                return Ok(text);
            }
            line.push(SourceChar::new('\n', self.offset()));
            text.append(&mut line);
        }
    }

    /// One line, joined with the next ones where a backslash at its end continues it.
    fn line(&mut self, pending: &PendingHeredoc) -> Vec<SourceChar> {
        let mut line: Vec<SourceChar> = Vec::new();
        let mut fresh = true;
        let mut escaped = false;
        while let Some(letter) = self.take() {
            if fresh && pending.strip_tabs && letter.next == '\t' {
                continue;
            }
            fresh = false;
            if let Some(hole) = self.hole_of(letter) {
                self.findings.place(hole, Context::HereDocument);
            }
            if letter.next == '\n' {
                if pending.expand && line.last().is_some_and(|last| last.next == '\\') {
                    self.unclear_at("a backslash at the end of a line in a here-document", letter.at());
                }
                if pending.expand && escaped {
                    line.pop();
                    escaped = false;
                    continue;
                }
                break;
            }
            escaped = letter.next == '\\' && !escaped;
            line.push(letter);
        }
        line
    }
}

/// Whether this character ends a word.
pub(super) fn ends_word(next: char) -> bool {
    matches!(next, END | ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

/// Whether a character has no special meaning anywhere in a word.
pub(super) fn is_ordinary(next: char) -> bool {
    !ends_word(next) && !matches!(next, '\\' | '\'' | '"' | '$' | '`' | HOLE)
}

/// Whether a variable name can contain this character.
pub(super) fn is_name(next: char, first: bool) -> bool {
    next == '_' || next.is_ascii_alphabetic() || (!first && next.is_ascii_digit())
}
