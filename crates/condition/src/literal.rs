//! Reads numbers, texts and bytes in the notation of CEL.

use crate::error::{ConditionError, Text};
use crate::lexer::Token;
use crate::syntax::Literal;

/// How a text or byte literal begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quote {
    raw: bool,
    bytes: bool,
    mark: &'static str,
    /// The length of the prefix and the quotation mark.
    length: usize,
}

/// The beginning of a text or byte literal, if there is one here.
pub(crate) fn opening(rest: &str) -> Option<Quote> {
    let prefix = rest.bytes().take(2).take_while(|byte| b"rRbB".contains(byte)).count();
    let letters = rest.get(..prefix)?.to_ascii_lowercase();
    if !["", "r", "b", "br"].contains(&letters.as_str()) {
        return None;
    }
    let after = rest.get(prefix..)?;
    let mark = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|mark| after.starts_with(mark))?;
    Some(Quote { raw: letters.contains('r'), bytes: letters.contains('b'), mark, length: prefix + mark.len() })
}

/// The text or byte literal that begins here, and its length.
pub(crate) fn text(text: Text<'_>, at: usize, quote: Quote) -> Result<(Literal, usize), ConditionError> {
    let mut reader = LiteralReader { text, at: at + quote.length, quote, read: Vec::new() };
    while !reader.rest().starts_with(quote.mark) {
        reader.character(at)?;
    }
    let length = reader.at + quote.mark.len() - at;
    if quote.bytes {
        return Ok((Literal::Bytes(reader.read), length));
    }
    let read = String::from_utf8(reader.read).unwrap_or_default();
    Ok((Literal::Text(read), length))
}

/// Reads the inside of a literal.
struct LiteralReader<'t> {
    text: Text<'t>,
    at: usize,
    quote: Quote,
    /// In a text literal it always contains whole characters.
    read: Vec<u8>,
}

