//! What differs between two states of an extension's folder.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use ollm_store::read_bounded;
use similar::TextDiff;

/// Larger files are only named.
const LARGEST_SHOWN: u64 = 256 << 10;
/// More files are not looked at.
const MOST_FILES: usize = 10_000;

/// The files that were added, removed and changed, with their lines.
pub(crate) fn text(before: &Path, after: &Path) -> String {
    let (old, new) = (files(before), files(after));
    let mut text = String::new();
    for path in old.keys().filter(|path| !new.contains_key(*path)) {
        let _ = writeln!(text, "--- removed: {}", path.display());
    }
    for (path, content) in &new {
        let earlier = old.get(path);
        if earlier == Some(content) {
            continue;
        }
        let what = if earlier.is_some() { "changed" } else { "added" };
        let _ = writeln!(text, "--- {what}: {}", path.display());
        if let Some(now) = content {
            let was = earlier.cloned().flatten().unwrap_or_default();
            let difference = TextDiff::from_lines(was.as_str(), now.as_str());
            text.push_str(&difference.unified_diff().context_radius(3).to_string());
        } else {
            text.push_str("(too large to show here; read it before you approve it)\n");
        }
    }
    text
}

/// The files of a folder by name, as many as a person reads.
pub(super) fn names(root: &Path) -> String {
    const MOST_NAMED: usize = 40;
    let files = places(root);
    let named: Vec<String> = files.iter().take(MOST_NAMED).map(|path| path.display().to_string()).collect();
    match files.len().saturating_sub(MOST_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// The files of a folder, by their places in it.
pub(super) fn places(root: &Path) -> Vec<PathBuf> {
    files(root).into_keys().collect()
}

/// Whether a version is lower than another.
pub(super) fn is_lower(version: &str, than: &str) -> bool {
    let parse = |text: &str| semver::Version::parse(text).ok();
    matches!((parse(version), parse(than)), (Some(version), Some(than)) if version < than)
}

/// Every file of a folder, with its text where that can be shown.
fn files(root: &Path) -> BTreeMap<PathBuf, Option<String>> {
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
fn shown(path: &Path) -> Option<String> {
    if let Ok(target) = path.read_link() {
        return Some(format!("→ {}", target.display()));
    }
    let bytes = read_bounded(path, LARGEST_SHOWN).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
