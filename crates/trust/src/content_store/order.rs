//! Plans a new copy, and fills it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use ollm_store::raw::{failed, open_regular, sync_folder};
use ollm_store::tree::{self, Entry, EntryKind};
use ollm_store::{Digest, FileDigests, FileError, TreeLimits, digest_bytes};
use rustix::fs::OFlags;

use super::{ContentStoreError, FOLDER, StoredFile, mode_for};

/// Up to this many files are synced one by one.
const FEW: usize = 8;

/// The plan of a new copy.
pub(super) struct Order<'a> {
    pub(super) base: &'a Path,
    pub(super) digest: Digest,
    /// Each folder comes before its entries.
    entries: Vec<Entry>,
    /// The expected digest by place; empty if the digests of the single files are not known.
    content: BTreeMap<PathBuf, Digest>,
    /// Text that replaces the content, by place.
    edited: Option<&'a BTreeMap<PathBuf, String>>,
    flags: OFlags,
    pub(super) limits: TreeLimits,
}

impl<'a> Order<'a> {
    pub(super) fn of_pieces(base: &'a Path, pieces: &[StoredFile]) -> Result<Self, ContentStoreError> {
        let mut content = BTreeMap::new();
        for piece in pieces {
            let place = place_in(base, &piece.path)?;
            if content.insert(place, piece.digest).is_some_and(|other| other != piece.digest) {
                return Err(ContentStoreError::Changed { path: piece.path.clone() });
            }
        }
        let folders: BTreeSet<_> = content.keys().flat_map(|place| place.ancestors().skip(1)).collect();
        let folders = folders.into_iter().filter(|folder| *folder != Path::new(""));
        let mut entries: Vec<_> =
            folders.map(|folder| Entry { path: folder.to_owned(), kind: EntryKind::Folder }).collect();
        for place in content.keys() {
            let path = base.join(place);
            let meta = fs::metadata(&path).map_err(|source| failed("inspect", &path, source))?;
            entries
                .push(Entry { path: place.clone(), kind: EntryKind::File { executable: tree::is_executable(&meta) } });
        }
        entries.sort_unstable_by(|a, b| tree::order(&a.path, &b.path));
        let of = |entry: &Entry| content.get(&entry.path).copied().ok_or_else(|| changed(base, entry));
        let digest = tree::digest_entries(entries.iter(), of)?;
        let limits = TreeLimits::default();
        Ok(Self { base, digest, entries, content, edited: None, flags: OFlags::empty(), limits })
    }

    pub(super) fn of_edited(
        base: &'a Path,
        edited: &'a BTreeMap<PathBuf, String>,
        digests: &FileDigests,
    ) -> Result<Self, ContentStoreError> {
        let limits = TreeLimits::default();
        let entries: Vec<_> = tree::list(base, limits.entries)?.into_iter().map(|(entry, _)| entry).collect();
        let of = |entry: &Entry| match edited.get(&entry.path) {
            Some(text) => Ok(digest_bytes(text.as_bytes())),
            None => digests.digest(&base.join(&entry.path), limits.bytes),
        };
        let digest = tree::digest_entries(entries.iter(), of)?;
        Ok(Self {
            base,
            digest,
            entries,
            content: BTreeMap::new(),
            edited: Some(edited),
            flags: OFlags::NOFOLLOW,
            limits,
        })
    }

    pub(super) fn of_tree(base: &'a Path, digest: Digest, limits: TreeLimits) -> Result<Self, ContentStoreError> {
        let entries = tree::list(base, limits.entries)?.into_iter().map(|(entry, _)| entry).collect();
        Ok(Self { base, digest, entries, content: BTreeMap::new(), edited: None, flags: OFlags::NOFOLLOW, limits })
    }

    pub(super) fn fill(&self, folder: &Path) -> Result<(), ContentStoreError> {
        let mut left = self.limits.bytes;
        for entry in &self.entries {
            let to = folder.join(&entry.path);
            match &entry.kind {
                EntryKind::Folder => create_folder(&to)?,
                EntryKind::Link(target) => symlink(target, &to).map_err(|source| failed("create", &to, source))?,
                EntryKind::File { executable } => left -= self.copy(entry, *executable, &to, left)?,
            }
        }
        self.settle(folder)?;
        Ok(())
    }

