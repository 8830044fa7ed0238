//! Reads values of a type: each reader says whether a value is valid, can be converted, or is wrong.

use std::time::Duration;

use ollm_protocol::{Timeout, units};

use crate::node::{Cursor, Node};

/// The result of reading a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReadValue<T> {
    /// As it should be written.
    Exact(T),
    /// Written in another type, such as a number in quotes.
    Converted(T),
    /// Something else.
    Wrong,
}

impl<T> ReadValue<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> ReadValue<U> {
        match self {
            ReadValue::Exact(value) => ReadValue::Exact(change(value)),
            ReadValue::Converted(value) => ReadValue::Converted(change(value)),
            ReadValue::Wrong => ReadValue::Wrong,
        }
    }

    fn exact(value: Option<T>) -> ReadValue<T> {
        value.map_or(ReadValue::Wrong, ReadValue::Exact)
    }

    fn converted(value: Option<T>) -> ReadValue<T> {
        value.map_or(ReadValue::Wrong, ReadValue::Converted)
    }
}

/// What was found in the place of what was expected; of a list also what does not belong into one of texts.
pub(crate) fn found(node: &Node, expected: &str) -> String {
    let odd = match node {
        Node::List(items) if expected.starts_with("a list") => items.iter().find(|item| text(item) == ReadValue::Wrong),
        _ => None,
    };
    odd.map_or_else(|| node.kind().to_owned(), |item| format!("a list with {} in it", item.kind()))
}

/// Text that is clearly text.
pub(crate) fn plain(node: &Node) -> ReadValue<String> {
    match node {
        Node::Text(text) => ReadValue::Exact(text.clone()),
        _ => ReadValue::Wrong,
    }
}

pub(crate) fn text(node: &Node) -> ReadValue<String> {
    match node {
        Node::Text(text) => ReadValue::Exact(text.clone()),
        Node::Bool(value) => ReadValue::Converted(value.to_string()),
        Node::Whole(value) => ReadValue::Converted(value.to_string()),
        Node::Fraction(value) => ReadValue::Converted(value.to_string()),
        Node::Null | Node::List(_) | Node::Map(_) => ReadValue::Wrong,
    }
}

/// Text with something in it.
pub(crate) fn word(node: &Node) -> ReadValue<String> {
    match text(node) {
        ReadValue::Exact(text) | ReadValue::Converted(text) if text.trim().is_empty() => ReadValue::Wrong,
        reading => reading,
    }
}

