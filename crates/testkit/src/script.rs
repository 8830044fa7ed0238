//! Programs that tests can start.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder of executable scripts, gone when dropped.
#[derive(Debug)]
pub struct Scripts {
    folder: TempDir,
}

impl Scripts {
    /// An empty folder.
    pub fn new() -> io::Result<Scripts> {
        Ok(Scripts { folder: tempfile::tempdir()? })
    }

    /// Where the scripts are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes an executable script, whose first line names its interpreter, and says where it is.
    pub fn add(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.folder().join(name);
        fs::write(&path, text)?;
        make_executable(&path)?;
        Ok(path)
    }
}

#[cfg(unix)]
fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) -> io::Result<()> {
    Ok(())
}
