//! Values as YAML text.

use std::fmt::Write;

use crate::file::parse_yaml;
use crate::node::Node;

/// A value on one line.
pub(super) fn inline(node: &Node) -> String {
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

/// The lines of `path: value`, each indented; a map below its key.
pub(super) fn block(path: &[&str], value: &Node, indent: usize, newline: &str) -> String {
    let Some((name, rest)) = path.split_first() else { return String::new() };
    let key = format!("{}{}:", " ".repeat(indent), word(name));
    if !rest.is_empty() {
        return format!("{key}{newline}{}", block(rest, value, indent + 2, newline));
    }
    match value {
        Node::Map(entries) if !entries.is_empty() => {
            let below = entries.iter().map(|(name, value)| block(&[name.as_str()], value, indent + 2, newline));
            format!("{key}{newline}{}", below.collect::<String>())
        }
        value => format!("{key} {}{newline}", inline(value)),
    }
}

/// Text as it is if it can be read back wherever it may stand, else in quotes.
pub(super) fn word(text: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "_./~+-$".contains(letter);
    let inner = |letter: char| plain(letter) || letter == ' ' || letter == '@' || letter == ':';
    let calm = text.starts_with(|first: char| first.is_alphanumeric() || "_./~".contains(first))
        && text.ends_with(plain)
        && text.chars().all(inner)
        && !text.contains(": ");
    if calm && parse_yaml(text).is_ok_and(|node| node == Node::Text(text.to_owned())) {
        return text.to_owned();
    }
    quoted(text)
}

/// Text in double quotes; what YAML does not allow as it is, and what nobody would see, is written as a number.
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
