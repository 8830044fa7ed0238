//! A log read as it grows.

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

impl Follower {
    pub(super) fn new(log: RotatingLog) -> Result<Follower, FileError> {
        let mut current = followed(log.path())?;
        if let Some(current) = &mut current {
            current.offset = current.size()?;
        }
        Ok(Follower { log, current })
    }

    /// The lines that came since the last call. It does not wait for any.
    pub fn read(&mut self) -> Result<Vec<Vec<u8>>, FileError> {
        let mut lines = Vec::new();
        if let Some(current) = &mut self.current {
            current.read(&mut lines)?;
        }
        // What was the present file may have been moved by a rotation, or by several.
        let newer = match self.current.as_ref().map(|current| current.identity) {
            None => self.log.bounds.files.min(1),
            Some(identity) => self.age_of(identity)?,
        };
        for age in (0..newer).rev() {
            if let Some(mut next) = followed(self.log.aged(age))? {
                next.read(&mut lines)?;
                self.current = Some(next);
            }
        }
        Ok(lines)
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
    fn size(&self) -> Result<u64, FileError> {
        self.file.metadata().map(|meta| meta.len()).map_err(|error| failed("inspect", &self.path, error))
    }

    fn read(&mut self, lines: &mut Vec<Vec<u8>>) -> Result<(), FileError> {
        let mut chunk = vec![0; CHUNK];
        if self.size()? < self.offset {
            // Somebody emptied it.
            (self.offset, self.too_long) = (0, false);
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
