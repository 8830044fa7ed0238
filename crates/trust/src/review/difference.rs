//! Finds the differences between two copies.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use similar::TextDiff;

use super::{Content, UNSHOWN, shown_in};

/// The files that were added, removed and changed, with their lines as far as there is room; and the files that cannot
/// be shown.
pub(crate) fn difference(before: &Path, after: &Path, room: &mut usize) -> (String, Vec<PathBuf>) {
    let (mut old, new) = (files_in(before), files_in(after));
    let (mut text, mut changes, mut unshown) = (String::new(), String::new(), Vec::new());
    for path in &new {
        let earlier = take_same(&mut old, path, &new).map(|place| Content::of(&before.join(place)));
        let content = Content::of(&after.join(path));
        if earlier.as_ref() == Some(&content) {
            continue;
        }
        let what = if earlier.is_some() { "changed" } else { "added" };
        let _ = writeln!(changes, "--- {what}: {}", path.display());
        let was = if let Some(Content::Text(was)) = earlier { was } else { String::new() };
        let lines = match content {
            Content::Text(now) => shown_in(room, changed_lines(&was, &now)),
            Content::Unshown(_) => None,
        };
        if let Some(lines) = lines {
            changes.push_str(&lines);
        } else {
            let _ = writeln!(changes, "{UNSHOWN}");
            unshown.push(after.join(path));
        }
    }
    for path in &old {
        let _ = writeln!(text, "--- removed: {}", path.display());
    }
    (text + &changes, unshown)
}

/// The changed lines of a text, with the lines around them.
pub fn changed_lines(before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().context_radius(3).to_string()
}

/// Removes the earlier place of a file and returns it. A copy begins at the common folder of its files, so the path of
/// the same file may have been longer or shorter.
fn take_same(old: &mut BTreeSet<PathBuf>, path: &Path, new: &BTreeSet<PathBuf>) -> Option<PathBuf> {
    if let Some(same) = old.take(path) {
        return Some(same);
    }
    let alike = |other: &&PathBuf| !new.contains(*other) && (other.ends_with(path) || path.ends_with(other));
    let place = old.iter().find(alike).cloned()?;
    old.take(&place)
}

/// The files of a folder, by their places in it.
pub fn files_in(root: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder {
                folders.push(path);
            } else if let Ok(place) = path.strip_prefix(root) {
                found.insert(place.to_owned());
            }
        }
    }
    found
}
