//! Splits a text into words: names, literals and signs, each with its position.

use crate::error::{ConditionError, Text};
use crate::literal;
use crate::syntax::Literal;

/// One word of a condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token<'t> {
    Name(&'t str),
    /// A name in backticks, for fields whose names are not plain identifiers.
    Field(&'t str),
    Literal(Literal),
    /// 2^63, which is an int only after a minus.
    Smallest,
    Sign(&'static str),
    End,
}

/// A word and its position.
#[derive(Clone, Debug)]
pub(crate) struct Word<'t> {
    pub(crate) at: usize,
    pub(crate) token: Token<'t>,
}

/// Longer signs come first, because the first match is taken.
const SIGNS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":", ",", ".", "(", ")", "[", "]",
    "{", "}",
];

/// All words of a text, with an end marker.
pub(crate) fn words(text: &str) -> Result<Vec<Word<'_>>, ConditionError> {
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        at = skip_blank(text, at);
        let (token, length) = word(text, at)?;
        let end = token == Token::End;
        words.push(Word { at, token });
        if end {
            return Ok(words);
        }
        at += length;
    }
}

fn skip_blank(text: &str, mut at: usize) -> usize {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']).len();
        let comment = rest.get(blank..).filter(|rest| rest.starts_with("//"));
        let Some(comment) = comment else { return at + blank };
        at += blank + comment.find('\n').unwrap_or(comment.len());
    }
}

fn word(text: &str, at: usize) -> Result<(Token<'_>, usize), ConditionError> {
    let rest = text.get(at..).unwrap_or_default();
    let Some(first) = rest.chars().next() else { return Ok((Token::End, 0)) };
    if let Some(quote) = literal::opening(rest) {
        let (value, length) = literal::text(Text(text), at, quote)?;
        return Ok((Token::Literal(value), length));
    }
    if first.is_ascii_digit() || (first == '.' && rest.chars().nth(1).is_some_and(|next| next.is_ascii_digit())) {
        return literal::number(Text(text), at);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        return Ok((named(rest.get(..length).unwrap_or_default()), length));
    }
    if first == '`' {
        return field(text, at);
    }
    if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        return Ok((Token::Sign(sign), sign.len()));
    }
    Err(Text(text).error(at, format!("unexpected `{}`", first.escape_debug()), hint(rest)))
}

/// What to do about a character that begins no word.
fn hint(rest: &str) -> &'static str {
    match rest.chars().next() {
        Some('&') => "write `&&` for and",
        Some('|') => "write `||` for or",
        Some('=') => "write `==` to compare",
        Some('“' | '”' | '‘' | '’' | '„') => "write straight quotes, `'` or `\"`",
        _ => "put text in quotes, as in `'text'`",
    }
}

fn named(name: &str) -> Token<'_> {
    match name {
        "true" => Token::Literal(Literal::Bool(true)),
        "false" => Token::Literal(Literal::Bool(false)),
        "null" => Token::Literal(Literal::Null),
        "in" => Token::Sign("in"),
        _ => Token::Name(name),
    }
}

fn field(text: &str, at: usize) -> Result<(Token<'_>, usize), ConditionError> {
    let inside = text.get(at + 1..).unwrap_or_default();
    let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && !"_.-/ ".contains(c)).unwrap_or(inside.len());
    let name = inside.get(..end).unwrap_or_default();
    if name.is_empty() || !inside.get(end..).unwrap_or_default().starts_with('`') {
        return Err(Text(text).error(at, "this name in backticks is not closed", "write `['name']` instead"));
    }
    Ok((Token::Field(name), end + 2))
}
