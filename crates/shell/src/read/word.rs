//! Reads the words of a script: quotes and expansions.

use super::{
    Context, ParseError, ParseResult, Quoting,
    lexer::{END, Lexer, SourceChar, ends_word, is_name, is_ordinary},
};
use crate::tree::{List, Piece, Word};

/// The quoting around an expansion.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    /// Nothing: the result is split into fields.
    Nothing,
    /// Double quotes, or a here-document.
    Quotes,
    /// Double quotes, in the pattern of a `${name#pattern}`.
    Pattern,
}

impl Around {
    fn is_quoted(self) -> bool {
        self != Around::Nothing
    }
}

/// The operators of `${…}` that all shells have; longer ones first.
const OPERATORS: &[&str] = &[":-", ":=", ":?", ":+", "-", "=", "?", "+", "##", "#", "%%", "%"];

impl Lexer {
    /// The word that begins here; `None` where no word can begin.
    pub(super) fn word(&mut self) -> ParseResult<Option<Word>> {
        self.skip_blanks();
        let process = matches!(self.at(0), '<' | '>') && self.at(1) == '(';
        if ends_word(self.at(0)) && !process {
            return Ok(None);
        }
        self.attached_word().map(Some)
    }

    /// The word from here on, which may be empty.
    pub(super) fn attached_word(&mut self) -> ParseResult<Word> {
        let mut word = Word::default();
        let start = self.offset();
        while self.piece(&mut word)? {}
        word.span = start..self.offset();
        Ok(word)
    }

    /// The next piece of a word; false where the word ends.
    fn piece(&mut self, word: &mut Word) -> ParseResult<bool> {
        if self.fill(word, Quoting::None) {
            return Ok(true);
        }
        match self.at(0) {
            '<' | '>' if self.at(1) == '(' => {
                self.unclear("`<<<`, `<(…)` or `>(…)`");
                let prints = self.at(0) == '<';
                self.skip(1);
                word.pieces.push(Piece::Process { list: self.substitution()?, prints });
            }
            next if ends_word(next) => return Ok(false),
            '\\' => self.escape(word)?,
            '\'' => self.single_quoted(word)?,
            '"' => self.double_quoted(word)?,
            '$' => {
                let piece = self.dollar(Around::Nothing)?;
                self.push(word, piece);
            }
            '`' => {
                let list = self.backquoted(Around::Nothing)?;
                word.pieces.push(Piece::Output { list, quoted: false });
            }
            next => {
                self.skip(1);
                plain(word, next);
                if let Some(Piece::Plain(text)) = word.pieces.last_mut() {
                    self.take_run(text, is_ordinary);
                }
            }
        }
        Ok(true)
    }

    /// Adds the hole at this position as a piece of the word.
    pub(super) fn fill(&mut self, word: &mut Word, quoting: Quoting) -> bool {
        let Some(hole) = self.hole(0) else { return false };
        self.findings.place(hole, self.forbidden.unwrap_or(Context::Word(quoting)));
        self.skip(1);
        word.pieces.push(Piece::Hole(hole));
        true
    }

