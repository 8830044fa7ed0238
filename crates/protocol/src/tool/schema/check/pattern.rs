//! Patterns of schemas, which are written for ECMAScript. Those that our own engine does not know — it never looks ahead,
//! behind or back, and so never takes long — are not checked.

use std::collections::HashMap;
use std::fmt::Write;

use regex_lite::{Regex, RegexBuilder};

use super::Fit;

/// The size that a pattern may grow to.
const LARGEST: usize = 256 << 10;
/// Smaller sizes. The first it fits in says what a character may cost.
const SIZES: [usize; 4] = [1 << 10, 4 << 10, 16 << 10, 64 << 10];
/// Longer patterns are not looked at.
const LONGEST: usize = 4 << 10;
/// So much of a pattern, times the bytes of a text, is one step.
const STEP: usize = 128 << 10;
/// More steps than that are not worth it for one text.
const MOST_STEPS: usize = 20_000;

/// The patterns that were met.
#[derive(Default)]
pub(super) struct Patterns<'a>(HashMap<&'a str, Option<(Regex, usize)>>);

impl<'a> Patterns<'a> {
    /// Whether a text matches, and how many steps that took.
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

/// The pattern and its size, and how much was tried for that.
fn compiled(pattern: &str) -> (Option<(Regex, usize)>, usize) {
    let Some(translated) = translated(pattern).filter(|_| pattern.len() <= LONGEST) else { return (None, 0) };
    let build = |size: usize| RegexBuilder::new(&translated).size_limit(size).build().ok();
    let Some(regex) = build(LARGEST) else { return (None, LARGEST) };
    let smallest = SIZES.into_iter().find(|size| build(*size).is_some()).unwrap_or(LARGEST);
    (Some((regex, smallest)), 2 * smallest)
}

/// The pattern in our engine's words; `None` where it has none for it.
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
                // An empty class is one that nothing, or everything, belongs to.
                if rest.peek() == Some(&']') {
                    return None;
                }
            }
            ']' if inside => {
                inside = false;
                text.push(']');
            }
            '&' | '~' if inside => text.extend(['\\', letter]),
            // All but the ends of lines.
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
        // In ECMAScript a class knows it as a character.
        'b' if inside => text.push_str("\\x08"),
        '0' if !rest.peek().is_some_and(char::is_ascii_digit) => text.push_str("\\x00"),
        'c' => {
            let control = rest.next().filter(char::is_ascii_alphabetic)?;
            let _ = write!(text, "\\x{:02x}", u32::from(control) % 32);
        }
        // What comes behind these is read by whoever reads the rest, unless it is one half of a character.
        'u' if rest.peek() != Some(&'{') => {
            let digits: String = rest.by_ref().take(4).collect();
            let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)?;
            let _ = write!(text, "\\u{{{:x}}}", u32::from(code));
        }
        // These are ours alone; in ECMAScript they mean themselves, or nothing.
        'A' | 'z' | 'a' | 'U' | '<' | '>' => return None,
        other => text.extend(['\\', other]),
    }
    Some(())
}