impl<'t> LiteralReader<'t> {
    fn rest(&self) -> &'t str {
        self.text.0.get(self.at..).unwrap_or_default()
    }

    fn character(&mut self, start: usize) -> Result<(), ConditionError> {
        match self.rest().chars().next() {
            Some('\\') if !self.quote.raw => self.escape(),
            Some('\n' | '\r') | None if self.quote.mark.len() == 1 || self.rest().is_empty() => {
                Err(self.text.error(start, "this quote is never closed", format!("end it with `{}`", self.quote.mark)))
            }
            Some(first) => {
                let length = first.len_utf8();
                self.read.extend(self.rest().bytes().take(length));
                self.at += length;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn escape(&mut self) -> Result<(), ConditionError> {
        let letter = self.rest().chars().nth(1);
        let simple = letter.and_then(|letter| match letter {
            'a' => Some(7),
            'b' => Some(8),
            'f' => Some(12),
            'n' => Some(10),
            'r' => Some(13),
            't' => Some(9),
            'v' => Some(11),
            '\\' | '?' | '"' | '\'' | '`' => u8::try_from(letter).ok(),
            _ => None,
        });
        if let Some(byte) = simple {
            self.read.push(byte);
            self.at += 2;
            return Ok(());
        }
        match letter {
            Some('x' | 'X') => self.code(2, 2, 16),
            Some('u') if !self.quote.bytes => self.code(2, 4, 16),
            Some('U') if !self.quote.bytes => self.code(2, 8, 16),
            Some('0'..='3') => self.code(1, 3, 8),
            _ => Err(self.bad_escape()),
        }
    }

    /// A numeric escape: the characters before the digits, the number of digits, and their base.
    fn code(&mut self, before: usize, digits: usize, base: u32) -> Result<(), ConditionError> {
        let number = self.rest().get(before..before + digits);
        let number = number.filter(|number| number.chars().all(|digit| digit.is_digit(base)));
        let number = number.and_then(|number| u32::from_str_radix(number, base).ok());
        if self.quote.bytes {
            let byte = number.and_then(|number| u8::try_from(number).ok()).ok_or_else(|| self.bad_escape())?;
            self.read.push(byte);
        } else {
            let character = number.and_then(char::from_u32).ok_or_else(|| self.bad_escape())?;
            self.read.extend(character.encode_utf8(&mut [0; 4]).bytes());
        }
        self.at += before + digits;
        Ok(())
    }

    fn bad_escape(&self) -> ConditionError {
        let shown: String = self.rest().chars().take(2).collect();
        let what = format!("`{}…` stands for no character", shown.escape_debug().to_string().replace("\\\\", "\\"));
        self.text.error(self.at, what, "write `\\\\` for a backslash, or a raw text as in `r'\\d+'`")
    }
}

/// The number that begins here, and its length.
pub(crate) fn number(text: Text<'_>, at: usize) -> Result<(Token<'_>, usize), ConditionError> {
    let rest = text.0.get(at..).unwrap_or_default();
    let hex = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"));
    let (digits, base, mut length) = match hex {
        Some(hex) => (span(hex, |c| c.is_ascii_hexdigit()), 16, 2),
        None => (span(rest, |c| c.is_ascii_digit()), 10, 0),
    };
    length += digits.len();
    let after = rest.get(length..).unwrap_or_default();
    if base == 10
        && let Some(more) = fraction(after)
    {
        return double(text, at, length + more);
    }
    let unsigned = after.starts_with(['u', 'U']);
    length += usize::from(unsigned);
    check_end(text, at, length)?;
    let magnitude = u64::from_str_radix(digits, base).ok();
    let token = match (magnitude, unsigned) {
        (Some(value), true) => Token::Literal(Literal::Uint(value)),
        (Some(value), false) if value == 1 << 63 => Token::Smallest,
        (Some(value), false) => Token::Literal(Literal::Int(i64::try_from(value).map_err(|_| too_big(text, at))?)),
        (None, _) => return Err(too_big(text, at)),
    };
    Ok((token, length))
}

fn double(text: Text<'_>, at: usize, length: usize) -> Result<(Token<'_>, usize), ConditionError> {
    check_end(text, at, length)?;
    let value: f64 = text.0.get(at..at + length).and_then(|number| number.parse().ok()).unwrap_or(f64::INFINITY);
    if value.is_infinite() {
        return Err(too_big(text, at));
    }
    Ok((Token::Literal(Literal::Double(value)), length))
}

/// The length of `.5`, `.5e3` or `e3`, if the number continues like this.
fn fraction(after: &str) -> Option<usize> {
    let point =
        after.strip_prefix('.').map(|rest| span(rest, |c| c.is_ascii_digit()).len()).filter(|length| *length > 0);
    let length = point.map_or(0, |digits| digits + 1);
    exponent(after.get(length..)?).map(|more| length + more).or(point.map(|_| length))
}

fn exponent(after: &str) -> Option<usize> {
    let rest = after.strip_prefix(['e', 'E'])?;
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let count = span(digits, |c| c.is_ascii_digit()).len();
    (count > 0).then_some(after.len() - digits.len() + count)
}

fn span(text: &str, belongs: impl Fn(char) -> bool) -> &str {
    text.get(..text.find(|c| !belongs(c)).unwrap_or(text.len())).unwrap_or_default()
}

fn check_end(text: Text<'_>, at: usize, length: usize) -> Result<(), ConditionError> {
    let next = text.0.get(at + length..).and_then(|rest| rest.chars().next());
    if next.is_some_and(|next| next.is_alphanumeric() || next == '_') {
        return Err(text.error(at, "this number goes on as a word", "put a space or an operator behind it"));
    }
    Ok(())
}

fn too_big(text: Text<'_>, at: usize) -> ConditionError {
    text.error(at, "this number is no 64-bit number", "write it as a smaller number, or as a double such as `1e20`")
}
