//! The checked files of a package, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;

/// How much a package may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Entries: files, links and folders.
    pub entries: usize,
    /// Bytes of all files together.
    pub bytes: u64,
}

impl Default for Bounds {
    /// 10,000 entries and 256 MiB: a larger extension cannot be approved.
    fn default() -> Bounds {
        Bounds { entries: 10_000, bytes: 256 << 20 }
    }
}

/// A file of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedFile {
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether it may be executed.
    pub executable: bool,
}

/// The files of a package, by their paths. Each path is relative, has `/` between its parts, and was checked by a
/// [`Collector`](crate::Collector).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Package {
    files: BTreeMap<String, PackedFile>,
}

impl Package {
    pub(crate) fn new(files: BTreeMap<String, PackedFile>) -> Package {
        Package { files }
    }

    /// The files in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &PackedFile)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// The content of one file.
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(|file| file.bytes.as_slice())
    }

    /// Bytes of all files together.
    pub fn size(&self) -> u64 {
        self.files.values().map(|file| file.bytes.len() as u64).sum()
    }

    /// The package without a single top folder around everything, as in archives of repositories. Other packages stay
    /// unchanged.
    #[must_use]
    pub fn without_wrapper(self) -> Package {
        let Some(folder) = self.wrapper() else { return self };
        let shorter = |(path, file): (String, PackedFile)| {
            path.strip_prefix(folder.as_str())
                .and_then(|path| path.strip_prefix('/'))
                .map(|path| (path.to_owned(), file))
        };
        Package { files: self.files.into_iter().filter_map(shorter).collect() }
    }

    /// The single top folder that contains everything.
    fn wrapper(&self) -> Option<String> {
        let mut tops = self.files.keys().map(|path| path.split_once('/').map(|(top, _)| top));
        let first = tops.next()??;
        tops.all(|top| top == Some(first)).then(|| first.to_owned())
    }

    /// Writes all files below a new folder and syncs them to the disk. After an error the caller removes the partial
    /// folder.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        let make = |path: &Path| fs::DirBuilder::new().recursive(true).mode(0o755).create(path);
        fs::DirBuilder::new().mode(0o700).create(folder)?;
        let mut written = BTreeSet::from([folder.to_owned()]);
        for (path, file) in &self.files {
            let path = folder.join(path);
            if let Some(parent) = path.parent().filter(|parent| !parent.exists()) {
                make(parent)?;
                let below = |above: &&Path| above.starts_with(folder);
                written.extend(parent.ancestors().take_while(below).map(PathBuf::from));
            }
            let mode = if file.executable { 0o755 } else { 0o644 };
            OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?.write_all(&file.bytes)?;
            written.insert(path);
        }
        sync_all(&written.into_iter().collect::<Vec<_>>())
    }
}

/// Syncs files and folders to the disk. Several threads sync at the same time, because a disk writes many files in
/// about the time of one.
fn sync_all(paths: &[PathBuf]) -> io::Result<()> {
    const AT_ONCE: usize = 16;
    let sync = |part: &[PathBuf]| part.iter().try_for_each(|path| File::open(path)?.sync_all());
    thread::scope(|scope| {
        let parts = paths.chunks(paths.len().div_ceil(AT_ONCE).max(1));
        let working: Vec<_> = parts.map(|part| scope.spawn(move || sync(part))).collect();
        let done = |work: thread::ScopedJoinHandle<'_, io::Result<()>>| {
            work.join().unwrap_or_else(|_| Err(io::Error::other("a thread ended early")))
        };
        // Waits for all threads, also after a failure.
        working.into_iter().map(done).fold(Ok(()), io::Result::and)
    })
}

/// Files that the program contains: their paths, contents and whether they may be executed.
impl<'a> FromIterator<(&'a str, Vec<u8>, bool)> for Package {
    fn from_iter<I: IntoIterator<Item = (&'a str, Vec<u8>, bool)>>(files: I) -> Package {
        let file =
            |(path, bytes, executable): (&str, Vec<u8>, bool)| (path.to_owned(), PackedFile { bytes, executable });
        Package { files: files.into_iter().map(file).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(paths: &[&str]) -> Package {
        paths.iter().map(|path| (*path, Vec::new(), false)).collect()
    }

    #[test]
    fn only_one_folder_around_everything_is_taken_away() {
        assert_eq!(package(&["a/x", "a/b/y"]).without_wrapper(), package(&["x", "b/y"]));
        for paths in [&["a/x", "b/y"][..], &["a/x", "y"], &["x"], &[]] {
            assert_eq!(package(paths).without_wrapper(), package(paths), "{paths:?}");
        }
    }

    #[test]
    fn nothing_that_is_there_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        assert!(package(&["x"]).write_to(folder.path()).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
