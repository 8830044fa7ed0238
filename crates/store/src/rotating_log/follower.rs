//! Reads a log while it grows.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use rustix::fs::OFlags;

use super::{LONGEST_LINE, RotatingLog};
use crate::file::{FileError, failed, open_regular};

/// Bytes per read.
const CHUNK: usize = 64 << 10;

/// The lines that are added to a log from now on, oldest first, across rotations.
#[derive(Debug)]
pub struct Follower {
    log: RotatingLog,
    current: Option<FollowedFile>,
    /// The previous file, which is read once more.
    before: Option<FollowedFile>,
    /// Files older than the present one, in the state last seen. Modification times cannot tell them apart, because a
    /// clock may jump.
    older: VecDeque<Content>,
    /// Whether the followed file had been removed before the next one was found.
    has_gap: bool,
}

/// A file and how far it was read.
#[derive(Debug)]
struct FollowedFile {
    path: PathBuf,
    file: File,
    identity: (u64, u64),
    offset: u64,
    /// A line whose end is not written yet.
    partial: Vec<u8>,
    /// Whether the current line is too long; all of it is skipped.
    too_long: bool,
}

/// A file and its content, because the inode of a removed file is soon reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content {
    identity: (u64, u64),
    size: u64,
    modified: (i64, i64),
}

impl Follower {
    pub(super) fn new(log: RotatingLog) -> Result<Follower, FileError> {
        let mut follower = Follower { log, current: None, before: None, older: VecDeque::new(), has_gap: false };
        for age in 0..follower.log.bounds.files {
            // If the present file is missing, a rotation is under way.
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

    /// The lines since the last call; it waits for none.
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
                // Reads lines that came before the rotation, and lines of writers that have not noticed it yet.
                current.read(&mut lines, most)?;
                if let Some(before) = self.before.replace(current) {
                    self.put_behind(&before);
                }
            }
            next.read(&mut lines, most)?;
            self.current = Some(next);
        }
    }

    /// Whether files may have been created and removed unread since the last call, so that lines are missing.
    pub fn has_gap(&mut self) -> bool {
        std::mem::take(&mut self.has_gap)
    }

    /// The file after the followed one, which one or more rotations may have moved.
    fn next(&mut self) -> Result<Option<FollowedFile>, FileError> {
        loop {
            let age =
                self.current.as_ref().map_or(Ok(self.log.bounds.files), |current| self.age_of(current.identity))?;
            if age == self.log.bounds.files {
                let oldest = self.oldest()?;
                self.has_gap |= self.current.is_some() && oldest.is_some();
                return Ok(oldest);
            }
            let Some(newer) = age.checked_sub(1) else { return Ok(None) };
            let next = followed(self.log.aged(newer))?;
            // A rotation in between has moved both files by one; during a rotation a file may be missing.
            if self.current.as_ref().map(|current| self.age_of(current.identity)).transpose()? == Some(age) {
                return Ok(next);
            }
        }
    }

    /// If the followed file was removed, the oldest file that is newer than it.
    fn oldest(&self) -> Result<Option<FollowedFile>, FileError> {
        let before = self.before.as_ref().and_then(FollowedFile::content);
        let is_newer = |next: &FollowedFile| {
            next.content().is_none_or(|content| Some(content) != before && !self.older.contains(&content))
        };
        let mut age = self.log.bounds.files;
        while let Some(newer) = age.checked_sub(1) {
            let next = followed(self.log.aged(newer))?.filter(is_newer);
            age = match next {
                // A rotation in between has moved an older file behind this position.
                Some(next) if self.age_of(next.identity)? != newer => self.log.bounds.files,
                Some(next) => return Ok(Some(next)),
                None => newer,
            };
        }
        Ok(None)
    }

    /// Remembers a file that is no longer read, and as many earlier ones as the log can hold.
    fn put_behind(&mut self, file: &FollowedFile) {
        self.older.extend(file.content());
        self.older.drain(..self.older.len().saturating_sub(self.log.bounds.files));
    }

    /// How many rotations ago this file was the present one; the number of all files if it has been removed.
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

fn followed(path: PathBuf) -> Result<Option<FollowedFile>, FileError> {
    let Some((file, meta)) = open_regular(&path, OFlags::NOFOLLOW)? else { return Ok(None) };
    let identity = (meta.dev(), meta.ino());
    Ok(Some(FollowedFile { path, file, identity, offset: 0, partial: Vec::new(), too_long: false }))
}

impl FollowedFile {
    fn content(&self) -> Option<Content> {
        let meta = self.file.metadata().ok()?;
        let modified = (meta.mtime(), meta.mtime_nsec());
        Some(Content { identity: self.identity, size: meta.len(), modified })
    }

    fn size(&self) -> Result<u64, FileError> {
        self.file.metadata().map(|meta| meta.len()).map_err(|error| failed("inspect", &self.path, error))
    }

    /// Reads the new lines; of more than a file may hold, only the end.
    fn read(&mut self, lines: &mut Vec<Vec<u8>>, most: u64) -> Result<(), FileError> {
        let mut chunk = vec![0; CHUNK];
        let size = self.size()?;
        if size < self.offset {
            // Another process truncated the file.
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
