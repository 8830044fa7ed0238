//! Work that several processes are asked for at once: the first does it, the others get what came of it.
//!
//! Each piece of work has a file of its own, named by a digest of all that it is about. Whoever does it holds a lock on
//! that file and writes down what came of it; whoever comes meanwhile waits for the lock, and whoever comes soon after
//! reads. What is older, damaged, or not the user's alone counts for nothing, and the work is done again.

use std::fs::{self, File, Metadata};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::digest::Digest;
use crate::file::{FileError, failed, open_lock, wait_for};
use crate::owner::current_uid;

/// A file of work that nobody ended is cleared away after this long: no agent waits longer.
const ABANDONED: Duration = Duration::from_mins(15);
/// One piece of work in so many clears away what earlier ones left.
const SWEEP_EVERY: u8 = 16;

/// Where pieces of work are claimed.
#[derive(Clone, Copy, Debug)]
pub struct Claims<'a> {
    /// The folder of their files, which holds nothing else.
    pub folder: &'a Path,
    /// How long what came of one counts.
    pub fresh: Duration,
    /// The most bytes that are kept of one.
    pub largest: usize,
}

/// Whose turn it is to do a piece of work.
#[derive(Debug)]
pub enum Turn {
    /// Ours; others wait until the claim is settled or dropped.
    First(Claim),
    /// Another process has just done it, and this is what came of it.
    Done(Vec<u8>),
}

/// The right to do a piece of work.
#[derive(Debug)]
pub struct Claim {
    file: File,
    largest: usize,
}

impl Claims<'_> {
    /// Takes a piece of work on, or waits for about so long for who does it already.
    ///
    /// Whatever goes wrong, the caller does the work without a claim.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// use std::time::{Duration, SystemTime};
    /// use ollm_store::{Claims, Turn, digest_bytes};
    /// let claims = Claims { folder: folder.path(), fresh: Duration::from_secs(60), largest: 100 };
    /// let take = || claims.take(&digest_bytes(b"lint"), Duration::ZERO, SystemTime::now).unwrap();
    /// let Turn::First(claim) = take() else { panic!() };
    /// claim.settle(b"clean");
    /// assert!(matches!(take(), Turn::Done(result) if result == b"clean"));
    /// ```
    pub fn take(&self, work: &Digest, patience: Duration, clock: impl Fn() -> SystemTime) -> Result<Turn, FileError> {
        let path = self.folder.join(work.hex());
        let file = open_lock(&path)?;
        wait_for(&file, &path, patience)?;
        let meta = file.metadata().map_err(|source| failed("inspect", &path, source))?;
        if !meta.is_file() || meta.uid() != current_uid() || meta.mode() & 0o077 != 0 {
            return Err(FileError::Refused { path, why: "is not a file of yours alone" });
        }
        // Who comes later would not find a file that was cleared away while we waited for it.
        if meta.nlink() == 0 {
            return Err(FileError::Changed { path });
        }
        if meta.len() > 0 {
            if age(&meta, clock()).is_some_and(|age| age <= self.fresh) {
                return self.read(file).map(Turn::Done).map_err(|source| failed("read", &path, source));
            }
            file.set_len(0).map_err(|source| failed("write", &path, source))?;
        }
        if work.as_bytes().first().is_some_and(|byte| byte % SWEEP_EVERY == 0) {
            self.sweep(clock());
        }
        Ok(Turn::First(Claim { file, largest: self.largest }))
    }

    fn read(&self, file: File) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.take(self.largest as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Removes what does not count any more. A file that cannot be removed harms nobody.
    fn sweep(&self, now: SystemTime) {
        for entry in fs::read_dir(self.folder).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            let kept = if meta.len() > 0 { self.fresh } else { ABANDONED };
            let is_ours = meta.is_file() && is_work(&entry.file_name().to_string_lossy());
            if is_ours && age(&meta, now).is_none_or(|age| age > kept) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Claim {
    /// Writes down what came of the work, for who waits. What is too large, or cannot be written, is done again by others.
    pub fn settle(mut self, result: &[u8]) {
        if result.len() <= self.largest && self.file.write_all(result).is_err() {
            let _ = self.file.set_len(0);
        }
        // Not left to the end of the process: one that is a copy of ours may hold the file open.
        let _ = self.file.unlock();
    }
}

/// Whether a file is called as a piece of work is.
fn is_work(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// How long ago a file was written; none where that lies in the future.
fn age(meta: &Metadata, now: SystemTime) -> Option<Duration> {
    now.duration_since(meta.modified().ok()?).ok()
}

#[cfg(test)]
mod tests;
