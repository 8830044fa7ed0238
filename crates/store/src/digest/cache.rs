//! Digests of files, remembered for as long as the file is provably the same.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

use super::{Digest, digest_file};
use crate::file::FileError;

/// What `stat` says about the identity and the last change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatKey {
    /// The device.
    pub dev: u64,
    /// The inode.
    pub ino: u64,
    /// The size in bytes.
    pub size: u64,
    /// When the content was last modified, as far as anybody may claim.
    pub mtime_ns: i64,
    /// When the inode last changed; set by the kernel alone.
    pub ctime_ns: i64,
}

impl StatKey {
    /// The key of a file by its metadata.
    pub fn of(meta: &Metadata) -> Self {
        Self {
            dev: meta.dev(),
            ino: meta.ino(),
            size: meta.size(),
            mtime_ns: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            ctime_ns: nanoseconds(meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// Digests of files by path, so that an unchanged file costs one `stat`.
///
/// **When a digest is remembered.** Only when the file's change time lies at least two seconds before the `now` that was
/// last passed in. Every later write moves the change time to the time of that write, which is after `now` and hence,
/// whatever the resolution of the file system's clock (up to two seconds), different from the remembered one. A file
/// that changed more recently is hashed again each time. Modification times are compared as well but prove nothing:
/// anybody can set them. Passing an old `now` is safe and only remembers less.
///
/// Not noticed: writes through a shared memory mapping that was already dirty; a clock that is set back to the very
/// nanosecond; and a write of the same size during the reading, within one tick of the file system's clock (such a digest
/// is not remembered). Whoever must rely on the bytes copies them to a place of his own and hashes the copy.
#[derive(Debug)]
pub struct FileDigests {
    now_ns: AtomicI64,
    known: Mutex<HashMap<PathBuf, (StatKey, Digest)>>,
}

impl FileDigests {
    /// An empty memory; `now` is the present time.
    pub fn new(now: SystemTime) -> Self {
        Self { now_ns: AtomicI64::new(since_epoch(now)), known: Mutex::default() }
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
        if let Some(digest) = self.recall(path, max) {
            return Ok(digest);
        }
        let (digest, key) = digest_file(path, OFlags::empty(), max)?;
        self.remember(path, key, digest);
        Ok(digest)
    }

    fn recall(&self, path: &Path, max: u64) -> Option<Digest> {
        let (key, digest) = *self.known().get(path)?;
        let meta = fs::metadata(path).ok()?;
        let same = meta.is_file() && key == StatKey::of(&meta) && key.size <= max;
        same.then_some(digest)
    }

    fn remember(&self, path: &Path, key: StatKey, digest: Digest) {
        const SLACK_NS: i64 = 2_000_000_000;
        const CAPACITY: usize = 65_536;
        let settled = key.ctime_ns.saturating_add(SLACK_NS) <= self.now_ns.load(Ordering::Relaxed);
        let mut known = self.known();
        if !settled {
            known.remove(path);
            return;
        }
        if known.len() >= CAPACITY {
            known.clear();
        }
        known.insert(path.to_owned(), (key, digest));
    }

    #[cfg(test)]
    pub(super) fn remembers(&self, path: &Path) -> bool {
        self.known().contains_key(path)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, (StatKey, Digest)>> {
        // An entry is inserted whole or not at all, so a panic elsewhere leaves nothing half done.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

fn since_epoch(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |elapsed| i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX))
}
