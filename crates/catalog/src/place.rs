//! Where things are kept: the user's folder, the user's home, the project.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// The folders to look into; all absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The user's own folder, by default `~/.ollm`.
    pub home: PathBuf,
    /// The user's home, where other tools keep their settings.
    pub user_home: Option<PathBuf>,
    /// The root of the project.
    pub project: Option<PathBuf>,
}

/// The nearest ancestor of `cwd` with a `.ollm` or `.git` in it; the user's own `.ollm` does not make a project.
pub fn find_project(cwd: &Path, home: &Path) -> Option<PathBuf> {
    let home = home.metadata().ok();
    let is_own = |found: &Metadata| home.as_ref().is_some_and(|home| same(home, found));
    let marks = |folder: &Path| {
        let declares = folder.join(".ollm").metadata().is_ok_and(|found| found.is_dir() && !is_own(&found));
        declares || folder.join(".git").symlink_metadata().is_ok()
    };
    cwd.ancestors().find(|folder| marks(folder)).map(Path::to_owned)
}

/// Whether both paths lead to the same thing, by device and inode.
pub(crate) fn same_place(one: &Path, other: &Path) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => same(&one, &other),
        _ => false,
    }
}

#[cfg(unix)]
fn same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    one.dev() == other.dev() && one.ino() == other.ino()
}
