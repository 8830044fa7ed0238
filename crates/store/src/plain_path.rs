//! Cleans paths by their text alone.

use std::path::{Component, Path, PathBuf};

/// A path without `.` and `..`. It does not access the file system: the file need not exist, and links are not
/// followed.
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