    /// Copies one file through one descriptor and returns its size.
    fn copy(&self, entry: &Entry, executable: bool, to: &Path, left: u64) -> Result<u64, ContentStoreError> {
        let from = self.base.join(&entry.path);
        let Some((mut source, meta)) = open_regular(&from, self.flags)? else {
            return Err(changed(self.base, entry));
        };
        if meta.len() > left {
            let error = FileError::TooLarge { path: from, size: meta.len(), max: left };
            return Err(tree::of_whole(error, self.base, self.limits.bytes).into());
        }
        let writing = |source| failed("write", to, source);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(writing)?;
        let write = |bytes: &[u8]| (&file).write_all(bytes).map_err(writing);
        let edited = self.edited.and_then(|edited| edited.get(&entry.path));
        let (digest, size) = match edited {
            Some(text) => {
                write(text.as_bytes())?;
                (digest_bytes(text.as_bytes()), text.len() as u64)
            }
            None => ollm_store::raw::digest_reader(&from, &mut source, left, write)?,
        };
        file.set_permissions(Permissions::from_mode(mode_for(executable))).map_err(writing)?;
        let expected = self.content.get(&entry.path).unwrap_or(&digest);
        if digest != *expected || tree::is_executable(&meta) != executable || size > left {
            return Err(changed(self.base, entry));
        }
        Ok(size)
    }

    /// Makes the folders read-only, the innermost first, and syncs everything to disk.
    fn settle(&self, folder: &Path) -> Result<(), FileError> {
        let places = |wanted: fn(&EntryKind) -> bool| {
            let entries = self.entries.iter().rev().filter(move |entry| wanted(&entry.kind));
            entries.map(|entry| folder.join(&entry.path))
        };
        let folders = || places(|kind| matches!(kind, EntryKind::Folder)).chain([folder.to_owned()]);
        let files = || places(|kind| matches!(kind, EntryKind::File { .. }));
        folders().try_for_each(|path| close(&path))?;
        if files().count() > FEW && sync_file_system(folder)? {
            return Ok(());
        }
        files().try_for_each(|path| sync_file(&path))?;
        folders().try_for_each(|path| sync_folder(&path))
    }
}

fn changed(base: &Path, entry: &Entry) -> ContentStoreError {
    ContentStoreError::Changed { path: base.join(&entry.path) }
}

fn place_in(base: &Path, path: &Path) -> Result<PathBuf, ContentStoreError> {
    let place = path.strip_prefix(base).unwrap_or(Path::new(""));
    let plain = place.components().all(|part| matches!(part, Component::Normal(_)));
    if plain && place != Path::new("") {
        // Rebuilds the path, which may be spelled `a//b` or `a/./b`.
        return Ok(place.components().collect());
    }
    Err(ContentStoreError::Outside { path: path.to_owned(), base: base.to_owned() })
}

pub(super) fn create_folder(path: &Path) -> Result<(), FileError> {
    DirBuilder::new().mode(0o700).create(path).map_err(|source| failed("create the folder", path, source))
}

fn close(folder: &Path) -> Result<(), FileError> {
    let closed = fs::set_permissions(folder, Permissions::from_mode(FOLDER));
    closed.map_err(|source| failed("change the mode of", folder, source))
}

fn sync_file(path: &Path) -> Result<(), FileError> {
    let synced = fs::File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|source| failed("write", path, source))
}

/// Syncs all files at once; for many files, that is a hundred times faster than one by one. Returns false if the
/// platform cannot do that.
#[cfg(target_os = "linux")]
fn sync_file_system(folder: &Path) -> Result<bool, FileError> {
    let synced = fs::File::open(folder).and_then(|open| Ok(rustix::fs::syncfs(open)?));
    synced.map(|()| true).map_err(|source| failed("write", folder, source))
}

#[cfg(not(target_os = "linux"))]
fn sync_file_system(_: &Path) -> Result<bool, FileError> {
    Ok(false)
}
