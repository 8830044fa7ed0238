//! The encodings in which a secret may appear.

use std::fmt::Write;

/// A form and whether line breaks may stand inside it.
type Form = (Vec<u8>, bool);

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Every form of a value; some may be equal.
pub(super) fn of(value: &[u8]) -> Vec<Form> {
    let mut forms = vec![(value.to_vec(), false)];
    if !value.iter().all(|&byte| is_unreserved(byte)) {
        escaped(value, &mut forms);
    }
    for case in [Case::Lower, Case::Upper] {
        forms.push((hex(value, case), true));
        forms.push((value.iter().flat_map(|&byte| percent_byte(byte, case)).collect(), false));
    }
    for alphabet in [STANDARD, URL] {
        base64(value, alphabet, &mut forms);
    }
    forms
}

/// The password of a URL with user and password.
pub(super) fn password_of(value: &[u8]) -> Option<&[u8]> {
    let scheme = value.windows(3).position(|part| part == b"://")?;
    let rest = value.get(scheme + 3..)?;
    let authority = rest.split(|byte| b"/?#".contains(byte)).next()?;
    let at = authority.iter().rposition(|&byte| byte == b'@')?;
    let user = authority.get(..at)?;
    let colon = user.iter().position(|&byte| byte == b':')?;
    user.get(colon + 1..)
}

fn escaped(value: &[u8], forms: &mut Vec<Form>) {
    // Bytes that are not UTF-8 turn into U+FFFD on their way into JSON or onto a screen.
    let text = String::from_utf8_lossy(value);
    let plain = json(&text, |_| false, Case::Lower);
    let ascii = json(&text, |char| !char.is_ascii(), Case::Lower);
    let all = [
        json(&plain, |_| false, Case::Lower),
        json(&ascii, |_| false, Case::Lower),
        json(&text, |_| false, Case::Upper),
        json(&text, |char| !char.is_ascii(), Case::Upper),
        json(&text, |char| matches!(char, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'), Case::Lower),
        json(&text, |char| !char.is_ascii() || "<>&'\"+`".contains(char), Case::Upper),
        plain.replace('/', "\\/"),
        ascii.replace('/', "\\/"),
        plain,
        ascii,
        text.into_owned(),
    ];
    forms.extend(all.into_iter().map(|form| (form.into_bytes(), false)));
    for case in [Case::Lower, Case::Upper] {
        for kept in [&b""[..], b"/", b"!'()*", b"!'()*;/?:@&=+$,#"] {
            forms.push((percent(value, kept, case), false));
        }
        let spaced = percent(value, b" *", case);
        forms.push((spaced.into_iter().map(plus_for_space).collect(), false));
    }
}

#[derive(Clone, Copy)]
enum Case {
    Lower,
    Upper,
}

impl Case {
    fn digit(self, value: u8) -> u8 {
        match (value & 15, self) {
            (digit @ 0..=9, _) => b'0' + digit,
            (digit, Case::Lower) => b'a' + digit - 10,
            (digit, Case::Upper) => b'A' + digit - 10,
        }
    }
}

/// The inside of a JSON string; `more` selects characters that are written as `\uXXXX` in addition to the required
/// ones.
fn json(text: &str, more: impl Fn(char) -> bool, case: Case) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        match char {
            _ if more(char) => unicode(char, case, &mut out),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' => unicode(char, case, &mut out),
            _ => out.push(char),
        }
    }
    out
}

fn unicode(char: char, case: Case, out: &mut String) {
    for unit in char.encode_utf16(&mut [0; 2]) {
        // Writing to a String cannot fail.
        let _ = match case {
            Case::Lower => write!(out, "\\u{unit:04x}"),
            Case::Upper => write!(out, "\\u{unit:04X}"),
        };
    }
}

fn percent(value: &[u8], kept: &[u8], case: Case) -> Vec<u8> {
    let keeps = |byte| is_unreserved(byte) || kept.contains(&byte);
    value.iter().flat_map(|&byte| if keeps(byte) { vec![byte] } else { percent_byte(byte, case).to_vec() }).collect()
}

fn percent_byte(byte: u8, case: Case) -> [u8; 3] {
    [b'%', case.digit(byte >> 4), case.digit(byte)]
}

fn plus_for_space(byte: u8) -> u8 {
    if byte == b' ' { b'+' } else { byte }
}

fn hex(value: &[u8], case: Case) -> Vec<u8> {
    value.iter().flat_map(|&byte| [case.digit(byte >> 4), case.digit(byte)]).collect()
}

/// The whole encoding, and the parts of it that do not depend on neighbours: one, two or three unknown bytes before it,
/// and any bytes after it.
fn base64(value: &[u8], alphabet: &[u8; 64], forms: &mut Vec<Form>) {
    let whole = sextets(value.iter().copied(), alphabet, value.len() * 8);
    let padding = whole.len().next_multiple_of(4) - whole.len();
    let padded = [whole.as_slice(), b"==".get(..padding).unwrap_or_default()].concat();
    forms.extend([(padded, true), (whole, true)]);
    for before in 0..3 {
        let bits = (before + value.len()) * 8;
        let bytes = std::iter::repeat_n(0, before).chain(value.iter().copied());
        let digits = sextets(bytes, alphabet, bits - bits % 6);
        let first = (before * 8).div_ceil(6);
        forms.push((digits.get(first..).unwrap_or_default().to_vec(), true));
    }
}

/// The base64 digits that cover the first `bits` bits; the last digit is filled up with zeros.
fn sextets(bytes: impl Iterator<Item = u8>, alphabet: &[u8; 64], bits: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bits.div_ceil(6));
    let (mut pool, mut filled) = (0_u32, 0_u32);
    let mut digit = |six: u32| out.extend(alphabet.get((six & 63) as usize));
    for byte in bytes {
        pool = pool << 8 | u32::from(byte);
        filled += 8;
        while filled >= 6 {
            filled -= 6;
            digit(pool >> filled);
        }
    }
    if filled > 0 {
        digit(pool << (6 - filled));
    }
    out.truncate(bits.div_ceil(6));
    out
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}
