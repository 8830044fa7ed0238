//! Shares work that several processes are asked for at the same time: the first process does it, and the others read
//! its result.
//!
//! Each piece of work has its own file, named by a digest of everything that the work depends on. The process that does
//! the work holds a lock on that file and writes the result into it. A process that comes meanwhile waits for the lock;
//! a process that comes soon after reads the result. A result that is old, damaged, or open to other users is ignored,
//! and the work is done again.

use std::fs::{self, File, Metadata};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::digest::Digest;
use crate::file::{FileError, failed, open_lock, wait_for};
use crate::owner::current_uid;

/// A file without a result is removed after this long: no agent waits longer.
const ABANDONED: Duration = Duration::from_mins(15);
/// On average, one of this many claims also removes old files.
const SWEEP_EVERY: u8 = 16;

/// Where pieces of work are claimed.
#[derive(Clone, Copy, Debug)]
pub struct Claims<'a> {
    /// The folder of their files, which holds nothing else.
    pub folder: &'a Path,
    /// How long a result is valid.
    pub fresh: Duration,
    /// The most bytes of one result that are kept.
    pub largest: usize,
}

/// Which process does a piece of work.
#[derive(Debug)]
pub enum Turn {
    /// This process does it; others wait until the claim is settled or dropped.
    First(Claim),
    /// Another process has just done it, with this result.
    Done(Vec<u8>),
}

/// The right to do a piece of work.
#[derive(Debug)]
pub struct Claim {
    file: File,
    largest: usize,
}

impl Claims<'_> {
    /// Claims a piece of work, or waits at most about `patience` for the process that is already doing it.
    ///
    /// After any failure, the caller does the work without a claim.
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
        // Another process removed the file while we waited for it; later processes would not find it.
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

    /// Removes old results and abandoned files. A file that cannot be removed does no harm.
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
    /// Writes the result for the waiting processes. They do the work again if the result is too large or cannot be
    /// written.
    pub fn settle(mut self, result: &[u8]) {
        if result.len() <= self.largest && self.file.write_all(result).is_err() {
            let _ = self.file.set_len(0);
        }
        // Unlocks here, because a forked copy of this process may keep the file open after this process ends.
        let _ = self.file.unlock();
    }
}

/// Whether a file has the name of a piece of work.
fn is_work(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// How long ago a file was written; `None` if its time lies in the future.
fn age(meta: &Metadata, now: SystemTime) -> Option<Duration> {
    now.duration_since(meta.modified().ok()?).ok()
}

#[cfg(test)]
mod tests;
