//! The files that a patch of an agent's patch tool names.

use crate::event::EventKind;

/// What a patch says before the name of a file, and what becomes of that file.
const MARKS: &[(&str, EventKind)] = &[
    ("*** Add File: ", EventKind::FileCreated),
    ("*** Update File: ", EventKind::FileEdited),
    ("*** Delete File: ", EventKind::FileDeleted),
    (MOVE, EventKind::FileCreated),
];
const MOVE: &str = "*** Move to: ";

/// The files of a patch, and what becomes of each.
pub(crate) fn patched_files(patch: &str) -> Vec<(EventKind, &str)> {
    let mut found: Vec<(EventKind, &str)> = Vec::new();
    for line in patch.lines() {
        let named = MARKS.iter().find_map(|(mark, kind)| Some((mark, *kind, line.strip_prefix(mark)?.trim())));
        let Some((mark, kind, file)) = named else { continue };
        // A file that moves is gone from where it was.
        if let Some(last) = found.last_mut().filter(|_| *mark == MOVE) {
            last.0 = EventKind::FileDeleted;
        }
        found.push((kind, file));
    }
    found
}