    /// The words of `[[ … ]]`: only their expansions matter, not the operators.
    pub(super) fn test(&mut self, opened: usize) -> ParseResult<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            if self.eat_keyword("]]") {
                return Ok(words);
            }
            match self.at(0) {
                END => return Err(ParseError::Unclosed { opened: "`[[`", at: opened }),
                '<' | '>' if self.at(1) == '(' => words.extend(self.word()?),
                next if ends_word(next) => self.skip(1),
                _ => words.push(self.attached_word()?),
            }
        }
    }

    /// The rest of `((…))` or `$((…))` after its opening, up to the end that look-ahead found.
    pub(super) fn arithmetic(&mut self, end: usize) -> ParseResult<Word> {
        let outer = self.forbidden.replace(Context::Arithmetic);
        let mut word = Word::default();
        let start = self.offset();
        let mut open = 0_usize;
        loop {
            match self.at(0) {
                ')' if open == 0 => {
                    word.span = start..self.offset();
                    self.skip(1);
                    if !(self.eat(")") && self.place() == end) {
                        return self.wrong("an unusual `$((…))`");
                    }
                    self.forbidden = outer;
                    return Ok(word);
                }
                next @ ('(' | ')') => {
                    open = if next == '(' { open + 1 } else { open - 1 };
                    self.skip(1);
                }
                // Shells may differ on whether these hide a parenthesis.
                '"' | '\'' | '\\' => return self.wrong("an unusual `$((…))`"),
                next => {
                    let usual = is_name(next, false) || " \t\n+-*/%<>=!&|^~?:,$".contains(next);
                    if !usual && self.hole(0).is_none() {
                        self.unclear("an unusual `$((…))`");
                    }
                    self.expanded_char(&mut word)?;
                }
            }
        }
    }

    /// The expansions in a text that is otherwise data, such as a here-document or a subscript.
    pub(super) fn inner(&mut self, letters: Vec<SourceChar>) -> ParseResult<Word> {
        self.within(letters, |lexer| {
            let mut word = Word::default();
            let start = lexer.offset();
            while !lexer.at_end() {
                lexer.expanded_char(&mut word)?;
            }
            word.span = start..lexer.offset();
            Ok(word)
        })
    }

    /// Reads one character of text in which only `$`, backticks and backslashes are special.
    fn expanded_char(&mut self, word: &mut Word) -> ParseResult<()> {
        if self.fill(word, Quoting::Double) {
            return Ok(());
        }
        match self.at(0) {
            END => return self.wrong("the end of the text"),
            '\\' => self.quoted_escape(word, &['$', '`', '\\']),
            '$' => {
                let piece = self.dollar(Around::Quotes)?;
                self.push(word, piece);
            }
            '`' => {
                let list = self.backquoted(Around::Nothing)?;
                word.pieces.push(Piece::Output { list, quoted: true });
            }
            next => {
                self.skip(1);
                quoted(word, next);
                self.take_into(word, |next| {
                    next.is_ascii_alphanumeric() || matches!(next, ' ' | '/' | '-' | '_' | '.')
                });
            }
        }
        Ok(())
    }

    /// Consumes the letters from here on that satisfy `is_like`, and appends them to the quoted text at the end of a
    /// word.
    fn take_into(&mut self, word: &mut Word, is_like: fn(char) -> bool) {
        if let Some(Piece::Quoted(text)) = word.pieces.last_mut() {
            self.take_run(text, is_like);
        }
    }

    pub(super) fn single_quoted(&mut self, word: &mut Word) -> ParseResult<()> {
        let opened = self.offset();
        self.skip(1);
        // Empty quotes also make a word.
        add(word, Piece::Quoted(String::new()));
        loop {
            if self.fill(word, Quoting::Single) {
                continue;
            }
            match self.take().map(|letter| letter.next) {
                None => return Err(ParseError::Unclosed { opened: "a single quote", at: opened }),
                Some('\'') => return Ok(()),
                Some(next) => {
                    quoted(word, next);
                    self.take_into(word, |next| next != '\'');
                }
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Word) -> ParseResult<()> {
        let opened = self.offset();
        self.skip(1);
        // Most quotes contain a single expansion.
        if word.pieces.is_empty() && self.at(0) == '$' {
            word.pieces.reserve_exact(2);
        }
        add(word, Piece::Quoted(String::new()));
        loop {
            match self.at(0) {
                '"' => {
                    self.skip(1);
                    return Ok(());
                }
                END if self.at_end() => return Err(ParseError::Unclosed { opened: "a double quote", at: opened }),
                '\\' => self.quoted_escape(word, &['$', '`', '"', '\\']),
                '`' => {
                    let list = self.backquoted(Around::Quotes)?;
                    word.pieces.push(Piece::Output { list, quoted: true });
                }
                _ => self.expanded_char(word)?,
            }
        }
    }

    fn push(&mut self, word: &mut Word, piece: Option<Piece>) {
        if let Some(piece) = piece {
            add(word, piece);
        } else {
            self.skip(1);
            quoted(word, '$');
        }
    }

    /// A backslash outside quotes, and the character it protects.
    pub(super) fn escape(&mut self, word: &mut Word) -> ParseResult<()> {
        let at = self.offset();
        self.skip(1);
        if let Some(hole) = self.hole(0) {
            self.findings.place(hole, Context::Escaped);
            self.fill(word, Quoting::None);
            return Ok(());
        }
        match self.take() {
            None => return Err(ParseError::Syntax { construct: "a backslash at the end", at }),
            Some(SourceChar { next: '\n', .. }) => {
                if !matches!(self.at(0), ' ' | '\t') {
                    self.unclear_at("a line continuation within a word", at);
                }
            }
            Some(letter) => quoted(word, letter.next),
        }
        Ok(())
    }

    pub(super) fn quoted_escape(&mut self, word: &mut Word, special: &[char]) {
        let at = self.offset();
        self.skip(1);
        if let Some(hole) = self.hole(0) {
            self.findings.place(hole, Context::Escaped);
        }
        match self.at(0) {
            '\n' => {
                // Some shells continue the variable's name on the next line.
                if matches!(word.last(), Some(Piece::Variable { .. } | Piece::Parameter { .. })) {
                    self.unclear_at("a line continuation within a word", at);
                }
                self.skip(1);
            }
            next if special.contains(&next) => {
                self.skip(1);
                quoted(word, next);
            }
            _ => quoted(word, '\\'),
        }
    }

    /// The expansion that begins with the `$` here, if there is one.
    fn dollar(&mut self, around: Around) -> ParseResult<Option<Piece>> {
        if let Some(hole) = self.hole(1) {
            self.findings.place(hole, Context::AfterDollar);
            return Ok(None);
        }
        let is_quoted = around.is_quoted();
        let next = self.at(1);
        if next == '(' {
            let (at, doubled) = (self.offset(), self.at(2) == '(');
            if doubled && let Some(end) = self.arithmetic_end(3)? {
                self.skip(3);
                return Ok(Some(Piece::Arithmetic(self.nest(|lexer| lexer.arithmetic(end))?)));
            }
            self.skip(1);
            let list = self.substitution()?;
            if doubled {
                self.unclear_at("an unusual `$((…))`", at);
            }
            return Ok(Some(Piece::Output { list, quoted: is_quoted }));
        }
        // Some shells run the commands inside.
        if next == '{' && matches!(self.at(2), ' ' | '\t' | '\n' | '|') {
            return self.wrong("`${ …; }`");
        }
        if next == '{' {
            return self.nest(|lexer| lexer.parameter(around)).map(Some);
        }
        if is_name(next, true) {
            let at = self.offset();
            self.skip(1);
            let name = self.name()?;
            if name == "_" {
                self.unclear_at("`$_`", at);
            }
            return Ok(Some(Piece::Variable { name, quoted: is_quoted }));
        }
        if next.is_ascii_digit() || is_special(next) {
            self.skip(2);
            let (name, word) = (next.to_string(), Word::default());
            return Ok(Some(Piece::Parameter { name, operator: "", word, quoted: is_quoted }));
        }
        if matches!(next, '\'' | '"') && !is_quoted {
            self.unclear("`$'…'` or `$\"…\"`");
        }
        if next == '\'' && !is_quoted {
            self.skip(2);
            return Ok(Some(Piece::Quoted(self.ansi()?)));
        }
        if next == '"' && !is_quoted {
            self.skip(1);
            let mut word = Word::default();
            self.double_quoted(&mut word)?;
            // This is translated text, which depends on the locale.
            return Ok(Some(Piece::Opaque(word)));
        }
        // `$[` is old arithmetic notation; a line continuation could still turn it into another expansion.
        if next == '[' {
            return self.wrong("`$[`");
        }
        if next == '\\' && self.at(2) == '\n' {
            return self.wrong("a line continuation within a word");
        }
        Ok(None)
    }

    /// The list in `(…)`.
    fn substitution(&mut self) -> ParseResult<List> {
        let opened = self.offset();
        self.skip(1);
        let waiting = self.waiting();
        self.substitutions += 1;
        let list = self.list(&[])?;
        self.substitutions -= 1;
        // Shells disagree on where a here-document continues whose line ends outside the parentheses.
        if self.waiting() > waiting {
            return self.wrong("a here-document inside `$(…)`");
        }
        self.close(opened)?;
        Ok(list)
    }

    fn backquoted(&mut self, around: Around) -> ParseResult<List> {
        let opened = self.offset();
        self.skip(1);
        let mut text = Vec::new();
        loop {
            let letter = self.take().ok_or(ParseError::Unclosed { opened: "a backtick", at: opened })?;
            if let Some(hole) = self.hole_of(letter) {
                self.findings.place(hole, Context::Backticks);
            }
            match (letter.next, self.at(0)) {
                ('`', _) => break,
                ('\\', '$' | '`' | '\\') => text.extend(self.take()),
                ('\\', '"') if around == Around::Quotes => text.extend(self.take()),
                ('\\', _) => {
                    text.push(letter);
                    if let Some(hole) = self.hole(0) {
                        self.findings.place(hole, Context::Backticks);
                    }
                    text.extend(self.take());
                }
                _ => text.push(letter),
            }
        }
        self.within(text, |lexer| {
            lexer.substitutions += 1;
            lexer.script()
        })
    }

    /// `${…}`
    fn parameter(&mut self, around: Around) -> ParseResult<Piece> {
        let opened = self.offset();
        self.skip(2);
        let quoted = around.is_quoted();
        let length = self.is_length();
        self.skip(usize::from(length));
        let (name, operator) = self.parameter_name(length, opened);
        if !length && operator.is_empty() && is_name(name.chars().next().unwrap_or(END), true) && self.eat("}") {
            return Ok(Piece::Variable { name, quoted });
        }
        let outer = self.forbidden;
        self.forbidden = outer.or(match (around, operator) {
            (Around::Nothing, "=" | ":=") => Some(Context::UnquotedDefault),
            (Around::Pattern, _) => Some(Context::NestedPattern),
            _ => None,
        });
        let inside = if quoted && operator.starts_with(['#', '%']) { Around::Pattern } else { around };
        let mut word = Word::default();
        let start = self.offset();
        while self.operand(&mut word, inside, opened)? {}
        word.span = start..self.offset();
        self.skip(1);
        self.forbidden = outer;
        Ok(Piece::Parameter { name, operator, word, quoted })
    }

    /// The name and the operator of a `${…}`; a length has no operator.
    fn parameter_name(&mut self, length: bool, opened: usize) -> (String, &'static str) {
        let mut name = String::new();
        while is_name(self.at(0), false) {
            name.push(self.at(0));
            self.skip(1);
        }
        if name.is_empty() && is_special(self.at(0)) {
            if self.at(0) != '!' {
                name.push(self.at(0));
            }
            // Consumed even if unusual, so that it is not read as an expansion.
            self.skip(1);
        }
        if let Some(hole) = self.hole(0) {
            self.findings.place(hole, Context::ParameterName);
        }
        let operator = OPERATORS.iter().copied().find(|operator| !length && self.eat(operator));
        if name.is_empty() || (operator.is_none() && self.at(0) != '}') {
            self.unclear_at("an unusual `${…}`", opened);
        }
        if name == "_" {
            self.unclear_at("`$_`", opened);
        }
        (name, operator.unwrap_or_default())
    }

    /// Whether a `#` here requests the length of the parameter after it.
    fn is_length(&self) -> bool {
        if self.at(0) != '#' {
            return false;
        }
        let mut behind = 1;
        while is_name(self.at(behind), false) {
            behind += 1;
        }
        behind += usize::from(behind == 1 && is_special(self.at(1)));
        behind > 1 && self.at(behind) == '}'
    }

    /// The next piece after the operator of `${…}`; false at its closing brace.
    fn operand(&mut self, word: &mut Word, around: Around, opened: usize) -> ParseResult<bool> {
        let quoting = match around {
            Around::Nothing => Quoting::None,
            Around::Quotes => Quoting::Double,
            Around::Pattern => Quoting::Pattern,
        };
        if self.fill(word, quoting) {
            return Ok(true);
        }
        match self.at(0) {
            '}' => return Ok(false),
            END if self.at_end() => return Err(ParseError::Unclosed { opened: "`${`", at: opened }),
            '{' => {
                self.unclear("a brace inside `${…}`");
                self.expanded_char(word)?;
            }
            '"' => {
                if around.is_quoted() {
                    self.unclear("a quote inside a quoted `${…}`");
                }
                self.nest(|lexer| lexer.double_quoted(word))?;
            }
            // Inside double quotes, a quote here is special for some operators and not for others.
            '\'' if around.is_quoted() => return self.wrong("a quote inside a quoted `${…}`"),
            '\'' => self.single_quoted(word)?,
            '\\' => self.escape(word)?,
            '$' => {
                let piece = self.dollar(around)?;
                self.push(word, piece);
            }
            _ => self.expanded_char(word)?,
        }
        Ok(true)
    }

    /// The rest of `$'…'`, with escapes decoded.
    fn ansi(&mut self) -> ParseResult<String> {
        let mut text = String::new();
        loop {
            match self.take().map(|letter| letter.next) {
                None => return self.wrong("`$'…'` or `$\"…\"`"),
                Some('\'') => return Ok(text),
                Some('\\') => text.push(self.ansi_escape()?),
                Some(next) => text.push(next),
            }
        }
    }

    fn ansi_escape(&mut self) -> ParseResult<char> {
        let Some(SourceChar { next, .. }) = self.take() else { return self.wrong("`$'…'` or `$\"…\"`") };
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
            _ => return self.wrong("`$'…'` or `$\"…\"`"),
        })
    }

    fn code(&mut self, radix: u32, most: usize) -> ParseResult<char> {
        if !self.at(0).is_digit(radix) {
            return self.wrong("`$'…'` or `$\"…\"`");
        }
        self.code_from(0, radix, most)
    }

    fn code_from(&mut self, start: u32, radix: u32, most: usize) -> ParseResult<char> {
        let mut code = start;
        for _ in 0..most {
            let Some(digit) = self.at(0).to_digit(radix) else { break };
            code = code.wrapping_mul(radix).wrapping_add(digit);
            self.skip(1);
        }
        // In bash a NUL ends the text; a byte above ASCII depends on the encoding.
        match char::from_u32(code).filter(|&decoded| decoded != END) {
            Some(decoded) => Ok(decoded),
            None => self.wrong("`$'…'` or `$\"…\"`"),
        }
    }
}

/// Whether `$` and this character is a special parameter.
fn is_special(next: char) -> bool {
    matches!(next, '@' | '*' | '#' | '?' | '-' | '$' | '!')
}

pub(super) fn plain(word: &mut Word, next: char) {
    if let Some(Piece::Plain(text)) = word.pieces.last_mut() {
        text.push(next);
        return;
    }
    // Few names are longer.
    let mut text = String::with_capacity(16);
    text.push(next);
    add(word, Piece::Plain(text));
}

/// Adds a piece to a word. Most words have one piece.
fn add(word: &mut Word, piece: Piece) {
    if word.pieces.capacity() == 0 {
        word.pieces.reserve_exact(1);
    }
    word.pieces.push(piece);
}

pub(super) fn quoted(word: &mut Word, next: char) {
    match word.pieces.last_mut() {
        Some(Piece::Quoted(text)) => text.push(next),
        _ => add(word, Piece::Quoted(next.to_string())),
    }
}
