//! Reads a log backwards.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use rustix::fs::OFlags;

use super::LONGEST_LINE;
use crate::file::{FileError, failed, open_regular};

/// Bytes per read; each next read of a longer line is twice as large.
const CHUNK: u64 = 64 << 10;

/// The lines of a log, newest first.
///
/// All files are opened at the start, so a rotation meanwhile neither hides a line nor shows it twice. They are read
/// from their end, only as far as lines are requested.
#[derive(Debug)]
pub struct Lines {
    /// Newest last.
    files: Vec<UnreadPart>,
    most: u64,
    /// Lines that are not returned yet, in the order of the file.
    bytes: Vec<u8>,
    passed_over: bool,
}

/// The unread part of a file.
#[derive(Debug)]
struct UnreadPart {
    path: PathBuf,
    file: File,
    /// Where the unread part begins: the start of the file, or later if the file is too long.
    start: u64,
    end: u64,
}

impl Lines {
    /// Opens these files, newest first.
    pub(super) fn open(paths: impl Iterator<Item = PathBuf>, most: u64) -> Result<Lines, FileError> {
        let mut files = Vec::new();
        let mut seen: Vec<(u64, u64)> = Vec::new();
        // Begins with the newest file: a file that a rotation moves meanwhile is seen twice, but never missed.
        for path in paths {
            if let Some((file, meta)) = open_regular(&path, OFlags::NOFOLLOW)? {
                let identity = (meta.dev(), meta.ino());
                if !seen.contains(&identity) {
                    seen.push(identity);
                    let end = meta.len();
                    files.push(UnreadPart { path, file, start: end.saturating_sub(most), end });
                }
            }
        }
        files.reverse();
        Ok(Lines { files, most, bytes: Vec::new(), passed_over: false })
    }

    /// Whether older lines were skipped because a file is too long.
    pub fn has_passed_over(&self) -> bool {
        self.passed_over
    }

    /// The last line of the bytes read; `None` if more must be read to find its beginning.
    fn last_line(&mut self) -> Option<Vec<u8>> {
        if self.bytes.last() == Some(&b'\n') {
            self.bytes.pop();
        }
        let start = self.bytes.iter().rposition(|&byte| byte == b'\n')?;
        Some(self.bytes.split_off(start + 1))
    }

    /// The rest at the start of a file. If the file was cut, it is the end of a line and is not returned. A rest longer
    /// than any line is returned even then, because it may contain a whole line after other bytes.
    fn first_line(&mut self, is_cut: bool) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.bytes);
        self.passed_over |= is_cut;
        Some(line).filter(|line| !line.is_empty() && (!is_cut || line.len() as u64 > LONGEST_LINE))
    }

    /// Reads another part of the newest file with unread bytes.
    fn read(&mut self) -> Result<(), FileError> {
        let Some(unread) = self.files.last_mut() else { return Ok(()) };
        let held = u64::try_from(self.bytes.len()).unwrap_or(self.most);
        let size = CHUNK.max(held).min(unread.end - unread.start);
        let from = unread.end - size;
        let mut chunk = vec![0; usize::try_from(size).unwrap_or_default()];
        match unread.file.read_exact_at(&mut chunk, from) {
            // Another process truncated the file meanwhile.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                unread.end = unread.start;
                self.bytes.clear();
                return Ok(());
            }
            read => read.map_err(|error| failed("read", &unread.path, error))?,
        }
        unread.end = from;
        chunk.append(&mut self.bytes);
        self.bytes = chunk;
        Ok(())
    }
}

impl Iterator for Lines {
    type Item = Result<Vec<u8>, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(line) = self.last_line() {
                if line.is_empty() {
                    continue;
                }
                return Some(Ok(line));
            }
            let unread = self.files.last()?;
            if unread.end > unread.start {
                if let Err(error) = self.read() {
                    self.files.pop();
                    self.bytes.clear();
                    return Some(Err(error));
                }
                continue;
            }
            let is_cut = unread.start > 0;
            self.files.pop();
            if let Some(line) = self.first_line(is_cut) {
                return Some(Ok(line));
            }
        }
    }
}
