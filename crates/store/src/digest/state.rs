//! The state of a file or folder; a digest is remembered for one state.

use std::convert::Infallible;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use super::digest_bytes;
use super::tree::{self, Entry, EntryKind};

/// What `stat` says about the identity and the last change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatKey {
    /// The device.
    pub dev: u64,
    /// The inode.
    pub ino: u64,
    /// The size in bytes.
    pub size: u64,
    /// When the content was last modified; every program may set it.
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

    /// The inode comes first, because two keys mostly differ there.
    pub(super) fn numbers(&self) -> [u64; 5] {
        [self.ino, self.dev, self.size, self.mtime_ns.cast_unsigned(), self.ctime_ns.cast_unsigned()]
    }
}

/// A state for which a digest is remembered.
pub(super) struct DigestState {
    pub(super) key: StatKey,
    /// The latest change time of all files.
    pub(super) ctime_ns: i64,
    /// The cost of hashing, in bytes.
    pub(super) effort: u64,
}

impl DigestState {
    pub(super) fn of_file(key: StatKey) -> Self {
        Self { key, ctime_ns: key.ctime_ns, effort: key.size }
    }

    /// The state of a folder, and the bytes in it. Its key names the folder; a fingerprint of everything in it replaces
    /// size and times.
    pub(super) fn of_tree(root: &Metadata, entries: &[(Entry, Metadata)]) -> (Self, u64) {
        // Opening a file costs as much as hashing this many bytes.
        const PER_FILE: u64 = 8 * 1024;
        let keys = entries.iter().map(|(entry, meta)| (entry, StatKey::of(meta)));
        let files = keys.filter(|(entry, _)| matches!(entry.kind, EntryKind::File { .. })).map(|(_, key)| key);
        let bytes = files.clone().fold(0_u64, |sum, key| sum.saturating_add(key.size));
        let state = Self {
            key: fingerprint(StatKey::of(root), entries, files.clone()),
            ctime_ns: files.clone().map(|key| key.ctime_ns).max().unwrap_or(i64::MIN),
            effort: bytes.saturating_add((files.count() as u64).saturating_mul(PER_FILE)),
        };
        (state, bytes)
    }
}

/// A digest of the tree that takes each file's state for its content.
fn fingerprint(root: StatKey, entries: &[(Entry, Metadata)], mut files: impl Iterator<Item = StatKey>) -> StatKey {
    let content = |_: &Entry| {
        let numbers = files.next().map(|key| key.numbers()).unwrap_or_default();
        Ok::<_, Infallible>(digest_bytes(numbers.map(u64::to_le_bytes).as_flattened()))
    };
    let Ok(all) = tree::digest_entries(entries.iter().map(|(entry, _)| entry), content);
    let (numbers, _) = all.as_bytes().as_chunks::<8>();
    let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let mut next = || numbers.next().unwrap_or_default();
    StatKey { size: next(), mtime_ns: next().cast_signed(), ctime_ns: next().cast_signed(), ..root }
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
