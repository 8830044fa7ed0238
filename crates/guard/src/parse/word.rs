//! The words of a script: quotes and expansions.

use super::{
    Parsed, Unreadable,
    lexer::{END, Lexer, ends_word, is_name},
    parse_at,
};
use crate::syntax::{List, Piece, Word};

/// What surrounds an expansion.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    /// Nothing: the result is split into fields.
    Nothing,
    /// Double quotes, or a here-document.
    Quotes,
}

impl Lexer {
    /// The word that begins here, or nothing where none can begin.
    pub(super) fn word(&mut self) -> Parsed<Option<Word>> {
        self.skip_blanks();
        let process = matches!(self.at(0), '<' | '>') && self.at(1) == '(';
        if ends_word(self.at(0)) && !process {
            return Ok(None);
        }
        self.attached_word().map(Some)
    }

    /// The word from here on, which may be empty.
    pub(super) fn attached_word(&mut self) -> Parsed<Word> {
        let mut word = Word::new();
        loop {
            match self.at(0) {
                '<' | '>' if self.at(1) == '(' => {
                    self.skip(1);
                    word.push(Piece::Process(self.substitution()?));
                }
                next if ends_word(next) => return Ok(word),
                '\\' => self.escape(&mut word)?,
                '\'' => {
                    self.skip(1);
                    word.push(Piece::Quoted(self.until('\'')?));
                }
                '"' => {
                    self.skip(1);
                    self.double_quoted(&mut word)?;
                }
                '$' => {
                    let piece = self.dollar(Around::Nothing)?;
                    self.push(&mut word, piece);
                }
                '`' => {
                    let list = self.backquoted(Around::Nothing)?;
                    word.push(Piece::Output { list, quoted: false });
                }
                next => {
                    self.skip(1);
                    plain(&mut word, next);
                }
            }
        }
    }

