//! Makes the text of other programs safe to look at.

use std::borrow::Cow;
use std::fmt::Write;

/// Shows characters that hide, reorder or control text as `\u{…}`. Newline, tab, and a carriage return before a newline
/// stay.
///
/// ```
/// assert_eq!(ollm_store::escape_for_people("ok\u{1b}[2J\u{202e}txt"), "ok\\u{1b}[2J\\u{202e}txt");
/// ```
pub fn escape_for_people(text: &str) -> Cow<'_, str> {
    escape(text, |hidden, shown| shown.extend(hidden.escape_unicode()))
}

/// The text without control characters, and without characters that hide or reorder text.
///
/// ```
/// assert_eq!(ollm_store::without_hidden("ok\u{1b}[2J\u{202e}txt"), "ok[2Jtxt");
/// ```
pub fn without_hidden(text: &str) -> Cow<'_, str> {
    escape(text, |_, _| {})
}

/// A text as one line: its content cannot look like another line.
///
/// ```
/// assert_eq!(ollm_store::one_line("a\nb\u{1b}"), "a b\\u{1b}");
/// ```
pub fn one_line(text: &str) -> String {
    // A carriage return before a line end was left unchanged; alone it would overwrite the line.
    escape_for_people(text).replace("\r\n", " ").replace('\n', " ")
}

/// Escapes JSON text, which keeps its meaning: characters that hide or reorder become `\uXXXX`.
///
/// ```
/// assert_eq!(ollm_store::escape_for_json("[\"a\u{202e}b\"]"), "[\"a\\u202eb\"]");
/// ```
pub fn escape_for_json(text: &str) -> Cow<'_, str> {
    escape(text, |hidden, shown| {
        for unit in hidden.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    })
}

fn escape(text: &str, show: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let Some(first) = next_hidden(text) else {
        return Cow::Borrowed(text);
    };
    let mut shown = String::with_capacity(text.len() + 16);
    let (mut clean, mut rest) = text.split_at(first);
    loop {
        shown.push_str(clean);
        let mut chars = rest.chars();
        if let Some(hidden) = chars.next() {
            show(hidden, &mut shown);
        }
        rest = chars.as_str();
        let Some(next) = next_hidden(rest) else {
            shown.push_str(rest);
            return Cow::Owned(shown);
        };
        (clean, rest) = rest.split_at(next);
    }
}

/// Keeps at most `max_bytes` of a text, whole characters only, and says how much is missing.
///
/// The note comes on top of `max_bytes`. Redact before cutting, because half a secret is not recognised.
///
/// ```
/// assert_eq!(ollm_store::cut("abcdef", 4), "abcd… [cut: 2 bytes]");
/// ```
pub fn cut(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    let (kept, gone) = text.split_at(text.floor_char_boundary(max_bytes));
    Cow::Owned(format!("{kept}… [cut: {} bytes]", gone.len()))
}

fn next_hidden(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let line_end = char == '\r' && chars.peek().is_some_and(|&(_, next)| next == '\n');
        if is_hidden(char) && !line_end {
            return Some(at);
        }
    }
    None
}

/// Control characters, direction marks, invisible characters, and ranges in which text can be hidden. The emoji
/// selectors U+FE0E and U+FE0F stay: they are common and harmless.
fn is_hidden(char: char) -> bool {
    match char {
        '\n' | '\t' | ' '..='~' => false,
        _ => char.is_control() || is_invisible(char),
    }
}

fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_and_ansi_characters_become_visible() {
        assert_eq!(escape_for_people("a\u{1b}[31mb\u{7}\u{9b}\0"), "a\\u{1b}[31mb\\u{7}\\u{9b}\\u{0}");
    }

    #[test]
    fn direction_marks_and_zero_width_characters_become_visible() {
        assert_eq!(
            escape_for_people("\u{202e}\u{2066}\u{200b}\u{200d}\u{feff}\u{e0041}"),
            "\\u{202e}\\u{2066}\\u{200b}\\u{200d}\\u{feff}\\u{e0041}"
        );
    }

    #[test]
    fn line_ends_and_tabs_stay_but_a_lone_carriage_return_does_not() {
        assert_eq!(escape_for_people("a\tb\nc\r\nd\re"), "a\tb\nc\r\nd\\u{d}e");
    }

    #[test]
    fn ordinary_text_is_borrowed() {
        for text in ["", "plain", "Größe, 数, 🙂, ⚠\u{fe0f}", "a\nb"] {
            assert!(matches!(escape_for_people(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn a_cut_falls_on_a_character_boundary_and_counts_the_rest() {
        assert_eq!(cut("aé", 2), "a… [cut: 2 bytes]");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("aé", 0), "… [cut: 3 bytes]");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn escaping_twice_changes_nothing(text in any::<String>()) {
            let once = escape_for_people(&text).into_owned();
            prop_assert!(next_hidden(&once).is_none());
            prop_assert_eq!(escape_for_people(&once), once.as_str());
        }

        #[test]
        fn escaped_json_is_the_same_json_without_anything_hidden(text in any::<String>()) {
            let json = serde_json::Value::String(text).to_string();
            let shown = escape_for_json(&json);
            prop_assert!(next_hidden(&shown).is_none());
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap().to_string(), json);
        }

        #[test]
        fn a_cut_keeps_a_prefix_of_the_allowed_size(text in any::<String>(), max in 0usize..64) {
            let result = cut(&text, max);
            let kept = result.split("… [cut: ").next().unwrap();
            prop_assert!(text.starts_with(kept));
            if text.len() > max {
                prop_assert!(kept.len() <= max);
            }
        }
    }
}
