//! Stores copies of approved content, named by their content.
//!
//! An open descriptor does not fix what an interpreter runs. Python reads bytes that were written after the file was
//! opened, and Node turns the descriptor back into a path. So approved content runs from a copy. The copy belongs to
//! its user alone, cannot be written, and is hashed during and after copying.
//!
//! A folder of the store is named `sha256-` and the [tree digest](ollm_store::digest_tree) of its content. So the copy
//! itself shows whether it is intact: by owner, modes and digest. A damaged copy is moved aside and made again, never
//! used.
//!
//! **Writers** take turns under one lock. A copy is filled under another name and renamed when it is complete. So a
//! partial copy of a killed writer never counts as a copy, and the next writer removes it. **Readers** take no lock.
//!
//! The store does not check the owners of the folders above its root (see [`check_owner`](ollm_store::check_owner)). It
//! does not protect against other programs of the same user, which could also change the approvals.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use ollm_store::raw::{Lock, failed, kind_of, random_name, sync_folder};
use ollm_store::tree::{self, Entry, EntryKind};
use ollm_store::{Digest, FileDigests, FileError, StatKey, TreeLimits, Unsafe, Why, current_uid};
use rustix::io::Errno;

mod order;

use order::{Order, create_folder};

const PREFIX: &str = "sha256-";
const NEW: &str = ".new-";
const OLD: &str = ".old-";
/// The lock file. All versions of the program must use this name, because they may run at the same time.
const LOCK: &str = "vault";

/// A folder of copies, named by their content.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let base = folder.path().join("hooks");
/// # std::fs::create_dir(&base).unwrap();
/// use ollm_store::digest_bytes;
/// use ollm_trust::{ContentStore, StoredFile};
/// let script = base.join("guard.sh");
/// std::fs::write(&script, "exit 0").unwrap();
/// let approved = StoredFile { path: script.clone(), digest: digest_bytes(b"exit 0") };
///
/// let kept = ContentStore::new(folder.path().join("store")).keep(&base, &[approved]).unwrap();
/// std::fs::write(&script, "exit 1").unwrap();
/// assert_eq!(std::fs::read(kept.path_of(&script).unwrap()).unwrap(), b"exit 0");
/// ```
#[derive(Debug, Clone)]
pub struct ContentStore {
    root: PathBuf,
    digests: Arc<FileDigests>,
    /// Copies that this process has checked, with the states of all their files and folders at that time.
    good: Arc<Mutex<HashMap<PathBuf, Arc<States>>>>,
}

/// The folder itself and everything in it, each by its path. The state of a folder changes when its entries change, and
/// every state includes owner and mode.
pub(crate) type States = Vec<(PathBuf, StatKey)>;

/// One file to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Where it is, absolute.
    pub path: PathBuf,
    /// The digest of its bytes, as approved.
    pub digest: Digest,
}

/// A copy that was checked and matches the approved content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCopy {
    /// The folder that replaces the original one.
    pub folder: PathBuf,
    base: PathBuf,
}

