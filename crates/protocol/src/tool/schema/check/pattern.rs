//! Checks patterns of schemas, which are in ECMAScript syntax. Our engine has no look-around and no back-references, so
//! it never takes long. Patterns that need these are not checked.

use std::collections::HashMap;
use std::fmt::Write;

use regex_lite::{Regex, RegexBuilder};

use super::Fit;

/// The largest compiled size of a pattern.
const LARGEST: usize = 256 << 10;
/// Smaller sizes. The first one that is enough tells the cost of one character.
const SIZES: [usize; 4] = [1 << 10, 4 << 10, 16 << 10, 64 << 10];
/// The longest pattern that is read.
const LONGEST: usize = 4 << 10;
/// One step is this product of a pattern's size and a text's bytes.
const STEP: usize = 128 << 10;
/// The most steps for one text.
const MOST_STEPS: usize = 20_000;

/// The patterns seen so far.
#[derive(Default)]
pub(super) struct Patterns<'a>(HashMap<&'a str, Option<(Regex, usize)>>);

impl<'a> Patterns<'a> {
    /// Whether a text matches, and the steps that this took.
    pub(super) fn matches(&mut self, pattern: &'a str, text: &str) -> (Fit, usize) {
        let mut steps = 0;
        let compiled = self.0.entry(pattern).or_insert_with(|| {
            let (compiled, tried) = compiled(pattern);
            steps = 1 + tried / 64;
            compiled
        });
        let Some((regex, size)) = compiled else { return (Fit::Unknown, steps) };
        let work = size.saturating_mul(text.len()) / STEP;
        if work > MOST_STEPS {
            return (Fit::Unknown, steps);
        }
        let fit = if regex.is_match(text) { Fit::Yes } else { Fit::No };
        (fit, steps + work + 1)
    }
}

/// The compiled pattern with its size, and the cost of compiling.
fn compiled(pattern: &str) -> (Option<(Regex, usize)>, usize) {
    let Some(translated) = translated(pattern).filter(|_| pattern.len() <= LONGEST) else { return (None, 0) };
    let build = |size: usize| RegexBuilder::new(&translated).size_limit(size).build().ok();
    let Some(regex) = build(LARGEST) else { return (None, LARGEST) };
    let smallest = SIZES.into_iter().find(|size| build(*size).is_some()).unwrap_or(LARGEST);
    (Some((regex, smallest)), 2 * smallest)
}

/// The pattern in our engine's syntax; `None` if it cannot be expressed.
fn translated(pattern: &str) -> Option<String> {
    let mut text = String::with_capacity(pattern.len() + 8);
    let mut inside = false;
    let mut rest = pattern.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\\' => escape(rest.next()?, inside, &mut rest, &mut text)?,
            '[' if inside => text.push_str("\\["),
            '[' => {
                inside = true;
                text.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    text.push('^');
                }
                // An empty class matches nothing, or everything.
                if rest.peek() == Some(&']') {
                    return None;
                }
            }
            ']' if inside => {
                inside = false;
                text.push(']');
            }
            '&' | '~' if inside => text.extend(['\\', letter]),
            // Any character but a line end.
            '.' if !inside => text.push_str("[^\\n\\r\\u{2028}\\u{2029}]"),
            other => text.push(other),
        }
    }
    Some(text)
}

fn escape(
    letter: char,
    inside: bool,
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    text: &mut String,
) -> Option<()> {
    const BLANK: &str = "\\s\\u{a0}\\u{feff}\\u{1680}\\u{2000}-\\u{200a}\\u{2028}\\u{2029}\\u{202f}\\u{205f}\\u{3000}";
    match letter {
        's' if inside => text.push_str(BLANK),
        's' => text.extend(["[", BLANK, "]"]),
        'S' if inside => return None,
        'S' => text.extend(["[^", BLANK, "]"]),
        // In an ECMAScript class, this is the backspace character.
        'b' if inside => text.push_str("\\x08"),
        '0' if !rest.peek().is_some_and(char::is_ascii_digit) => text.push_str("\\x00"),
        'c' => {
            let control = rest.next().filter(char::is_ascii_alphabetic)?;
            let _ = write!(text, "\\x{:02x}", u32::from(control) % 32);
        }
        // The loop reads the digits after these, unless they are half of a surrogate pair.
        'u' if rest.peek() != Some(&'{') => {
            let digits: String = rest.by_ref().take(4).collect();
            let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)?;
            let _ = write!(text, "\\u{{{:x}}}", u32::from(code));
        }
        // Only our engine knows these. In ECMAScript they mean themselves, or nothing.
        'A' | 'z' | 'a' | 'U' | '<' | '>' => return None,
        other => text.extend(['\\', other]),
    }
    Some(())
}
