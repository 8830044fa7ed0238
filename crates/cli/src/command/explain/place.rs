//! Where a hook is declared, with the line itself.

use ollm_protocol::Hook;
use ollm_store::{escape_for_people, read_bounded};
use serde_json::{Value, json};

/// A larger file is not opened for one line of it.
const LARGEST: u64 = 4 << 20;
/// A longer line is cut.
const LONGEST: usize = 120;

/// Where a hook is declared, as people write it; none for one that no file declares.
pub(super) fn place(hook: &Hook) -> Option<String> {
    let origin = &hook.spec.origin;
    let file = Some(origin.file.display().to_string()).filter(|file| !file.is_empty())?;
    Some(if origin.line > 0 { format!("{file}:{}:{}", origin.line, origin.column) } else { file })
}

/// The line in which its declaration says something, with its number: often it begins with a brace alone.
pub(super) fn line(hook: &Hook) -> Option<String> {
    let origin = &hook.spec.origin;
    let text = read_bounded(&origin.file, LARGEST).ok()??;
    let text = String::from_utf8_lossy(&text);
    let before = origin.line.checked_sub(1)?;
    let mut lines = (1..).zip(text.lines()).skip(before).take(3);
    let (number, line) = lines.find(|(_, line)| line.contains(char::is_alphanumeric))?;
    Some(format!("{number} | {}", escape_for_people(&ollm_store::cut(line.trim(), LONGEST))))
}

pub(super) fn to_json(hook: &Hook) -> Value {
    let origin = &hook.spec.origin;
    let file = origin.file.to_string_lossy();
    let known = (!file.is_empty()).then_some((file, origin.line, origin.column));
    known.map_or(Value::Null, |(file, line, column)| json!({"file": file, "line": line, "column": column}))
}
