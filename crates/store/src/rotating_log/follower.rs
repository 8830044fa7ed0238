//! A log read as it grows.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use rustix::fs::OFlags;

use super::{LONGEST_LINE, RotatingLog};
use crate::file::{FileError, failed, open_regular};

/// What is read at once.
const CHUNK: usize = 64 << 10;

/// The lines that come to a log from now on, oldest first, across rotations.
#[derive(Debug)]
pub struct Follower {
    log: RotatingLog,
    current: Option<Followed>,
    /// The file before it, which is read once more.
    before: Option<Followed>,
    /// Files that are older than the present one, as they were last seen: a clock that jumps does not tell which these are.
    older: VecDeque<Content>,
}

/// A file and how far it was read.
#[derive(Debug)]
struct Followed {
    path: PathBuf,
    file: File,
    identity: (u64, u64),
    offset: u64,
    /// A line whose end is not written yet.
    partial: Vec<u8>,
    /// The line at hand is longer than lines are; all of it is passed over.
    too_long: bool,
}

/// A file with what is in it: the number of one that was removed is soon another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content {
    identity: (u64, u64),
    size: u64,
    modified: (i64, i64),
}

impl Follower {
    pub(super) fn new(log: RotatingLog) -> Result<Follower, FileError> {
        let mut follower = Follower { log, current: None, before: None, older: VecDeque::new() };
        for age in 0..follower.log.bounds.files {
            // Where the present file is missing, a rotation is under way.
            let Some(mut found) = followed(follower.log.aged(age))? else { continue };
            if follower.current.is_some() {
                follower.older.extend(found.content());
            } else {
                found.offset = found.size()?;
                follower.current = Some(found);
            }
        }
        follower.older.make_contiguous().reverse();
        Ok(follower)
    }

    /// The lines that came since the last call. It does not wait for any.
    pub fn read(&mut self) -> Result<Vec<Vec<u8>>, FileError> {
        let (mut lines, most) = (Vec::new(), self.log.longest_file());
        if let Some(mut before) = self.before.take() {
            before.read(&mut lines, most)?;
            self.put_behind(&before);
        }
        loop {
            if let Some(current) = &mut self.current {
                current.read(&mut lines, most)?;
            }
            let Some(mut next) = self.next()? else { return Ok(lines) };
            if let Some(mut current) = self.current.take() {
                // Lines that came to it before the rotation, and those of writers who have not noticed yet.
                current.read(&mut lines, most)?;
                if let Some(before) = self.before.replace(current) {
                    self.put_behind(&before);
                }
            }
            next.read(&mut lines, most)?;
            self.current = Some(next);
        }
    }

    /// The file after the one that is followed: a rotation, or several, may have moved that.
    fn next(&self) -> Result<Option<Followed>, FileError> {
        loop {
            let age =
                self.current.as_ref().map_or(Ok(self.log.bounds.files), |current| self.age_of(current.identity))?;
            if age == self.log.bounds.files {
                return self.oldest();
            }
            let Some(newer) = age.checked_sub(1) else { return Ok(None) };
            let next = followed(self.log.aged(newer))?;
            // A rotation in between has moved both by one; one that is under way leaves a gap.
            if self.current.as_ref().map(|current| self.age_of(current.identity)).transpose()? == Some(age) {
                return Ok(next);
            }
        }
    }

    /// The oldest file that is newer than the one that was followed and has been removed, if one was.
    fn oldest(&self) -> Result<Option<Followed>, FileError> {
        let before = self.before.as_ref().and_then(Followed::content);
        let is_newer = |next: &Followed| {
            next.content().is_none_or(|content| Some(content) != before && !self.older.contains(&content))
        };
        let mut age = self.log.bounds.files;
        while let Some(newer) = age.checked_sub(1) {
            let next = followed(self.log.aged(newer))?.filter(is_newer);
            age = match next {
                // A rotation in between has moved an older one behind us.
                Some(next) if self.age_of(next.identity)? != newer => self.log.bounds.files,
                Some(next) => return Ok(Some(next)),
                None => newer,
            };
        }
        Ok(None)
    }

    /// Remembers a file that is not read any more, and as many before it as there can be.
    fn put_behind(&mut self, file: &Followed) {
        self.older.extend(file.content());
        self.older.drain(..self.older.len().saturating_sub(self.log.bounds.files));
    }

    /// How many rotations ago this file was the present one; all of them if it has been removed.
    fn age_of(&self, identity: (u64, u64)) -> Result<usize, FileError> {
        for age in 0..self.log.bounds.files {
            if let Some((_, meta)) = open_regular(&self.log.aged(age), OFlags::NOFOLLOW)?
                && (meta.dev(), meta.ino()) == identity
            {
                return Ok(age);
            }
        }
        Ok(self.log.bounds.files)
    }
}

fn followed(path: PathBuf) -> Result<Option<Followed>, FileError> {
    let Some((file, meta)) = open_regular(&path, OFlags::NOFOLLOW)? else { return Ok(None) };
    let identity = (meta.dev(), meta.ino());
    Ok(Some(Followed { path, file, identity, offset: 0, partial: Vec::new(), too_long: false }))
}

impl Followed {
    fn content(&self) -> Option<Content> {
        let meta = self.file.metadata().ok()?;
        let modified = (meta.mtime(), meta.mtime_nsec());
        Some(Content { identity: self.identity, size: meta.len(), modified })
    }

    fn size(&self) -> Result<u64, FileError> {
        self.file.metadata().map(|meta| meta.len()).map_err(|error| failed("inspect", &self.path, error))
    }

    /// Reads what came, and of more than a file may hold only the end.
    fn read(&mut self, lines: &mut Vec<Vec<u8>>, most: u64) -> Result<(), FileError> {
        let mut chunk = vec![0; CHUNK];
        let size = self.size()?;
        if size < self.offset {
            // Somebody emptied it.
            (self.offset, self.too_long) = (0, false);
            self.partial.clear();
        }
        if size - self.offset > most {
            (self.offset, self.too_long) = (size - most, true);
            self.partial.clear();
        }
        loop {
            let read = self.file.read_at(&mut chunk, self.offset);
            let read = read.map_err(|error| failed("read", &self.path, error))?;
            if read == 0 {
                return Ok(());
            }
            self.offset += read as u64;
            for part in chunk.get(..read).unwrap_or_default().split_inclusive(|&byte| byte == b'\n') {
                self.take(part, lines);
            }
        }
    }

    fn take(&mut self, part: &[u8], lines: &mut Vec<Vec<u8>>) {
        let (text, is_end) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
        if self.partial.len() + text.len() > usize::try_from(LONGEST_LINE).unwrap_or(usize::MAX) {
            self.too_long = true;
            self.partial.clear();
        }
        if !self.too_long {
            self.partial.extend_from_slice(text);
        }
        if is_end {
            let line = std::mem::take(&mut self.partial);
            let is_whole = !std::mem::take(&mut self.too_long);
            lines.extend(Some(line).filter(|line| is_whole && !line.is_empty()));
        }
    }
}
