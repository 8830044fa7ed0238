//! The digest of a folder with everything in it.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
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

/// What an entry of a folder is.
#[derive(Debug)]
pub enum EntryKind {
    /// A folder.
    Folder,
    /// A symbolic link with this text.
    Link(PathBuf),
    /// A file.
    File {
        /// Whether any user may execute it.
        executable: bool,
    },
}

/// One entry of a folder.
#[derive(Debug)]
pub struct Entry {
    /// Relative to the root.
    pub path: PathBuf,
    /// What it is.
    pub kind: EntryKind,
}

/// The digest of a folder: the relative path of every entry, the bytes and the executable bit of every file, the text
/// of every symbolic link. The rules are those of [`Hasher::tree`].
pub fn digest_tree(root: &Path, limits: TreeLimits) -> Result<Digest, FileError> {
    let entries = list(root, limits.entries)?;
    digest_listed(root, &entries, limits, |path, left| {
        digest_file(path, OFlags::NOFOLLOW, left).map(|(digest, key)| (digest, key.size))
    })
}

/// The digest of a folder. `read` gets the path of a file and the number of bytes left, and returns the file's digest
/// and size.
pub(crate) fn digest_listed(
    root: &Path,
    entries: &[(Entry, Metadata)],
    limits: TreeLimits,
    read: impl Fn(&Path, u64) -> Result<(Digest, u64), FileError>,
) -> Result<Digest, FileError> {
    let mut left = limits.bytes;
    digest_entries(entries.iter().map(|(entry, _)| entry), |entry| {
        let read = read(&root.join(&entry.path), left);
        let (digest, size) = read.map_err(|error| of_whole(error, root, limits.bytes))?;
        left = left.saturating_sub(size);
        Ok(digest)
    })
}

/// The digest of entries in the order of [`list`]; `content` returns the digest of each file's content.
pub fn digest_entries<'a, E>(
    entries: impl Iterator<Item = &'a Entry>,
    mut content: impl FnMut(&Entry) -> Result<Digest, E>,
) -> Result<Digest, E> {
    let mut hasher = Hasher::new();
    for entry in entries {
        let name = bytes_of(&entry.path);
        hasher = match &entry.kind {
            EntryKind::Folder => hasher.record(b'd', name, b""),
            EntryKind::Link(target) => hasher.record(b'l', name, bytes_of(target)),
            EntryKind::File { executable } => {
                hasher.record(if *executable { b'x' } else { b'-' }, name, content(entry)?.as_bytes())
            }
        };
    }
    Ok(hasher.finish())
}

/// Everything in a folder, in the order of hashing; each folder comes before its content.
pub fn list(root: &Path, max: usize) -> Result<Vec<(Entry, Metadata)>, FileError> {
    let mut entries = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let at = root.join(&folder);
        let listing = fs::read_dir(&at).map_err(|source| failed("list", &at, source))?;
        for found in listing {
            let found = found.map_err(|source| failed("list", &at, source))?;
            let path = folder.join(found.file_name());
            let meta = found.metadata().map_err(|source| failed("inspect", &root.join(&path), source))?;
            let entry = inspect(root, path, &meta)?;
            if matches!(entry.kind, EntryKind::Folder) {
                folders.push(entry.path.clone());
            }
            entries.push((entry, meta));
            if entries.len() > max {
                return Err(FileError::TooMany { path: root.to_owned(), max });
            }
        }
    }
    entries.sort_unstable_by(|(a, _), (b, _)| order(&a.path, &b.path));
    Ok(entries)
}

/// The order in which paths are hashed.
pub fn order(one: &Path, other: &Path) -> Ordering {
    bytes_of(one).cmp(bytes_of(other))
}

fn inspect(root: &Path, path: PathBuf, meta: &Metadata) -> Result<Entry, FileError> {
    let at = root.join(&path);
    let kind = if meta.is_dir() {
        EntryKind::Folder
    } else if meta.is_file() {
        EntryKind::File { executable: is_executable(meta) }
    } else if meta.is_symlink() {
        let target = fs::read_link(&at).map_err(|source| failed("read", &at, source))?;
        if !stays_inside(&path, &target) {
            return Err(FileError::Leaves { path: at, target });
        }
        EntryKind::Link(target)
    } else {
        return Err(FileError::NotRegular { path: at, kind: kind_of(meta) });
    };
    Ok(Entry { path, kind })
}

/// Whether any user may execute a file.
pub fn is_executable(meta: &Metadata) -> bool {
    meta.permissions().mode() & 0o111 != 0
}

/// Whether a link stays inside the tree. Leading `..` steps are certain, because the walk enters only real folders. The
/// steps after them pass through folders of the tree, or through links that obey the same rule. A later `..` is
/// refused, because it could step up from the target of another link.
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

/// A file larger than the remaining bytes exceeds the limit of the whole folder.
pub fn of_whole(error: FileError, root: &Path, max: u64) -> FileError {
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
