//! One hook per file in two parts: `{"name": …, "when": {"type": …, "patterns": […]}, "then": {"type": …, "prompt": …}}`.

use super::HookCollector;
use crate::entry::{Draft, EntryReader};
use crate::node::Cursor;

const WHEN: &[&str] = &["type", "patterns"];

/// Takes in the hook of a file.
pub(crate) fn take(root: &Cursor<'_>, intake: &mut HookCollector<'_>) {
    intake.take_single(root, "when.type", own);
}

fn own(reader: &mut EntryReader<'_>, draft: &mut Draft, key: &str, at: &Cursor<'_>) -> bool {
    match key {
        "when" => when(reader, draft, at),
        "then" => draft.action = reader.action(at),
        "filePatterns" | "action" | "eventType" => {
            let home = if key == "action" { "then" } else { "when" };
            reader.refuse(at, &format!("`{key}` belongs to another form"), Some(format!("put it into `{home}`")));
        }
        _ => return false,
    }
    true
}

fn when(reader: &mut EntryReader<'_>, draft: &mut Draft, at: &Cursor<'_>) {
    reader.map(at, |reader, key, at| match key {
        "type" => draft.spec.events = reader.one_or_more(at, "the name of an event"),
        "patterns" | "filePatterns" => draft.spec.file_patterns = reader.patterns(at),
        // A condition that is not understood must not be dropped.
        _ => {
            let help = Some(format!("known here are {}", WHEN.join(" and ")));
            reader.refuse(at, &format!("`{key}` is no part of `when`"), help);
        }
    });
}