pub(crate) fn flag(node: &Node) -> ReadValue<bool> {
    match node {
        Node::Bool(value) => ReadValue::Exact(*value),
        Node::Text(text) => ReadValue::converted(flag_word(text)),
        _ => ReadValue::Wrong,
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

pub(crate) fn whole(node: &Node) -> ReadValue<u64> {
    match node {
        Node::Whole(value) => ReadValue::exact(u64::try_from(*value).ok()),
        Node::Text(text) => ReadValue::converted(text.trim().parse().ok()),
        _ => ReadValue::Wrong,
    }
}

/// Any finite number.
pub(crate) fn decimal(node: &Node) -> ReadValue<f64> {
    match node {
        Node::Text(text) => ReadValue::converted(text.trim().parse().ok().filter(|number: &f64| number.is_finite())),
        _ => ReadValue::exact(number(node).filter(|number| number.is_finite())),
    }
}

/// A timeout: a number in the unit of its dialect, or text with a unit.
pub(crate) fn timeout(node: &Node) -> ReadValue<Timeout> {
    match node {
        Node::Text(text) => match units::duration(text) {
            Some(value) => ReadValue::Exact(Timeout::Exact(value)),
            None => ReadValue::converted(text.trim().parse().ok().filter(|number: &f64| number.is_finite()))
                .map(Timeout::Bare),
        },
        _ => ReadValue::exact(number(node)).map(Timeout::Bare),
    }
}

/// A positive time: a number of `unit`, or text with its own unit.
pub(crate) fn time(node: &Node, unit: Duration) -> ReadValue<Duration> {
    match pause(node, unit) {
        ReadValue::Exact(value) | ReadValue::Converted(value) if value.is_zero() => ReadValue::Wrong,
        reading => reading,
    }
}

/// A time that may be zero: a number of `unit`, or text with its own unit.
pub(crate) fn pause(node: &Node, unit: Duration) -> ReadValue<Duration> {
    match timeout(node) {
        ReadValue::Exact(time) => ReadValue::exact(time.duration(unit)),
        ReadValue::Converted(time) => ReadValue::converted(time.duration(unit)),
        ReadValue::Wrong => ReadValue::Wrong,
    }
}

/// A whole number above zero.
pub(crate) fn positive(node: &Node) -> ReadValue<u32> {
    let small = |number: u64| u32::try_from(number).ok().filter(|number| *number > 0);
    match whole(node) {
        ReadValue::Exact(number) => ReadValue::exact(small(number)),
        ReadValue::Converted(number) => ReadValue::converted(small(number)),
        ReadValue::Wrong => ReadValue::Wrong,
    }
}

/// A positive time with its unit.
pub(crate) fn span(node: &Node) -> ReadValue<Duration> {
    match node {
        Node::Text(text) => ReadValue::exact(units::duration(text).filter(|value| !value.is_zero())),
        _ => ReadValue::Wrong,
    }
}

/// A number of bytes, or text with a unit.
pub(crate) fn size(node: &Node) -> ReadValue<u64> {
    match node {
        Node::Text(text) => match units::size(text) {
            Some(value) => ReadValue::Exact(value),
            None => whole(node),
        },
        _ => whole(node),
    }
}

/// A list of texts; a single text counts as a list of one.
pub(crate) fn texts(node: &Node) -> ReadValue<Vec<String>> {
    match node {
        Node::List(items) => {
            let mut converted = false;
            let mut texts = Vec::with_capacity(items.len());
            for item in items {
                match text(item) {
                    ReadValue::Exact(text) => texts.push(text),
                    ReadValue::Converted(text) => {
                        converted = true;
                        texts.push(text);
                    }
                    ReadValue::Wrong => return ReadValue::Wrong,
                }
            }
            if converted { ReadValue::Converted(texts) } else { ReadValue::Exact(texts) }
        }
        Node::Text(text) => ReadValue::Converted(vec![text.clone()]),
        _ => ReadValue::Wrong,
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
        assert_eq!(flag(&Node::Text("True".into())), ReadValue::Converted(true));
        assert_eq!(flag(&Node::Whole(1)), ReadValue::Wrong);
        assert_eq!(whole(&Node::Text("32".into())), ReadValue::Converted(32));
        assert_eq!(whole(&Node::Whole(-1)), ReadValue::Wrong);
        assert_eq!(timeout(&Node::Text("5s".into())), ReadValue::Exact(Timeout::Exact(Duration::from_secs(5))));
        assert_eq!(timeout(&Node::Text("30000".into())), ReadValue::Converted(Timeout::Bare(30_000.0)));
        assert_eq!(timeout(&Node::Text("inf".into())), ReadValue::Wrong);
        for nothing in [Node::Whole(0), Node::Fraction(0.0), Node::Text("0s".into())] {
            assert_eq!(time(&nothing, Duration::from_millis(1)), ReadValue::Wrong);
            assert_eq!(pause(&nothing, Duration::from_millis(1)), ReadValue::Exact(Duration::ZERO));
        }
        assert_eq!(pause(&Node::Text("0".into()), Duration::from_millis(1)), ReadValue::Converted(Duration::ZERO));
        assert_eq!(size(&Node::Text("1KiB".into())), ReadValue::Exact(1024));
        assert_eq!(texts(&Node::Text("a".into())), ReadValue::Converted(vec!["a".into()]));
    }
}
