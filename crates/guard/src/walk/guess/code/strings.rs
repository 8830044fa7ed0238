//! The strings in code of other languages, and what stands around them.

use std::borrow::Cow;

/// So much of the code before a string is looked at for the call that it is given to.
const LONGEST_CALL: usize = 64;

/// What stands right before a string: the call that it is given to.
pub(super) fn call_before(before: &str) -> String {
    end_of(before, LONGEST_CALL).trim_end().to_ascii_lowercase()
}

/// The end of a text, about so many bytes.
pub(super) fn end_of(text: &str, bytes: usize) -> &str {
    let from = (text.len().saturating_sub(bytes)..text.len()).find(|at| text.is_char_boundary(*at));
    from.and_then(|from| text.get(from..)).unwrap_or_default()
}

/// What stands in quotes, of any kind, with `\"` and the like written out.
pub(super) fn strings(code: &str) -> Vec<Cow<'_, str>> {
    quoted(code).map(|(_, string, _)| unescaped(string)).collect()
}

/// The same as it is written, with the code before it and behind it.
pub(super) fn quoted(code: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let mut rest = code;
    // A quote that ends nowhere is none, and so are those of its kind behind it.
    let mut quotes = vec!['"', '\'', '`'];
    std::iter::from_fn(move || {
        while let Some(start) = rest.find(quotes.as_slice()) {
            let (quote, behind) = rest.split_at(start).1.split_at(1);
            let Some(end) = string_end(behind, quote) else {
                quotes.retain(|kept| !quote.starts_with(*kept));
                rest = behind;
                continue;
            };
            let (string, after) = behind.split_at(end);
            let before = code.get(..code.len() - behind.len() - 1).unwrap_or_default();
            rest = after.get(1..).unwrap_or_default();
            return Some((before, string, rest));
        }
        None
    })
}

/// Where the quote stands that ends a string.
pub(super) fn string_end(text: &str, quote: &str) -> Option<usize> {
    let escapes = |at: usize| {
        text.get(..at).is_some_and(|before| {
            let slashes = before.len() - before.trim_end_matches('\\').len();
            slashes % 2 == 1
        })
    };
    text.match_indices(quote).map(|(at, _)| at).find(|at| !escapes(*at))
}

pub(super) fn unescaped(string: &str) -> Cow<'_, str> {
    if !string.contains('\\') {
        return Cow::Borrowed(string);
    }
    let mut plain = String::with_capacity(string.len());
    let mut rest = string.chars();
    while let Some(next) = rest.next() {
        match (next, next == '\\') {
            (_, true) => match rest.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some(kind @ ('x' | 'u')) => {
                    let digits = rest.as_str().get(..if kind == 'x' { 2 } else { 4 });
                    let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
                    plain.push(code.unwrap_or(kind));
                    if code.is_some() {
                        rest = rest.as_str().get(digits.map_or(0, str::len)..).unwrap_or_default().chars();
                    }
                }
                escaped => plain.extend(escaped),
            },
            (next, false) => plain.push(next),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::strings;

    #[test]
    fn strings_end_at_their_own_quote() {
        assert_eq!(strings(r#"f("a 'b' \"c\"", 'd')"#), [r#"a 'b' "c""#, "d"]);
        assert_eq!(strings("don't; f(\"x\")"), ["x"]);
    }
}
