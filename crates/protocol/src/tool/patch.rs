//! Finds the files in a patch of an agent's patch tool.

use crate::event::EventKind;

/// The marks before a file name in a patch, each with what happens to the file.
const MARKS: &[(&str, EventKind)] = &[
    ("*** Add File: ", EventKind::FileCreated),
    ("*** Update File: ", EventKind::FileEdited),
    ("*** Delete File: ", EventKind::FileDeleted),
    (MOVE, EventKind::FileCreated),
];
const MOVE: &str = "*** Move to: ";

/// The files of a patch, each with what happens to it.
pub(crate) fn patched_files(patch: &str) -> Vec<(EventKind, &str)> {
    let mut found: Vec<(EventKind, &str)> = Vec::new();
    for line in patch.lines() {
        let named = MARKS.iter().find_map(|(mark, kind)| Some((mark, *kind, line.strip_prefix(mark)?.trim())));
        let Some((mark, kind, file)) = named else { continue };
        // A moved file no longer exists at its old place.
        if let Some(last) = found.last_mut().filter(|_| *mark == MOVE) {
            last.0 = EventKind::FileDeleted;
        }
        found.push((kind, file));
    }
    found
}
