//! Values as YAML: maps and lists of maps in block style, everything else in one line.

use serde_json::Value;

/// Words that mean something else without quotes, in this or an older YAML.
const RESERVED: &[&str] = &["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// A value in one line.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => word(text),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(pairs) => {
            let pairs: Vec<String> =
                pairs.iter().map(|(name, value)| format!("{}: {}", key(name), flow(value))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        other => other.to_string(),
    }
}

/// A value over several lines, without the last line break.
pub(super) fn block(value: &Value, column: usize) -> String {
    match value {
        Value::Object(pairs) if !pairs.is_empty() => {
            pairs.iter().map(|(name, value)| pair(name, value, column)).collect::<Vec<_>>().join("\n")
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().map(|value| item(value, column)).collect::<Vec<_>>().join("\n")
        }
        other => format!("{}{}", " ".repeat(column), flow(other)),
    }
}

/// A pair of a map in block style.
pub(super) fn pair(name: &str, value: &Value, column: usize) -> String {
    let head = format!("{}{}:", " ".repeat(column), key(name));
    match value {
        Value::Object(pairs) if !pairs.is_empty() => format!("{head}\n{}", block(value, column + 2)),
        Value::Array(items) if items.iter().any(Value::is_object) => format!("{head}\n{}", block(value, column + 2)),
        other => format!("{head} {}", flow(other)),
    }
}

/// An item of a list in block style.
pub(super) fn item(value: &Value, column: usize) -> String {
    let inner = block(value, column + 2);
    format!("{}- {}", " ".repeat(column), inner.trim_start())
}

/// A key.
pub(super) fn key(name: &str) -> String {
    word(name)
}

/// A text, in quotes unless it can be nothing but text without them.
fn word(text: &str) -> String {
    let starts = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_' || letter == '/');
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/');
    let reserved = RESERVED.iter().any(|reserved| text.eq_ignore_ascii_case(reserved));
    if starts && text.chars().all(plain) && !reserved {
        return text.to_owned();
    }
    Value::from(text).to_string()
}
