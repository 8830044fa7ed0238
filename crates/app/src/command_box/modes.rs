//! The modes of protected files, which Landlock lets commands change.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::content::MOST;

/// How deep the modes in a protected folder are recorded.
pub(super) const DEEPEST: usize = 8;

/// The modes of files and folders.
pub(super) type Modes = BTreeMap<PathBuf, u32>;

/// Records the modes of a path and below it, within limits.
pub(super) fn note_modes(path: &Path, found: &fs::Metadata, depth: usize, modes: &mut Modes) {
    if found.is_symlink() || modes.len() >= MOST.entries {
        return;
    }
    modes.insert(path.to_owned(), found.mode() & 0o7777);
    let entries = fs::read_dir(path).ok().filter(|_| found.is_dir() && depth > 0);
    for entry in entries.into_iter().flatten().flatten() {
        if let Ok(found) = entry.metadata() {
            note_modes(&entry.path(), &found, depth - 1, modes);
        }
    }
}

/// Restores the modes of files and folders.
pub(super) fn restore_modes(path: &Path, found: &fs::Metadata, before: &Modes) -> Option<String> {
    let changed = |path: &Path, found: &fs::Metadata| {
        let before = before.get(path).filter(|_| !found.is_symlink())?;
        (*before != found.mode() & 0o7777).then_some(*before)
    };
    let mut failed = None;
    let mut any = false;
    // A folder comes before its content, because a closed folder must be opened first.
    for place in before.keys() {
        let found = if place == path { Ok(found.clone()) } else { place.symlink_metadata() };
        if let Some(mode) = found.ok().and_then(|found| changed(place, &found)) {
            any = true;
            failed = fs::set_permissions(place, Permissions::from_mode(mode)).err().or(failed);
        }
    }
    let path = path.display();
    any.then(|| match failed {
        None => format!("the mode of `{path}` is protected and was changed by the command; it is restored"),
        Some(error) => {
            format!("the mode of `{path}` is protected and was changed by the command; it cannot be restored: {error}")
        }
    })
}
