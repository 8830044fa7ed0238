//! A trail read backwards.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::file::{FileError, failed, open_regular};

/// The lines of a trail, newest first.
///
/// All files are opened at once, so a rotation meanwhile neither hides a line nor shows it twice.
#[derive(Debug)]
pub struct Lines {
    /// Newest last.
    files: Vec<(PathBuf, File)>,
    most: u64,
    bytes: Vec<u8>,
    end: usize,
}

impl Lines {
    /// Opens these files, newest first.
    pub(super) fn open(paths: impl Iterator<Item = PathBuf>, most: u64) -> Result<Lines, FileError> {
        let mut files = Vec::new();
        let mut seen: Vec<(u64, u64)> = Vec::new();
        // From the newest on: what a rotation moves meanwhile is met twice, and never missed.
        for path in paths {
            if let Some((file, meta)) = open_regular(&path, OFlags::NOFOLLOW)? {
                use std::os::unix::fs::MetadataExt;
                let identity = (meta.dev(), meta.ino());
                if !seen.contains(&identity) {
                    seen.push(identity);
                    files.push((path, file));
                }
            }
        }
        files.reverse();
        Ok(Lines { files, most, bytes: Vec::new(), end: 0 })
    }

    fn last_line(&mut self) -> Vec<u8> {
        let text = self.bytes.get(..self.end).unwrap_or_default();
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let start = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let line = text.get(start..).unwrap_or_default().to_vec();
        self.end = start;
        line
    }

    /// Reads the end of a file, which is all of it unless somebody else has written to it.
    fn load(&mut self, path: &Path, mut file: File) -> Result<(), FileError> {
        let fail = |error| failed("read", path, error);
        let size = file.seek(SeekFrom::End(0)).map_err(fail)?;
        let start = size.saturating_sub(self.most);
        file.seek(SeekFrom::Start(start)).map_err(fail)?;
        self.bytes.clear();
        file.take(self.most).read_to_end(&mut self.bytes).map_err(fail)?;
        if start > 0 {
            // The first line began before.
            let rest = self.bytes.iter().position(|&byte| byte == b'\n').map_or(self.bytes.len(), |at| at + 1);
            self.bytes.drain(..rest);
        }
        self.end = self.bytes.len();
        Ok(())
    }
}

impl Iterator for Lines {
    type Item = Result<Vec<u8>, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.end > 0 {
                let line = self.last_line();
                if line.is_empty() {
                    continue;
                }
                return Some(Ok(line));
            }
            let (path, file) = self.files.pop()?;
            if let Err(error) = self.load(&path, file) {
                self.end = 0;
                return Some(Err(error));
            }
        }
    }
}
