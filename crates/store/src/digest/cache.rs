//! Digests of files, remembered for as long as the file is provably the same.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

use super::memory::Memory;
use super::state::{StatKey, State};
use super::tree::{self, Entry, TreeLimits};
use super::{Digest, digest_file};
use crate::file::{FileError, failed};

/// What is hashed faster than looked up, in bytes. Hashing a file takes 5 µs and 0.6 µs per KiB, 24 µs at this size;
/// reading the memory and searching it in vain 6 µs with 20 lines, 13 µs with 500, 58 µs when it is full.
const LITTLE: u64 = 32 * 1024;

/// Digests of files by path, so that an unchanged file costs one `stat`.
///
/// **When a digest is remembered.** Only when the file's change time lies at least two seconds before the `now` that was
/// last passed in. Every later write moves the change time to the time of that write, which is after `now` and hence,
/// whatever the resolution of the file system's clock (up to two seconds), different from the remembered one. A file
/// that changed more recently is hashed again each time. Modification times are compared as well but prove nothing:
/// anybody can set them. Passing an old `now` is safe and only remembers less.
///
/// **What outlives the process.** A memory made by [`FileDigests::load`] reads earlier digests from a file and
/// [`FileDigests::save_if_changed`] adds the new ones, under the same rule: a digest is returned only for the very state
/// of the file (device, inode, size, both times) for which it was remembered. The memory file is read when something is
/// asked for that takes longer to hash than to look up: a file of more than 32 KiB, or a folder with more than a few
/// files. It must be ours alone; it needs no seal, because whoever can write it can also write the approvals.
///
/// Not noticed: writes through a shared memory mapping that was already dirty; a clock that is set back to the very
/// nanosecond; and a write of the same size during the reading, within one tick of the file system's clock (such a digest
/// is not remembered). Whoever must rely on the bytes copies them to a place of his own and hashes the copy.
#[derive(Debug)]
pub struct FileDigests {
    now_ns: AtomicI64,
    known: Mutex<HashMap<PathBuf, (StatKey, Digest)>>,
    memory: Option<Memory>,
}

impl FileDigests {
    /// An empty memory; `now` is the present time.
    pub fn new(now: SystemTime) -> Self {
        Self { now_ns: AtomicI64::new(since_epoch(now)), known: Mutex::default(), memory: None }
    }

    /// A memory that goes on where earlier processes left off; `path` is the file they share, and need not exist.
    pub fn load(path: PathBuf, now: SystemTime) -> Self {
        Self { memory: Some(Memory::new(path)), ..Self::new(now) }
    }

    /// Writes down what this process has learnt, if anything. At its best effort: a failure only costs time later.
    pub fn save_if_changed(&self) {
        if let Some(memory) = &self.memory {
            memory.save_if_changed();
        }
    }

    /// Lets time pass; of use to processes that live longer than a few seconds.
    pub fn advance(&self, now: SystemTime) {
        self.now_ns.store(since_epoch(now), Ordering::Relaxed);
    }

    /// The digest of a file of at most `max` bytes.
    ///
    /// Opened, inspected, hashed and inspected again through one descriptor: a file that changes meanwhile is read
    /// again, and is an error when it keeps changing.
    pub fn digest(&self, path: &Path, max: u64) -> Result<Digest, FileError> {
        self.measure(path, OFlags::empty(), max).map(|(digest, _)| digest)
    }

    /// The digest of a folder, by the rules of [`digest_tree`](crate::digest_tree), reading only the files that are not
    /// remembered.
    pub fn tree(&self, root: &Path, limits: TreeLimits) -> Result<Digest, FileError> {
        let entries = tree::list(root, limits.entries)?;
        self.measure_tree(root, &entries, limits)
    }

    /// The digest of a folder that has just been listed.
    ///
    /// It is remembered as a whole, for the state of everything in it, so that no file needs to be looked up.
    pub fn measure_tree(
        &self,
        root: &Path,
        entries: &[(Entry, Metadata)],
        limits: TreeLimits,
    ) -> Result<Digest, FileError> {
        let meta = fs::symlink_metadata(root).map_err(|source| failed("inspect", root, source))?;
        let (state, bytes) = State::of_tree(&meta, entries);
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
        self.remember(path, &State::of_file(key), digest);
        Ok((digest, key.size))
    }

    fn recall(&self, path: &Path, flags: OFlags, max: u64) -> Option<(Digest, u64)> {
        if self.memory.is_none() && !self.known().contains_key(path) {
            return None;
        }
        let meta = if flags.contains(OFlags::NOFOLLOW) { fs::symlink_metadata(path) } else { fs::metadata(path) };
        let meta = meta.ok().filter(Metadata::is_file)?;
        let key = StatKey::of(&meta);
        let digest = self.recall_state(path, &State::of_file(key))?;
        (key.size <= max).then_some((digest, key.size))
    }

    fn recall_state(&self, path: &Path, state: &State) -> Option<Digest> {
        if let Some((key, digest)) = self.known().get(path)
            && *key == state.key
        {
            return Some(*digest);
        }
        let digest = self.memory_for(state)?.recall(&state.key)?;
        self.insert(path, state.key, digest);
        Some(digest)
    }

    fn remember(&self, path: &Path, state: &State, digest: Digest) {
        if !self.is_quiet(state.ctime_ns) {
            self.known().remove(path);
            return;
        }
        self.insert(path, state.key, digest);
        if let Some(memory) = self.memory_for(state) {
            memory.remember(&state.key, &digest);
        }
    }

    /// Whether a change at that time is so long ago that a later one has another time.
    pub fn is_quiet(&self, ctime_ns: i64) -> bool {
        const SLACK_NS: i64 = 2_000_000_000;
        ctime_ns.saturating_add(SLACK_NS) <= self.now_ns.load(Ordering::Relaxed)
    }

    fn memory_for(&self, state: &State) -> Option<&Memory> {
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
        // An entry is inserted whole or not at all, so a panic elsewhere leaves nothing half done.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn since_epoch(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |elapsed| i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX))
}
