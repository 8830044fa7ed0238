//! The digest of a folder with everything in it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;

use super::{Digest, Hasher, digest_file};
use crate::file::{FileError, failed, kind_of};

/// How much a folder may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Entries: files, links and folders.
    pub entries: usize,
    /// Bytes of all files together.
    pub bytes: u64,
}

impl Default for TreeLimits {
    /// 10,000 entries and 256 MiB.
    fn default() -> Self {
        Self { entries: 10_000, bytes: 256 * 1024 * 1024 }
    }
}

enum Kind {
    Folder,
    Link(PathBuf),
    File { executable: bool },
}

struct Entry {
    /// Relative to the root.
    path: PathBuf,
    kind: Kind,
}

pub(super) fn digest(root: &Path, limits: TreeLimits) -> Result<Digest, FileError> {
    let mut entries = list(root, limits.entries)?;
    entries.sort_unstable_by(|a, b| bytes_of(&a.path).cmp(bytes_of(&b.path)));
    let mut hasher = Hasher::new();
    let mut left = limits.bytes;
    for entry in &entries {
        let name = bytes_of(&entry.path);
        hasher = match &entry.kind {
            Kind::Folder => hasher.record(b'd', name, b""),
            Kind::Link(target) => hasher.record(b'l', name, bytes_of(target)),
            Kind::File { executable } => {
                let path = root.join(&entry.path);
                let (digest, key) =
                    digest_file(&path, OFlags::NOFOLLOW, left).map_err(|error| of_whole(error, root, limits.bytes))?;
                left = left.saturating_sub(key.size);
                hasher.record(if *executable { b'x' } else { b'-' }, name, digest.as_bytes())
            }
        };
    }
    Ok(hasher.finish())
}

fn list(root: &Path, max: usize) -> Result<Vec<Entry>, FileError> {
    let mut entries = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let at = root.join(&folder);
        let listing = fs::read_dir(&at).map_err(|source| failed("list", &at, source))?;
        for found in listing {
            let found = found.map_err(|source| failed("list", &at, source))?;
            let entry = inspect(root, folder.join(found.file_name()))?;
            if matches!(entry.kind, Kind::Folder) {
                folders.push(entry.path.clone());
            }
            entries.push(entry);
            if entries.len() > max {
                return Err(FileError::TooMany { path: root.to_owned(), max });
            }
        }
    }
    Ok(entries)
}

fn inspect(root: &Path, path: PathBuf) -> Result<Entry, FileError> {
    let at = root.join(&path);
    let meta = fs::symlink_metadata(&at).map_err(|source| failed("inspect", &at, source))?;
    let kind = if meta.is_dir() {
        Kind::Folder
    } else if meta.is_file() {
        Kind::File { executable: meta.permissions().mode() & 0o111 != 0 }
    } else if meta.is_symlink() {
        let target = fs::read_link(&at).map_err(|source| failed("read", &at, source))?;
        if !stays_inside(&path, &target) {
            return Err(FileError::Leaves { path: at, target });
        }
        Kind::Link(target)
    } else {
        return Err(FileError::NotRegular { path: at, kind: kind_of(&meta) });
    };
    Ok(Entry { path, kind })
}

/// We only descend into real folders, so leading `..` steps mean what they say; what follows passes through folders
/// of the tree or through links that obey the same rule. A `..` further on could step up from wherever a link led.
fn stays_inside(link: &Path, target: &Path) -> bool {
    let depth = link.components().count().saturating_sub(1);
    let steps = target.components().filter(|part| *part != Component::CurDir);
    let mut up = 0;
    let mut down = false;
    for step in steps {
        match step {
            Component::ParentDir if down => return false,
            Component::ParentDir => up += 1,
            Component::Normal(_) => down = true,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    up <= depth
}

/// A file that does not fit into what is left breaks the bound of the whole folder.
fn of_whole(error: FileError, root: &Path, max: u64) -> FileError {
    match error {
        FileError::TooLarge { size, max: left, .. } => {
            FileError::TooLarge { path: root.to_owned(), size: (max - left).saturating_add(size), max }
        }
        other => other,
    }
}

fn bytes_of(path: &Path) -> &[u8] {
    AsRef::<OsStr>::as_ref(path).as_bytes()
}
