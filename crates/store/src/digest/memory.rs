//! Digests that outlive the process that computed them.
//!
//! One line per file, all lines of equal length, the newest first:
//!
//! ```text
//! ollm digests 1
//! inode device size mtime ctime digest
//! ```
//!
//! All numbers are hexadecimal. For a folder, a fingerprint of the states of everything in it replaces size and times.
//! Loading parses nothing: the present state of a file is written as the beginning of a line and searched for. So a
//! line matches only the exact state it was written for.
//!
//! The file only saves time. If it is not ours, open to others, malformed or too long, it is ignored. A failed write is
//! ignored too, and nothing waits for the disk. It needs no further protection, because a program that can write it can
//! also write the approvals beside it. Where approvals are signed, it is not used.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::{Digest, StatKey};
use crate::file::{open_own, write_unsynced};

const HEADER: &[u8] = b"ollm digests 1\n";
/// Five numbers of 16 digits and a digest of 64, each followed by a space or the end of the line.
const LINE: usize = 5 * 17 + 65;
/// The part of a line that names the file and its state.
const STATE: usize = 5 * 17;
const CAPACITY: usize = 4096;

#[derive(Debug)]
pub(super) struct Memory {
    path: PathBuf,
    /// Read at the first look-up.
    earlier: OnceLock<Vec<u8>>,
    /// Lines that are not in the file yet, by the part that names the file.
    learnt: Mutex<HashMap<Vec<u8>, String>>,
}

impl Memory {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, earlier: OnceLock::new(), learnt: Mutex::default() }
    }

    pub(super) fn recall(&self, key: &StatKey) -> Option<Digest> {
        let state = spell(key);
        let lines = self.earlier.get_or_init(|| read(&self.path).unwrap_or_default());
        let line = lines.chunks_exact(LINE).find(|line| line.starts_with(state.as_bytes()))?;
        let digest = line.get(STATE..LINE - 1)?;
        format!("sha256:{}", str::from_utf8(digest).ok()?).parse().ok()
    }

    pub(super) fn remember(&self, key: &StatKey, digest: &Digest) {
        let line = format!("{}{}\n", spell(key), digest.hex());
        let mut learnt = self.learnt();
        if learnt.len() < CAPACITY {
            learnt.insert(file_of(line.as_bytes()).to_owned(), line);
        }
    }

    /// Two processes that save at the same time may lose one process's lines, which are then computed again.
    pub(super) fn save_if_changed(&self) {
        let learnt = std::mem::take(&mut *self.learnt());
        if learnt.is_empty() {
            return;
        }
        let earlier = read(&self.path).unwrap_or_default();
        let still_good = earlier.chunks_exact(LINE).filter(|line| !learnt.contains_key(file_of(line)));
        let mut bytes = HEADER.to_vec();
        for line in learnt.values().map(String::as_bytes).chain(still_good).take(CAPACITY) {
            bytes.extend_from_slice(line);
        }
        // If saving fails, the next process computes the digests again.
        let _ = write_unsynced(&self.path, &bytes);
    }

    fn learnt(&self) -> MutexGuard<'_, HashMap<Vec<u8>, String>> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines of the file, if it is ours, closed to others and well-formed.
fn read(path: &Path) -> Option<Vec<u8>> {
    const MAX: usize = HEADER.len() + CAPACITY * LINE;
    let (mut file, meta) = open_own(path).filter(|(_, meta)| meta.len() <= MAX as u64)?;
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).ok()? + 1);
    file.by_ref().take(MAX as u64 + 1).read_to_end(&mut bytes).ok()?;
    let whole = bytes.starts_with(HEADER) && bytes.len() <= MAX && (bytes.len() - HEADER.len()).is_multiple_of(LINE);
    whole.then(|| bytes.split_off(HEADER.len()))
}

/// The beginning of the line for a state. The inode comes first, because most lines differ there.
fn spell(key: &StatKey) -> String {
    let mut text = String::with_capacity(LINE);
    for number in key.numbers() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{number:016x} ");
    }
    text
}

/// The part of a line that names the file.
fn file_of(line: &[u8]) -> &[u8] {
    line.get(..2 * 17).unwrap_or(line)
}

#[cfg(test)]
mod tests;
