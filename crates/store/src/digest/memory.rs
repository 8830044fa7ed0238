//! Digests that outlive the process that computed them.
//!
//! One line per file, all of one width, the newest first:
//!
//! ```text
//! ollm digests 1
//! inode device size mtime ctime digest
//! ```
//!
//! all in hexadecimal; for a folder, a fingerprint of the states of everything in it stands in place of size and times.
//! Nothing is parsed on loading: a file's present state is spelled as the beginning of a line and
//! searched for, so a line answers for exactly the state it was written for and for no other.
//!
//! The file is a convenience and is treated as one: what is not ours, open to others, not of this form or too long is
//! ignored, a failed write is silent, and nothing waits for the disk. It is not protected beyond that, because whoever
//! can write it can also write the approvals beside it; where these are signed, it is not used.

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
/// The part of a line that says which file in which state.
const STATE: usize = 5 * 17;
const CAPACITY: usize = 4096;

#[derive(Debug)]
pub(super) struct Memory {
    path: PathBuf,
    /// Read when it is first asked.
    earlier: OnceLock<Vec<u8>>,
    /// Lines that are not in the file yet, by the part that says which file.
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

    /// Two processes that save at once may lose a line of one of them, which is then computed again.
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
        // The next process computes again what could not be saved.
        let _ = write_unsynced(&self.path, &bytes);
    }

    fn learnt(&self) -> MutexGuard<'_, HashMap<Vec<u8>, String>> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines of a memory file that is ours alone and has the right form.
fn read(path: &Path) -> Option<Vec<u8>> {
    const MAX: usize = HEADER.len() + CAPACITY * LINE;
    let (mut file, meta) = open_own(path).filter(|(_, meta)| meta.len() <= MAX as u64)?;
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).ok()? + 1);
    file.by_ref().take(MAX as u64 + 1).read_to_end(&mut bytes).ok()?;
    let whole = bytes.starts_with(HEADER) && bytes.len() <= MAX && (bytes.len() - HEADER.len()).is_multiple_of(LINE);
    whole.then(|| bytes.split_off(HEADER.len()))
}

/// How the line of a state begins; the first number is the one by which most lines differ.
fn spell(key: &StatKey) -> String {
    let mut text = String::with_capacity(LINE);
    for number in key.numbers() {
        // Writing to a string does not fail.
        let _ = write!(text, "{number:016x} ");
    }
    text
}

/// The part of a line that says which file.
fn file_of(line: &[u8]) -> &[u8] {
    line.get(..2 * 17).unwrap_or(line)
}

#[cfg(test)]
mod tests;
