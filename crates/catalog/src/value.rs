//! Reads values of a type: each reader says whether a value is valid, can be converted, or is wrong.

use std::time::Duration;

use ollm_protocol::{Timeout, units};

use crate::node::{Cursor, Node};

/// The result of reading a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reading<T> {
    /// As it should be written.
    Exact(T),
    /// Written in another type, such as a number in quotes.
    Converted(T),
    /// Something else.
    Wrong,
}

impl<T> Reading<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Reading::Exact(value) => Reading::Exact(change(value)),
            Reading::Converted(value) => Reading::Converted(change(value)),
            Reading::Wrong => Reading::Wrong,
        }
    }

    fn exact(value: Option<T>) -> Reading<T> {
        value.map_or(Reading::Wrong, Reading::Exact)
    }

    fn converted(value: Option<T>) -> Reading<T> {
        value.map_or(Reading::Wrong, Reading::Converted)
    }
}

/// What was found in the place of what was expected; of a list also what does not belong into one of texts.
pub(crate) fn found(node: &Node, expected: &str) -> String {
    let odd = match node {
        Node::List(items) if expected.starts_with("a list") => items.iter().find(|item| text(item) == Reading::Wrong),
        _ => None,
    };
    odd.map_or_else(|| node.kind().to_owned(), |item| format!("a list with {} in it", item.kind()))
}

/// Text that is clearly text.
pub(crate) fn plain(node: &Node) -> Reading<String> {
    match node {
        Node::Text(text) => Reading::Exact(text.clone()),
        _ => Reading::Wrong,
    }
}

pub(crate) fn text(node: &Node) -> Reading<String> {
    match node {
        Node::Text(text) => Reading::Exact(text.clone()),
        Node::Bool(value) => Reading::Converted(value.to_string()),
        Node::Whole(value) => Reading::Converted(value.to_string()),
        Node::Fraction(value) => Reading::Converted(value.to_string()),
        Node::Null | Node::List(_) | Node::Map(_) => Reading::Wrong,
    }
}

/// Text with something in it.
pub(crate) fn word(node: &Node) -> Reading<String> {
    match text(node) {
        Reading::Exact(text) | Reading::Converted(text) if text.trim().is_empty() => Reading::Wrong,
        reading => reading,
    }
}

pub(crate) fn flag(node: &Node) -> Reading<bool> {
    match node {
        Node::Bool(value) => Reading::Exact(*value),
        Node::Text(text) => Reading::converted(flag_word(text)),
        _ => Reading::Wrong,
    }
}

