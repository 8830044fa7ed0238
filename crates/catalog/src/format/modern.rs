//! One hook per file that names its event itself: `{"name": …, "eventType": …, "filePatterns": […], "action": {…}}`.

use super::HookCollector;
use crate::entry::{Draft, EntryReader};
use crate::node::Cursor;

/// Takes in the hook of a file.
pub(crate) fn take(root: &Cursor<'_>, intake: &mut HookCollector<'_>) {
    intake.take_single(root, "eventType", own);
}

fn own(reader: &mut EntryReader<'_>, draft: &mut Draft, key: &str, at: &Cursor<'_>) -> bool {
    match key {
        "eventType" => draft.spec.events = reader.one_or_more(at, "the name of an event"),
        "when" | "then" => {
            let help = "write either `eventType` and `action`, or `when` and `then`".to_owned();
            reader.refuse(at, &format!("`{key}` belongs to another form"), Some(help));
        }
        _ => return false,
    }
    true
}
