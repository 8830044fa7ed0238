//! Digests of files, remembered for as long as the file certainly has not changed.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

use super::memory::Memory;
use super::state::{DigestState, StatKey};
use super::tree::{self, Entry, TreeLimits};
use super::{Digest, digest_file};
use crate::file::{FileError, failed};

/// Files up to this many bytes are hashed faster than looked up. Hashing a file takes 5 µs and 0.6 µs per KiB, 24 µs at
/// this size. Reading the stored digests and finding nothing takes 6 µs with 20 lines, 13 µs with 500, 58 µs when the
/// store is full.
const LITTLE: u64 = 32 * 1024;

/// Digests of files by path, so that an unchanged file costs one `stat`.
///
/// **Remembered.** A digest is kept only when the file's change time lies at least two seconds before the last passed
/// `now`. Every later write moves the change time to the time of that write, which is after `now`. So it differs from
/// the remembered one, at any resolution of the file system's clock (up to two seconds). A file that changed more
/// recently is hashed again each time. Modification times are compared as well but prove nothing: every program can set
/// them. Passing an old `now` is safe and only remembers less.
///
/// **What outlives the process.** A cache made by [`FileDigests::load`] reads earlier digests from a file.
/// [`FileDigests::save_if_changed`] adds the new ones, under the same rule. A digest is returned only for the exact
/// state of the file (device, inode, size, both times) for which it was remembered. The stored digests are used only
/// for files of more than 32 KiB, and for folders with more than a few files. Smaller ones are hashed faster than
/// looked up. The cache file must be closed to other users. It needs no seal: a program that can write it can also
/// write the approvals.
///
/// Three changes are not noticed: a write through a shared memory mapping that was already dirty; a clock that is set
/// back to the very nanosecond; and a write of the same size during the reading, within one tick of the file system's
/// clock. In the last case the digest is not remembered. A caller that must rely on the bytes copies them to a private
/// place and hashes the copy.
#[derive(Debug)]
pub struct FileDigests {
    now_ns: AtomicI64,
    known: Mutex<HashMap<PathBuf, (StatKey, Digest)>>,
    memory: Option<Memory>,
}

impl FileDigests {
    /// An empty cache; `now` is the present time.
    pub fn new(now: SystemTime) -> Self {
        Self { now_ns: AtomicI64::new(since_epoch(now)), known: Mutex::default(), memory: None }
    }

    /// A cache with the digests that earlier processes saved in the file `path`, which need not exist.
    pub fn load(path: PathBuf, now: SystemTime) -> Self {
        Self { memory: Some(Memory::new(path)), ..Self::new(now) }
    }

    /// Saves the digests that this process computed, if any. A failure is ignored, because it only costs time later.
    pub fn save_if_changed(&self) {
        if let Some(memory) = &self.memory {
            memory.save_if_changed();
        }
    }

    /// Updates the present time; useful in processes that live longer than a few seconds.
    pub fn advance(&self, now: SystemTime) {
        self.now_ns.store(since_epoch(now), Ordering::Relaxed);
    }

    /// The digest of a file of at most `max` bytes.
    ///
    /// The file is opened, inspected, hashed and inspected again through one descriptor. If it changed meanwhile, it is
    /// read again; if it keeps changing, that is an error.
    pub fn digest(&self, path: &Path, max: u64) -> Result<Digest, FileError> {
        self.measure(path, OFlags::empty(), max).map(|(digest, _)| digest)
    }

    /// The digest of a folder, by the rules of [`digest_tree`](crate::digest_tree). Only files without a remembered
    /// digest are read.
    pub fn tree(&self, root: &Path, limits: TreeLimits) -> Result<Digest, FileError> {
        let entries = tree::list(root, limits.entries)?;
        self.measure_tree(root, &entries, limits)
    }

    /// The digest of a folder that has just been listed.
    ///
    /// The digest is remembered for the whole folder and the state of everything in it, so files need no separate
    /// look-up.
    pub fn measure_tree(
        &self,
        root: &Path,
        entries: &[(Entry, Metadata)],
        limits: TreeLimits,
    ) -> Result<Digest, FileError> {
        let meta = fs::symlink_metadata(root).map_err(|source| failed("inspect", root, source))?;
        let (state, bytes) = DigestState::of_tree(&meta, entries);
        if let Some(digest) = self.recall_state(root, &state)
            && bytes <= limits.bytes
        {
            return Ok(digest);
        }
        let read = |path: &Path, left| self.measure(path, OFlags::NOFOLLOW, left);
        let digest = tree::digest_listed(root, entries, limits, read)?;
        self.remember(root, &state, digest);
        Ok(digest)
    }

    /// The digest and the size of a file.
    pub(crate) fn measure(&self, path: &Path, flags: OFlags, max: u64) -> Result<(Digest, u64), FileError> {
        if let Some(found) = self.recall(path, flags, max) {
            return Ok(found);
        }
        let (digest, key) = digest_file(path, flags, max)?;
        self.remember(path, &DigestState::of_file(key), digest);
        Ok((digest, key.size))
    }

    fn recall(&self, path: &Path, flags: OFlags, max: u64) -> Option<(Digest, u64)> {
        if self.memory.is_none() && !self.known().contains_key(path) {
            return None;
        }
        let meta = if flags.contains(OFlags::NOFOLLOW) { fs::symlink_metadata(path) } else { fs::metadata(path) };
        let meta = meta.ok().filter(Metadata::is_file)?;
        let key = StatKey::of(&meta);
        let digest = self.recall_state(path, &DigestState::of_file(key))?;
        (key.size <= max).then_some((digest, key.size))
    }

    fn recall_state(&self, path: &Path, state: &DigestState) -> Option<Digest> {
        if let Some((key, digest)) = self.known().get(path)
            && *key == state.key
        {
            return Some(*digest);
        }
        let digest = self.memory_for(state)?.recall(&state.key)?;
        self.insert(path, state.key, digest);
        Some(digest)
    }

    fn remember(&self, path: &Path, state: &DigestState, digest: Digest) {
        if !self.is_quiet(state.ctime_ns) {
            self.known().remove(path);
            return;
        }
        self.insert(path, state.key, digest);
        if let Some(memory) = self.memory_for(state) {
            memory.remember(&state.key, &digest);
        }
    }

    /// Whether a change at that time is so old that any later change has a different time.
    pub fn is_quiet(&self, ctime_ns: i64) -> bool {
        const SLACK_NS: i64 = 2_000_000_000;
        ctime_ns.saturating_add(SLACK_NS) <= self.now_ns.load(Ordering::Relaxed)
    }

    fn memory_for(&self, state: &DigestState) -> Option<&Memory> {
        self.memory.as_ref().filter(|_| state.effort > LITTLE)
    }

    fn insert(&self, path: &Path, key: StatKey, digest: Digest) {
        const CAPACITY: usize = 65_536;
        let mut known = self.known();
        if known.len() >= CAPACITY {
            known.clear();
        }
        known.insert(path.to_owned(), (key, digest));
    }

    /// The state of a file for which its digest is remembered.
    pub fn remembered(&self, path: &Path) -> Option<StatKey> {
        self.known().get(path).map(|(key, _)| *key)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, (StatKey, Digest)>> {
        // An entry is inserted completely or not at all, so a panic elsewhere leaves no partial entry.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn since_epoch(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |elapsed| i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX))
}
