//! Walks all files below a folder, except those that version control ignores, without following links.

use std::path::Path;

use ignore::WalkBuilder;

use crate::cancel::Cancel;

/// The most entries that are visited.
const MOST: usize = 100_000;

/// Calls `visit` for every file, in the order of names, until it returns false; returns whether every file was visited.
pub(crate) fn files(folder: &Path, cancel: &Cancel, mut visit: impl FnMut(&Path) -> bool) -> Result<bool, String> {
    let walk = WalkBuilder::new(folder)
        .hidden(false)
        .follow_links(false)
        // The person's own ignore file is in the home folder, which we do not read.
        .git_global(false)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_name(Ord::cmp)
        .build();
    for (seen, entry) in walk.enumerate() {
        if cancel.is_set() {
            return Err("interrupted".to_owned());
        }
        if seen > MOST {
            return Ok(false);
        }
        // An unreadable entry counts as missing.
        let Ok(entry) = entry else { continue };
        if entry.file_type().is_some_and(|kind| kind.is_file()) && !visit(entry.path()) {
            return Ok(false);
        }
    }
    Ok(true)
}