/// Why a copy could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentStoreError {
    /// The original differs from what was approved.
    #[error("{} is no longer what was approved; look through it and approve it again", path.display())]
    Changed {
        /// The file, or the folder if the change concerns the whole.
        path: PathBuf,
    },
    /// A file is not in the folder whose layout is kept.
    #[error("{} does not lie in {}; move it there or leave it out", path.display(), base.display())]
    Outside {
        /// The file.
        path: PathBuf,
        /// The folder.
        base: PathBuf,
    },
    /// Other users could change the store's own folder.
    #[error("approved content is not run from there: {0}")]
    Unsafe(#[from] Unsafe),
    /// The path of the store is not a folder.
    #[error("{} must be a folder and is a {kind}; move it away", path.display())]
    NotFolder {
        /// The path of the store.
        path: PathBuf,
        /// What is there.
        kind: &'static str,
    },
    /// The file system does not keep owners and modes.
    #[error("{} cannot hold files that belong to you alone; use a file system that keeps owners and modes", path.display())]
    Unfit {
        /// The path of the store.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("approved content runs only from its copy, which could not be made: {0}")]
    File(#[from] FileError),
}

impl StoredCopy {
    /// The path of the copy of a file or folder; `None` if the copy does not have it.
    ///
    /// Compares paths as written: `original` must begin with the base that the copy was made with.
    pub fn path_of(&self, original: &Path) -> Option<PathBuf> {
        let place = self.place_of(original)?;
        Some(if place == Path::new("") { self.folder.clone() } else { self.folder.join(place) })
    }

    /// The place of a file or folder, relative to the folder of the copy.
    pub(crate) fn place_of(&self, original: &Path) -> Option<PathBuf> {
        let place = original.strip_prefix(&self.base).ok()?;
        let plain = place.components().all(|part| matches!(part, Component::Normal(_)));
        (plain && fs::symlink_metadata(self.folder.join(place)).is_ok()).then(|| place.to_owned())
    }
}

impl ContentStore {
    /// A store in this folder, which is created at the first use.
    pub fn new(root: PathBuf) -> Self {
        // With a clock at 1970, the digest cache remembers nothing, so each copy is read each time.
        Self { root, digests: Arc::new(FileDigests::new(UNIX_EPOCH)), good: Arc::default() }
    }

    /// Checks copies through a digest cache, so that an unchanged copy is not read again.
    pub fn remembering(self, digests: Arc<FileDigests>) -> Self {
        Self { digests, ..self }
    }

    /// A folder that holds exactly these files at their places relative to `base`, with their executable bits.
    ///
    /// All of them must lie in `base`, as their paths are written; a symbolic link among them becomes a file.
    pub fn keep(&self, base: &Path, pieces: &[StoredFile]) -> Result<StoredCopy, ContentStoreError> {
        let order = Order::of_pieces(base, pieces)?;
        self.ensure(base, order.digest, TreeLimits::default(), |_| Ok(order))
    }

    /// A copy of a whole folder whose [tree digest](ollm_store::digest_tree) is the approved one; links stay links.
    pub fn keep_tree(&self, root: &Path, digest: &Digest, limits: TreeLimits) -> Result<StoredCopy, ContentStoreError> {
        self.ensure(root, *digest, limits, |digest| Order::of_tree(root, digest, limits))
    }

    /// A copy of a copy in which some files have another text.
    pub(crate) fn keep_edited(
        &self,
        kept: &StoredCopy,
        edited: &BTreeMap<PathBuf, String>,
    ) -> Result<StoredCopy, ContentStoreError> {
        let order = Order::of_edited(&kept.folder, edited, &self.digests)?;
        let copy = self.ensure(&kept.folder, order.digest, TreeLimits::default(), |_| Ok(order))?;
        Ok(StoredCopy { base: kept.base.clone(), ..copy })
    }

    /// The name of the folder that [`ContentStore::keep`] would return; [`ContentStore::sweep`] asks about such names.
    pub fn name_of(base: &Path, pieces: &[StoredFile]) -> Result<String, ContentStoreError> {
        Ok(Self::name_of_tree(&Order::of_pieces(base, pieces)?.digest))
    }

    /// The name of the folder that [`ContentStore::keep_tree`] would return.
    pub fn name_of_tree(digest: &Digest) -> String {
        format!("{PREFIX}{}", digest.hex())
    }

    /// The copy with this name, if there is one. It is unchecked, and only for display.
    pub fn folder(&self, name: &str) -> Option<PathBuf> {
        Some(self.root.join(name)).filter(|folder| is_copy(name) && folder.is_dir())
    }

    /// Removes the copies whose names `keep` rejects, and partial copies of killed writers.
    ///
    /// Best effort: a copy that cannot be removed stays, and does no harm.
    pub fn sweep(&self, keep: &dyn Fn(&str) -> bool) {
        let place = self.root.join(LOCK);
        if !matches!(self.root_is_safe(), Ok(true)) {
            return;
        }
        if let Ok(_lock) = Lock::acquire(&place) {
            for folder in self.list(|name| is_copy(name) && !keep(name)) {
                let _ = self.set_aside(&folder);
            }
            self.clear();
        }
    }

    /// Removes the store if it has no copies; best effort.
    pub(crate) fn remove_if_empty(&self) {
        let place = self.root.join(LOCK);
        if !matches!(self.root_is_safe(), Ok(true)) {
            return;
        }
        if let Ok(lock) = Lock::acquire(&place)
            && self.list(is_copy).is_empty()
            && lock.remove().is_ok()
        {
            // A folder with other content stays.
            let _ = fs::remove_dir(&self.root);
        }
    }

    fn ensure<'a>(
        &self,
        base: &Path,
        digest: Digest,
        limits: TreeLimits,
        order: impl FnOnce(Digest) -> Result<Order<'a>, ContentStoreError>,
    ) -> Result<StoredCopy, ContentStoreError> {
        let folder = self.root.join(Self::name_of_tree(&digest));
        let kept = StoredCopy { folder, base: base.to_owned() };
        if self.root_is_safe()? && self.inspect(&kept.folder, digest, limits)? == CopyState::Good {
            return Ok(kept);
        }
        self.make_root()?;
        let place = self.root.join(LOCK);
        let _lock = Lock::acquire(&place)?;
        match self.inspect(&kept.folder, digest, limits)? {
            // Another process made it in the meantime.
            CopyState::Good => return Ok(kept),
            CopyState::Missing => {}
            CopyState::Exposed | CopyState::Different => self.set_aside(&kept.folder)?,
        }
        self.clear();
        self.make(&order(digest)?, &kept.folder)?;
        Ok(kept)
    }

    /// False when there is no root yet.
    fn root_is_safe(&self) -> Result<bool, ContentStoreError> {
        let meta = match fs::symlink_metadata(&self.root) {
            Ok(meta) => meta,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(failed("inspect", &self.root, source).into()),
        };
        if !meta.is_dir() {
            return Err(ContentStoreError::NotFolder { path: self.root.clone(), kind: kind_of(&meta) });
        }
        let why = match meta.mode() {
            _ if meta.uid() != current_uid() => Why::Foreign,
            mode if mode & 0o022 != 0 => Why::Writable,
            mode if mode & 0o055 != 0 => Why::Open,
            _ => return Ok(true),
        };
        Err(Unsafe::of(&self.root, &meta, why).into())
    }

    fn make_root(&self) -> Result<(), ContentStoreError> {
        if self.root_is_safe()? {
            return Ok(());
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.root);
        made.map_err(|source| failed("create the folder", &self.root, source))?;
        self.root_is_safe()?;
        Ok(())
    }

    /// Checks the state of a copy.
    fn inspect(&self, folder: &Path, digest: Digest, limits: TreeLimits) -> Result<CopyState, FileError> {
        if self.is_still_good(folder) {
            return Ok(CopyState::Good);
        }
        let meta = match fs::symlink_metadata(folder) {
            Ok(meta) if !meta.is_dir() => return Ok(CopyState::Different),
            Ok(meta) if !is_closed(&meta, FOLDER) => return Ok(CopyState::Exposed),
            Ok(meta) => meta,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(CopyState::Missing),
            Err(source) => return Err(failed("inspect", folder, source)),
        };
        match self.compare(folder, &meta, digest, limits) {
            Err(FileError::Io { source, .. }) if !is_damage(&source) => Err(failed("inspect", folder, source)),
            Err(_) => Ok(CopyState::Different),
            Ok(state) => Ok(state),
        }
    }

    fn compare(
        &self,
        folder: &Path,
        meta: &Metadata,
        digest: Digest,
        limits: TreeLimits,
    ) -> Result<CopyState, FileError> {
        let entries = tree::list(folder, limits.entries)?;
        let closed = |(entry, meta): &(Entry, Metadata)| match entry.kind {
            EntryKind::Folder => is_closed(meta, FOLDER),
            EntryKind::File { executable } => is_closed(meta, mode_for(executable)),
            // The mode of a link has no effect.
            EntryKind::Link(_) => meta.uid() == current_uid(),
        };
        if !entries.iter().all(closed) {
            return Ok(CopyState::Exposed);
        }
        let found = self.digests.measure_tree(folder, &entries, limits)?;
        if found != digest {
            return Ok(CopyState::Different);
        }
        self.note_good(folder, meta, &entries);
        Ok(CopyState::Good)
    }

    /// The states of everything in a copy that this process has checked.
    pub(crate) fn good_states(&self, folder: &Path) -> Option<Arc<States>> {
        self.good().get(folder).cloned()
    }

    /// Whether the store still belongs to us alone, and the copy still has these states.
    pub(crate) fn still_holds(&self, states: &States) -> bool {
        matches!(self.root_is_safe(), Ok(true)) && unchanged(states)
    }

    /// Whether nothing about a copy has changed since this process checked it.
    fn is_still_good(&self, folder: &Path) -> bool {
        self.good_states(folder).is_some_and(|states| unchanged(&states))
    }

    /// Remembers a checked copy if all its states have been quiet for a while, as for digests.
    fn note_good(&self, folder: &Path, meta: &Metadata, entries: &[(Entry, Metadata)]) {
        let inside = entries.iter().map(|(entry, meta)| (folder.join(&entry.path), StatKey::of(meta)));
        let states: States = std::iter::once((folder.to_owned(), StatKey::of(meta))).chain(inside).collect();
        if states.iter().all(|(_, state)| self.digests.is_quiet(state.ctime_ns)) {
            self.good().insert(folder.to_owned(), Arc::new(states));
        }
    }

    fn good(&self) -> MutexGuard<'_, HashMap<PathBuf, Arc<States>>> {
        self.good.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills a folder under another name, and renames it when it is complete.
    fn make(&self, order: &Order<'_>, folder: &Path) -> Result<(), ContentStoreError> {
        let new = New::create(self.root.join(format!("{NEW}{}", random_name())))?;
        order.fill(&new.path)?;
        let state = self.inspect(&new.path, order.digest, order.limits)?;
        // The folder is renamed below, so this name is no longer valid.
        self.good().remove(&new.path);
        match state {
            CopyState::Good => {}
            CopyState::Exposed => return Err(ContentStoreError::Unfit { path: self.root.clone() }),
            CopyState::Missing | CopyState::Different => {
                return Err(ContentStoreError::Changed { path: order.base.to_owned() });
            }
        }
        new.rename(folder)?;
        Ok(sync_folder(&self.root)?)
    }

    /// Renames a folder in one step, so that it is no longer used; [`ContentStore::clear`] removes it.
    fn set_aside(&self, folder: &Path) -> Result<(), FileError> {
        let aside = self.root.join(format!("{OLD}{}", random_name()));
        fs::rename(folder, &aside).map_err(|source| failed("move away", folder, source))
    }

    /// Removes folders that were moved aside, and partial copies. The caller holds the lock, so no writer is using
    /// them.
    fn clear(&self) {
        for leftover in self.list(|name| name.starts_with(NEW) || name.starts_with(OLD)) {
            remove(&leftover);
        }
    }

    fn list(&self, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
        let found = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let found = found.filter(|entry| entry.file_name().to_str().is_some_and(&wanted));
        found.map(|entry| entry.path()).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CopyState {
    Missing,
    Good,
    /// The owner or a mode is wrong.
    Exposed,
    /// The content differs from what the name says.
    Different,
}

/// A new folder that is removed on drop unless it was renamed.
struct New {
    path: PathBuf,
    kept: bool,
}

impl New {
    fn create(path: PathBuf) -> Result<Self, FileError> {
        create_folder(&path)?;
        Ok(Self { path, kept: false })
    }

    fn rename(mut self, to: &Path) -> Result<(), FileError> {
        fs::rename(&self.path, to).map_err(|source| failed("create", to, source))?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for New {
    fn drop(&mut self) {
        if !self.kept {
            remove(&self.path);
        }
    }
}

fn unchanged(states: &States) -> bool {
    states.iter().all(|(path, state)| fs::symlink_metadata(path).is_ok_and(|meta| StatKey::of(&meta) == *state))
}

const FOLDER: u32 = 0o500;

fn mode_for(executable: bool) -> u32 {
    if executable { 0o500 } else { 0o400 }
}

fn is_closed(meta: &Metadata, mode: u32) -> bool {
    meta.uid() == current_uid() && meta.mode() & 0o7777 == mode
}

/// Whether an error shows damage of the copy, as opposed to a temporary problem.
fn is_damage(source: &io::Error) -> bool {
    let code = Errno::from_io_error(source);
    matches!(code, Some(Errno::LOOP | Errno::NOTDIR | Errno::NOENT | Errno::ACCESS | Errno::PERM))
}

fn is_copy(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Removes a file or folder, as far as possible.
fn remove(path: &Path) {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    if is_folder {
        open_folders(path);
        let _ = fs::remove_dir_all(path);
    } else {
        let _ = fs::remove_file(path);
    }
}

/// Makes folders writable, because nothing can be removed from a read-only folder.
fn open_folders(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let listing = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(
            listing.filter(|found| found.file_type().is_ok_and(|kind| kind.is_dir())).map(|found| found.path()),
        );
    }
}

#[cfg(test)]
mod tests;
