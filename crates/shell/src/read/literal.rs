//! Splits a line into words; only quotes and backslashes are special.

use super::{
    ParseError, ParseResult, Quoting,
    lexer::{END, Lexer},
    word::{plain, quoted},
};
use crate::tree::{Piece, Word};

/// Characters that only a shell interprets.
const SPECIAL: &[char] = &['|', '&', ';', '<', '>', '(', ')', '`', '$', '\n', '\r'];

/// The meaning of a line end between words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEnd {
    /// A character that needs a shell. Comments are text in this mode.
    Special,
    /// A blank; it ends a comment.
    Blank,
}

impl Lexer {
    /// All words, and the first character that would need a shell.
    pub(crate) fn literal_words(&mut self, end: LineEnd) -> ParseResult<(Vec<Word>, Option<char>)> {
        let mut words = Vec::new();
        let mut special = None;
        loop {
            while is_blank(self.at(0), end) {
                self.skip(1);
            }
            if self.at_end() {
                return Ok((words, special));
            }
            if self.at(0) == '#' && end == LineEnd::Blank {
                while !self.at_end() && self.at(0) != '\n' {
                    self.skip(1);
                }
                continue;
            }
            words.push(self.literal_word(end, &mut special)?);
        }
    }

    fn literal_word(&mut self, end: LineEnd, special: &mut Option<char>) -> ParseResult<Word> {
        let mut word = Word::default();
        let start = self.offset();
        while !self.at_end() && !is_blank(self.at(0), end) {
            if self.fill(&mut word, Quoting::None) {
                continue;
            }
            match self.at(0) {
                '\\' => self.escape(&mut word)?,
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.literal_quoted(&mut word, special)?,
                next => {
                    if SPECIAL.contains(&next) {
                        special.get_or_insert(next);
                    }
                    self.skip(1);
                    plain(&mut word, next);
                }
            }
        }
        word.span = start..self.offset();
        Ok(word)
    }

    fn literal_quoted(&mut self, word: &mut Word, special: &mut Option<char>) -> ParseResult<()> {
        let opened = self.offset();
        self.skip(1);
        word.pieces.push(Piece::Quoted(String::new()));
        loop {
            if self.fill(word, Quoting::Double) {
                continue;
            }
            match self.at(0) {
                END => return Err(ParseError::Unclosed { opened: "a double quote", at: opened }),
                '"' => {
                    self.skip(1);
                    return Ok(());
                }
                '\\' => self.quoted_escape(word, &['$', '`', '"', '\\']),
                next => {
                    if matches!(next, '$' | '`') {
                        special.get_or_insert(next);
                    }
                    self.skip(1);
                    quoted(word, next);
                }
            }
        }
    }
}

fn is_blank(next: char, end: LineEnd) -> bool {
    matches!(next, ' ' | '\t') || (next == '\n' && end == LineEnd::Blank)
}