    /// The words of `[[ … ]]`: operators are of no interest, expansions are.
    pub(super) fn test(&mut self) -> Parsed<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            if self.eat_keyword("]]") {
                return Ok(words);
            }
            match self.at(0) {
                END => return Err(Unreadable::Syntax),
                '<' | '>' if self.at(1) == '(' => words.extend(self.word()?),
                next if ends_word(next) => self.skip(1),
                _ => words.push(self.attached_word()?),
            }
        }
    }

    /// The rest of `((…))` or `$((…))`, its opening eaten, up to the end that look-ahead found.
    pub(super) fn arithmetic(&mut self, end: usize) -> Parsed<Word> {
        let mut word = Word::new();
        let mut open = 0_usize;
        loop {
            match self.at(0) {
                ')' if open == 0 => {
                    self.skip(1);
                    if self.eat(")") && self.place() == end {
                        return Ok(word);
                    }
                    return Err(Unreadable::Syntax);
                }
                next @ ('(' | ')') => {
                    open = if next == '(' { open + 1 } else { open - 1 };
                    self.skip(1);
                }
                // Whether these hide a parenthesis is more than anybody should have to know.
                '"' | '\'' | '\\' => return Err(Unreadable::Syntax),
                _ => self.expanded_char(&mut word)?,
            }
        }
    }

    /// The expansions in a text that is otherwise data: a here-document, a subscript.
    pub(super) fn inner(&mut self, text: &str) -> Parsed<Word> {
        let mut lexer = Lexer::new(text, self.depth());
        lexer.nest(|lexer| {
            let mut word = Word::new();
            while !lexer.at_end() {
                lexer.expanded_char(&mut word)?;
            }
            Ok(word)
        })
    }

    /// One step through text in which only `$`, backticks and backslashes count.
    fn expanded_char(&mut self, word: &mut Word) -> Parsed<()> {
        match self.at(0) {
            END => return Err(Unreadable::Syntax),
            '\\' => self.quoted_escape(word, &['$', '`', '\\']),
            '$' => {
                let piece = self.dollar(Around::Quotes)?;
                self.push(word, piece);
            }
            '`' => {
                let list = self.backquoted(Around::Nothing)?;
                word.push(Piece::Output { list, quoted: true });
            }
            next => {
                self.skip(1);
                quoted(word, next);
            }
        }
        Ok(())
    }

    fn double_quoted(&mut self, word: &mut Word) -> Parsed<()> {
        // Empty quotes still make a word.
        word.push(Piece::Quoted(String::new()));
        loop {
            match self.at(0) {
                '"' => {
                    self.skip(1);
                    return Ok(());
                }
                '\\' => self.quoted_escape(word, &['$', '`', '"', '\\']),
                '`' => {
                    let list = self.backquoted(Around::Quotes)?;
                    word.push(Piece::Output { list, quoted: true });
                }
                _ => self.expanded_char(word)?,
            }
        }
    }

    fn push(&mut self, word: &mut Word, piece: Option<Piece>) {
        if let Some(piece) = piece {
            word.push(piece);
        } else {
            self.skip(1);
            quoted(word, '$');
        }
    }

    fn escape(&mut self, word: &mut Word) -> Parsed<()> {
        self.skip(1);
        match self.take().ok_or(Unreadable::Syntax)? {
            '\n' => {}
            next => quoted(word, next),
        }
        Ok(())
    }

    fn quoted_escape(&mut self, word: &mut Word, special: &[char]) {
        self.skip(1);
        match self.at(0) {
            '\n' => self.skip(1),
            next if special.contains(&next) => {
                self.skip(1);
                quoted(word, next);
            }
            _ => quoted(word, '\\'),
        }
    }

    fn until(&mut self, end: char) -> Parsed<String> {
        let mut text = String::new();
        loop {
            match self.take() {
                None => return Err(Unreadable::Syntax),
                Some(next) if next == end => return Ok(text),
                Some(next) => text.push(next),
            }
        }
    }

    /// The expansion that the `$` here begins, if it begins one.
    fn dollar(&mut self, around: Around) -> Parsed<Option<Piece>> {
        let is_quoted = around == Around::Quotes;
        let next = self.at(1);
        if next == '(' {
            if self.at(2) == '('
                && let Some(end) = self.arithmetic_end(3)?
            {
                self.skip(3);
                return Ok(Some(Piece::Opaque(self.nest(|lexer| lexer.arithmetic(end))?)));
            }
            self.skip(1);
            return Ok(Some(Piece::Output { list: self.substitution()?, quoted: is_quoted }));
        }
        if next == '{' {
            self.skip(2);
            return self.nest(|lexer| lexer.parameter(around)).map(Some);
        }
        if is_name(next, true) {
            self.skip(1);
            return Ok(Some(Piece::Variable { name: self.name()?, quoted: is_quoted }));
        }
        if next.is_ascii_digit() || matches!(next, '@' | '*' | '#' | '?' | '-' | '$' | '!') {
            self.skip(2);
            return Ok(Some(Piece::Opaque(Word::new())));
        }
        if next == '\'' && !is_quoted {
            self.skip(2);
            return Ok(Some(Piece::Quoted(self.ansi()?)));
        }
        if next == '"' && !is_quoted {
            self.skip(2);
            let mut word = Word::new();
            self.double_quoted(&mut word)?;
            // Translated text: what it becomes depends on the locale.
            return Ok(Some(Piece::Opaque(word)));
        }
        // `$[` is arithmetic of old; a continued line could still make it any of the above.
        if next == '[' || (next == '\\' && self.at(2) == '\n') {
            return Err(Unreadable::Syntax);
        }
        Ok(None)
    }

    /// The list in `(…)`.
    fn substitution(&mut self) -> Parsed<List> {
        self.skip(1);
        let waiting = self.waiting();
        let list = self.list(&[])?;
        // Where the text of a here-document stands whose line ends outside the parentheses, shells disagree.
        if self.waiting() > waiting {
            return Err(Unreadable::Syntax);
        }
        self.need(")")?;
        Ok(list)
    }

    fn backquoted(&mut self, around: Around) -> Parsed<List> {
        self.skip(1);
        let mut text = String::new();
        loop {
            match self.take() {
                None => return Err(Unreadable::Syntax),
                Some('`') => break,
                Some('\\') => match self.take() {
                    Some(next @ ('$' | '`' | '\\')) => text.push(next),
                    Some('"') if around == Around::Quotes => text.push('"'),
                    Some(next) => text.extend(['\\', next]),
                    None => return Err(Unreadable::Syntax),
                },
                Some(next) => text.push(next),
            }
        }
        let depth = self.depth();
        self.nest(|_| parse_at(&text, depth + 1))
    }

    /// The rest of `${…}`, its opening eaten.
    fn parameter(&mut self, around: Around) -> Parsed<Piece> {
        let is_quoted = around == Around::Quotes;
        let mut name = String::new();
        while is_name(self.at(0), name.is_empty()) {
            name.push(self.at(0));
            self.skip(1);
        }
        if !name.is_empty() && self.eat("}") {
            return Ok(Piece::Variable { name, quoted: is_quoted });
        }
        // With `${NAME:?…}` the command runs only if the variable has a value: the value is what counts.
        let checked = !name.is_empty() && (self.ahead(":?") || self.ahead("?"));
        let mut word = Word::new();
        if name.is_empty() {
            self.special_parameter();
        }
        loop {
            match self.at(0) {
                '}' => {
                    self.skip(1);
                    break;
                }
                '"' => {
                    self.skip(1);
                    self.nest(|lexer| lexer.double_quoted(&mut word))?;
                }
                // Inside double quotes it quotes for some operators and not for others.
                '\'' if is_quoted => return Err(Unreadable::Syntax),
                '\'' => {
                    self.skip(1);
                    word.push(Piece::Quoted(self.until('\'')?));
                }
                '\\' => self.escape(&mut word)?,
                '$' => {
                    let piece = self.dollar(around)?;
                    self.push(&mut word, piece);
                }
                _ => self.expanded_char(&mut word)?,
            }
        }
        let simple = word.iter().all(|piece| matches!(piece, Piece::Quoted(_)));
        if checked && simple {
            return Ok(Piece::Variable { name, quoted: is_quoted });
        }
        Ok(Piece::Opaque(word))
    }

    /// `${#}`, `${$}`, `${!x}`, `${#x}` and the like: only the mark is eaten, so that it is not taken for an expansion.
    fn special_parameter(&mut self) {
        if matches!(self.at(0), '#' | '!' | '$' | '@' | '*' | '?' | '-') {
            self.skip(1);
        }
    }

    /// The rest of `$'…'`, decoded.
    fn ansi(&mut self) -> Parsed<String> {
        let mut text = String::new();
        loop {
            match self.take() {
                None => return Err(Unreadable::Syntax),
                Some('\'') => return Ok(text),
                Some('\\') => text.push(self.ansi_escape()?),
                Some(next) => text.push(next),
            }
        }
    }

    fn ansi_escape(&mut self) -> Parsed<char> {
        let next = self.take().ok_or(Unreadable::Syntax)?;
        Ok(match next {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'e' | 'E' => '\u{1b}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            '\\' | '\'' | '"' | '?' => next,
            'x' => self.code(16, 2)?,
            'u' => self.code(16, 4)?,
            'U' => self.code(16, 8)?,
            '0'..='7' => {
                let first = next.to_digit(8).unwrap_or(0);
                self.code_from(first, 8, 2)?
            }
            _ => return Err(Unreadable::Syntax),
        })
    }

    fn code(&mut self, radix: u32, most: usize) -> Parsed<char> {
        if !self.at(0).is_digit(radix) {
            return Err(Unreadable::Syntax);
        }
        self.code_from(0, radix, most)
    }

    fn code_from(&mut self, start: u32, radix: u32, most: usize) -> Parsed<char> {
        let mut code = start;
        for _ in 0..most {
            let Some(digit) = self.at(0).to_digit(radix) else { break };
            code = code.wrapping_mul(radix).wrapping_add(digit);
            self.skip(1);
        }
        // A NUL ends the text in bash, a byte above ASCII depends on the encoding.
        char::from_u32(code).filter(|&decoded| decoded != END).ok_or(Unreadable::Syntax)
    }
}

fn plain(word: &mut Word, next: char) {
    match word.last_mut() {
        Some(Piece::Plain(text)) => text.push(next),
        _ => word.push(Piece::Plain(next.to_string())),
    }
}

fn quoted(word: &mut Word, next: char) {
    match word.last_mut() {
        Some(Piece::Quoted(text)) => text.push(next),
        _ => word.push(Piece::Quoted(next.to_string())),
    }
}
