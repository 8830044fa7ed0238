//! Finds `{{ dotted.path }}` in a text: places for values of the event. Other code fills them in.

use std::ops::Range;

/// A place in a text for a value of the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder<'a> {
    /// Its byte range, including the braces.
    pub span: Range<usize>,
    /// The value's path, such as `tool_args.path`.
    pub path: &'a str,
}

/// The placeholders of a text, in order. Braces without a plain path of names and indexes are ordinary text.
///
/// ```
/// let found: Vec<_> = ollm_protocol::placeholders("a {{ b.c }} {{.d}}").map(|one| (one.span, one.path)).collect();
/// assert_eq!(found, [(2..11, "b.c")]);
/// ```
pub fn placeholders(text: &str) -> impl Iterator<Item = Placeholder<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text.get(at..)?.find("{{")?;
            // In a longer run of braces, only the last two can open a placeholder.
            at = start + 1;
            if let Some((path, length)) = first(text.get(start..)?) {
                at = start + length;
                return Some(Placeholder { span: start..at, path });
            }
        }
    })
}

/// The path of the placeholder at the start of the text, and its length.
fn first(text: &str) -> Option<(&str, usize)> {
    let inner = text.strip_prefix("{{")?;
    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || "_-. \t".contains(c)))?;
    let (path, tail) = inner.split_at_checked(end)?;
    let path = path.trim_matches([' ', '\t']);
    (tail.starts_with("}}") && is_path(path)).then_some((path, end + "{{}}".len()))
}

fn is_path(path: &str) -> bool {
    path.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && path.split('.').all(|segment| !segment.is_empty() && !segment.contains([' ', '\t']))
}
