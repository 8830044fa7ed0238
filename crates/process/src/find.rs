//! Looks up a program by its bare name, and cleans the search path for the programs that we start.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The first executable regular file called `name` in the directories of `path`, a value such as that of `PATH`.
///
/// Empty and relative entries are skipped, because the result must not depend on the working directory. A name with a
/// separator in it is already a path, and is not looked up.
///
/// ```
/// # use std::ffi::OsStr;
/// # #[cfg(unix)]
/// assert!(ollm_process::find_program("sh", OsStr::new("/usr/bin:/bin")).is_some());
/// assert_eq!(ollm_process::find_program("sh", OsStr::new(".:relative")), None);
/// ```
pub fn find_program(name: &str, path: &OsStr) -> Option<PathBuf> {
    if name.is_empty() || name.contains(std::path::is_separator) || name.contains('\0') {
        return None;
    }
    env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .flat_map(|folder| candidates(&folder, name))
        .find(|file| runnable(file))
}

/// A value of `PATH` without its empty and relative entries. With such an entry, a search would take programs from the
/// working directory. `None` if no entry is left; an empty value would mean the working directory.
///
/// ```
/// # use std::ffi::{OsStr, OsString};
/// # #[cfg(unix)] {
/// let path = |path| ollm_process::absolute_entries(OsStr::new(path));
/// assert_eq!(path(":/usr/bin:./bin:/bin:"), Some(OsString::from("/usr/bin:/bin")));
/// assert_eq!(path("."), None);
/// # }
/// ```
pub fn absolute_entries(path: &OsStr) -> Option<OsString> {
    if is_absolute_only(path) {
        return Some(path.to_owned());
    }
    let entries: Vec<PathBuf> = env::split_paths(path).filter(|entry| entry.is_absolute()).collect();
    // Entries that were split can always be joined again.
    env::join_paths(&entries).ok().filter(|_| !entries.is_empty())
}

/// Whether every entry is absolute, as is usual.
#[cfg(unix)]
pub(crate) fn is_absolute_only(path: &OsStr) -> bool {
    path.as_encoded_bytes().split(|byte| *byte == b':').all(|entry| entry.first() == Some(&b'/'))
}

/// Always false here: entries may be quoted, so they are always split.
#[cfg(windows)]
pub(crate) fn is_absolute_only(_: &OsStr) -> bool {
    false
}

#[cfg(unix)]
fn candidates(folder: &Path, name: &str) -> Vec<PathBuf> {
    vec![folder.join(name)]
}

#[cfg(windows)]
fn candidates(folder: &Path, name: &str) -> Vec<PathBuf> {
    vec![folder.join(name), folder.join(format!("{name}.exe"))]
}

#[cfg(unix)]
fn runnable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(windows)]
fn runnable(file: &Path) -> bool {
    file.is_file()
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_an_executable_regular_file_is_found() {
        let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
        let [directory, plain, program] = &*folders else { unreachable!() };
        fs::create_dir(directory.path().join("tool")).unwrap();
        fs::write(plain.path().join("tool"), "").unwrap();
        let tool = program.path().join("tool");
        fs::write(&tool, "").unwrap();
        fs::set_permissions(&tool, Permissions::from_mode(0o755)).unwrap();

        let path = env::join_paths(folders.iter().map(tempfile::TempDir::path)).unwrap();
        assert_eq!(find_program("tool", &path), Some(tool));
    }

    #[test]
    fn a_name_with_a_separator_is_not_looked_up() {
        for name in ["", "/bin/sh", "bin/sh", "../bin/sh", "s\0h"] {
            assert_eq!(find_program(name, OsStr::new("/bin:/")), None, "{name:?}");
        }
    }

    #[test]
    fn entries_that_depend_on_the_working_directory_are_skipped() {
        let up = "../".repeat(env::current_dir().unwrap().iter().count() - 1);
        assert!(Path::new(&up).join("bin/sh").exists());
        assert_eq!(find_program("sh", OsStr::new(&format!("{up}bin::."))), None);
    }
}