/// The words for true and false, as people write them in files and variables.
pub(crate) fn flag_word(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

pub(crate) fn whole(node: &Node) -> Reading<u64> {
    match node {
        Node::Whole(value) => Reading::exact(u64::try_from(*value).ok()),
        Node::Text(text) => Reading::converted(text.trim().parse().ok()),
        _ => Reading::Wrong,
    }
}

/// Any finite number.
pub(crate) fn decimal(node: &Node) -> Reading<f64> {
    match node {
        Node::Text(text) => Reading::converted(text.trim().parse().ok().filter(|number: &f64| number.is_finite())),
        _ => Reading::exact(number(node).filter(|number| number.is_finite())),
    }
}

/// A timeout: a number in the unit of its dialect, or text with a unit.
pub(crate) fn timeout(node: &Node) -> Reading<Timeout> {
    match node {
        Node::Text(text) => match units::duration(text) {
            Some(value) => Reading::Exact(Timeout::Exact(value)),
            None => Reading::converted(text.trim().parse().ok().filter(|number: &f64| number.is_finite()))
                .map(Timeout::Bare),
        },
        _ => Reading::exact(number(node)).map(Timeout::Bare),
    }
}

/// A positive time: a number of `unit`, or text with its own unit.
pub(crate) fn time(node: &Node, unit: Duration) -> Reading<Duration> {
    match pause(node, unit) {
        Reading::Exact(value) | Reading::Converted(value) if value.is_zero() => Reading::Wrong,
        reading => reading,
    }
}

/// A time that may be zero: a number of `unit`, or text with its own unit.
pub(crate) fn pause(node: &Node, unit: Duration) -> Reading<Duration> {
    match timeout(node) {
        Reading::Exact(time) => Reading::exact(time.duration(unit)),
        Reading::Converted(time) => Reading::converted(time.duration(unit)),
        Reading::Wrong => Reading::Wrong,
    }
}

/// A whole number above zero.
pub(crate) fn positive(node: &Node) -> Reading<u32> {
    let small = |number: u64| u32::try_from(number).ok().filter(|number| *number > 0);
    match whole(node) {
        Reading::Exact(number) => Reading::exact(small(number)),
        Reading::Converted(number) => Reading::converted(small(number)),
        Reading::Wrong => Reading::Wrong,
    }
}

/// A positive time with its unit.
pub(crate) fn span(node: &Node) -> Reading<Duration> {
    match node {
        Node::Text(text) => Reading::exact(units::duration(text).filter(|value| !value.is_zero())),
        _ => Reading::Wrong,
    }
}

/// A number of bytes, or text with a unit.
pub(crate) fn size(node: &Node) -> Reading<u64> {
    match node {
        Node::Text(text) => match units::size(text) {
            Some(value) => Reading::Exact(value),
            None => whole(node),
        },
        _ => whole(node),
    }
}

/// A list of texts; a single text counts as a list of one.
pub(crate) fn texts(node: &Node) -> Reading<Vec<String>> {
    match node {
        Node::List(items) => {
            let mut converted = false;
            let mut texts = Vec::with_capacity(items.len());
            for item in items {
                match text(item) {
                    Reading::Exact(text) => texts.push(text),
                    Reading::Converted(text) => {
                        converted = true;
                        texts.push(text);
                    }
                    Reading::Wrong => return Reading::Wrong,
                }
            }
            if converted { Reading::Converted(texts) } else { Reading::Exact(texts) }
        }
        Node::Text(text) => Reading::Converted(vec![text.clone()]),
        _ => Reading::Wrong,
    }
}

/// The way out of [`relative_entries`].
pub(crate) const MAKE_ABSOLUTE: &str = "write them as absolute paths";

/// The PATH among variables, if it has relative entries, and a message about them. Such entries mean another folder
/// wherever a program runs, so they are left out.
pub(crate) fn relative_entries<'c>(variables: &'c Cursor<'c>) -> Option<(Cursor<'c>, String)> {
    let path = variables.get("PATH")?;
    let relative: Vec<String> = std::env::split_paths(path.node.as_text()?)
        .filter(|entry| !entry.is_absolute())
        .map(|entry| format!("`{}`", entry.display()))
        .collect();
    let message = format!("relative entries of PATH are left out: {}", relative.join(", "));
    (!relative.is_empty()).then_some((path, message))
}

#[expect(clippy::cast_precision_loss, reason = "no timeout is near 2^53 milliseconds")]
fn number(node: &Node) -> Option<f64> {
    match node {
        Node::Whole(value) => Some(*value as f64),
        Node::Fraction(value) => Some(*value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_converted_is_converted() {
        assert_eq!(flag(&Node::Text("True".into())), Reading::Converted(true));
        assert_eq!(flag(&Node::Whole(1)), Reading::Wrong);
        assert_eq!(whole(&Node::Text("32".into())), Reading::Converted(32));
        assert_eq!(whole(&Node::Whole(-1)), Reading::Wrong);
        assert_eq!(timeout(&Node::Text("5s".into())), Reading::Exact(Timeout::Exact(Duration::from_secs(5))));
        assert_eq!(timeout(&Node::Text("30000".into())), Reading::Converted(Timeout::Bare(30_000.0)));
        assert_eq!(timeout(&Node::Text("inf".into())), Reading::Wrong);
        for nothing in [Node::Whole(0), Node::Fraction(0.0), Node::Text("0s".into())] {
            assert_eq!(time(&nothing, Duration::from_millis(1)), Reading::Wrong);
            assert_eq!(pause(&nothing, Duration::from_millis(1)), Reading::Exact(Duration::ZERO));
        }
        assert_eq!(pause(&Node::Text("0".into()), Duration::from_millis(1)), Reading::Converted(Duration::ZERO));
        assert_eq!(size(&Node::Text("1KiB".into())), Reading::Exact(1024));
        assert_eq!(texts(&Node::Text("a".into())), Reading::Converted(vec!["a".into()]));
    }
}
