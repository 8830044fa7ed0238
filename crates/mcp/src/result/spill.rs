//! Keeps results that are too large for a model, so that people can look at them. The files are readable by their owner
//! only, limited in number, and limited in size.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ollm_store::{FileError, Redactor, digest_bytes, write_atomic};

/// What the names of our files begin with.
const START: &str = "result-";

/// A folder for results that are too large.
#[derive(Clone, Debug)]
pub struct Spill {
    /// The folder.
    pub folder: PathBuf,
    /// At most this many files are kept; the oldest are removed first.
    pub most_files: usize,
    /// At most this many bytes are kept in all; the oldest files are removed first, and the newest always stays.
    pub most_bytes: u64,
    /// The largest result that is kept whole; larger ones are cut.
    pub largest: usize,
    /// Removes secrets from the files.
    pub redactor: Arc<Redactor>,
}

/// Why a result was not kept.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SpillError(#[from] FileError);

impl Spill {
    /// Keeps at most 50 results of 128 MiB each, and 512 MiB together, in a folder. The redactor removes the secrets
    /// that it knows. Every result that fits into a message also fits into a file, even when it is written for people.
    pub fn new(folder: impl Into<PathBuf>, redactor: Arc<Redactor>) -> Spill {
        Spill { folder: folder.into(), most_files: 50, most_bytes: 512 << 20, largest: 128 << 20, redactor }
    }

    /// Keeps a result. Returns the path, and whether the file holds the whole result. The same bytes are kept only
    /// once.
    pub fn keep(&self, bytes: &[u8]) -> Result<(PathBuf, bool), SpillError> {
        let bytes = self.redactor.redact(bytes);
        let kept = bytes.get(..bytes.len().min(self.largest)).unwrap_or_default();
        let hash = digest_bytes(&bytes).hex();
        let path = self.folder.join(format!("{START}{}", hash.get(..16).unwrap_or_default()));
        write_atomic(&path, kept)?;
        self.tidy(&path, kept.len());
        Ok((path, kept.len() == bytes.len()))
    }

    /// Removes the oldest files. A file that cannot be removed is tried again next time.
    fn tidy(&self, newest: &Path, size: usize) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, PathBuf, u64)> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(START) && entry.path() != newest)
            .filter_map(|entry| entry.metadata().ok().map(|meta| (entry.path(), meta)))
            .map(|(path, meta)| (meta.modified().unwrap_or(UNIX_EPOCH), path, meta.len()))
            .collect();
        files.sort_unstable_by(|one, other| other.cmp(one));
        let mut together = size as u64;
        for (number, (_, path, size)) in files.into_iter().enumerate() {
            together = together.saturating_add(size);
            if number + 1 >= self.most_files || together > self.most_bytes {
                let _ = fs::remove_file(path);
            }
        }
    }
}
