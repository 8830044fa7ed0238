//! What differs between two copies.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use ollm_store::read_bounded;
use similar::TextDiff;

use super::LARGEST_SHOWN;

/// More files are not looked at.
const MOST_FILES: usize = 10_000;

/// The files that were added, removed and changed, with their lines.
pub fn difference(before: &Path, after: &Path) -> String {
    let (mut old, new) = (files(before), files(after));
    let mut text = String::new();
    let mut changes = String::new();
    for (path, content) in &new {
        let earlier = take_same(&mut old, path, &new);
        if earlier.as_ref() == Some(content) {
            continue;
        }
        let what = if earlier.is_some() { "changed" } else { "added" };
        let _ = writeln!(changes, "--- {what}: {}", path.display());
        if let Content::Text(now) = content {
            let was = if let Some(Content::Text(was)) = earlier { was } else { String::new() };
            changes.push_str(&changed_lines(&was, now));
        } else {
            changes.push_str("(too large to show here; read it before you approve it)\n");
        }
    }
    for path in old.keys() {
        let _ = writeln!(text, "--- removed: {}", path.display());
    }
    text + &changes
}

/// The lines of a text that changed, with those around them.
pub fn changed_lines(before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().context_radius(3).to_string()
}

/// The earlier content of a file. A copy begins at the folder that all its files are in, so that the same file may have
/// had a shorter or longer path in it.
fn take_same(old: &mut Files, path: &Path, new: &Files) -> Option<Content> {
    if let Some(same) = old.remove(path) {
        return Some(same);
    }
    let alike = |other: &&PathBuf| !new.contains_key(*other) && (other.ends_with(path) || path.ends_with(other));
    let place = old.keys().find(alike).cloned()?;
    old.remove(&place)
}

type Files = BTreeMap<PathBuf, Content>;

/// What a file holds.
#[derive(PartialEq)]
enum Content {
    Text(String),
    TooLarge,
}

/// The files of a folder, by their places in it.
pub fn files_in(root: &Path) -> Vec<PathBuf> {
    files(root).into_keys().collect()
}

/// Every file of a folder, with its text where that can be shown.
fn files(root: &Path) -> Files {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder {
                folders.push(path);
            } else if let Ok(place) = path.strip_prefix(root) {
                found.insert(place.to_owned(), shown(&path));
            }
            if found.len() == MOST_FILES {
                return found;
            }
        }
    }
    found
}

/// What a file holds; of a link, where it leads.
fn shown(path: &Path) -> Content {
    if let Ok(target) = path.read_link() {
        return Content::Text(format!("→ {}", target.display()));
    }
    match read_bounded(path, LARGEST_SHOWN) {
        Ok(Some(bytes)) => Content::Text(String::from_utf8_lossy(&bytes).into_owned()),
        _ => Content::TooLarge,
    }
}
