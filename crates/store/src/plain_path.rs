//! Paths by their words alone.

use std::path::{Component, Path, PathBuf};

/// A path without `.` and `..`; nothing is looked up, so the file may be gone and links are not followed.
///
/// ```
/// use std::path::Path;
/// assert_eq!(ollm_store::plain_path(Path::new("/a/./b/../c")), Path::new("/a/c"));
/// ```
pub fn plain_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}
