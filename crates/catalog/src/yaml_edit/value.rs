//! Values as YAML: maps and lists of maps over several lines, everything else in one.

use std::fmt::Write;

use crate::file::parse_yaml;
use crate::node::Node;

/// Words that an older YAML takes for true and false.
const FLAGS: &[&str] = &["yes", "no", "on", "off", "y", "n"];

/// A value on one line.
pub(crate) fn inline(node: &Node) -> String {
    match node {
        Node::Null => "null".to_owned(),
        Node::Bool(value) => value.to_string(),
        Node::Whole(value) => value.to_string(),
        Node::Fraction(value) => fraction(*value),
        Node::Text(text) => word(text),
        Node::List(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Node::Map(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(key, value)| format!("{}: {}", word(key), inline(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// A value over several lines, without the last line break.
pub(super) fn block(node: &Node, column: usize) -> String {
    let lines: Vec<String> = match node {
        Node::Map(entries) if !entries.is_empty() => {
            entries.iter().map(|(name, value)| pair(name, value, column)).collect()
        }
        Node::List(items) if is_long(node) => items.iter().map(|value| item(value, column)).collect(),
        other => vec![format!("{}{}", " ".repeat(column), inline(other))],
    };
    lines.join("\n")
}

/// A pair of a map, its value below it where that takes several lines.
pub(super) fn pair(name: &str, value: &Node, column: usize) -> String {
    let head = format!("{}{}:", " ".repeat(column), word(name));
    if is_long(value) { format!("{head}\n{}", block(value, column + 2)) } else { format!("{head} {}", inline(value)) }
}

/// An item of a list.
pub(super) fn item(value: &Node, column: usize) -> String {
    let inner = block(value, column + 2);
    format!("{}- {}", " ".repeat(column), inner.trim_start())
}

/// Whether a value takes several lines.
pub(super) fn is_long(node: &Node) -> bool {
    match node {
        Node::Map(entries) => !entries.is_empty(),
        Node::List(items) => items.iter().any(|item| matches!(item, Node::Map(_))),
        _ => false,
    }
}

/// Text without quotes if it can be read back in every place, else in quotes.
pub(super) fn word(text: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "_./~+-$".contains(letter);
    let inner = |letter: char| plain(letter) || letter == ' ' || letter == '@' || letter == ':';
    let calm = text.starts_with(|first: char| first.is_alphanumeric() || "_./~".contains(first))
        && text.ends_with(plain)
        && text.chars().all(inner)
        && !text.contains(": ")
        && !FLAGS.iter().any(|flag| text.eq_ignore_ascii_case(flag));
    if calm && parse_yaml(text).is_ok_and(|node| node == Node::Text(text.to_owned())) {
        return text.to_owned();
    }
    quoted(text)
}

/// Text in double quotes; what YAML does not allow in them, and what is invisible, is written as a number.
fn quoted(text: &str) -> String {
    let hidden = |letter: char| letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}');
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            letter if hidden(letter) => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

fn fraction(value: f64) -> String {
    match value {
        value if value.is_nan() => ".nan".to_owned(),
        value if value.is_infinite() => if value > 0.0 { ".inf" } else { "-.inf" }.to_owned(),
        value => format!("{value:?}"),
    }
}
