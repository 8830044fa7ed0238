//! Results too large for a model, kept whole for whoever wants to look: owner-only files, a bounded number of them, and
//! none larger than a bound.

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
    /// Files beyond this number are removed, the oldest first.
    pub most_files: usize,
    /// Files that take more than this together likewise, but for the newest.
    pub most_bytes: u64,
    /// Larger results are cut.
    pub largest: usize,
    /// What must not be in them.
    pub redactor: Arc<Redactor>,
}

/// Why a result was not kept.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SpillError(#[from] FileError);

impl Spill {
    /// Keeps at most 50 results of 128 MiB, and of 512 MiB together, in a folder, and of the secrets in them none that
    /// the redactor knows. What a message can hold fits in, also when it is written for people.
    pub fn new(folder: impl Into<PathBuf>, redactor: Arc<Redactor>) -> Spill {
        Spill { folder: folder.into(), most_files: 50, most_bytes: 512 << 20, largest: 128 << 20, redactor }
    }

    /// Keeps a result and says where, and whether all of it is there. The same bytes are kept once.
    pub fn keep(&self, bytes: &[u8]) -> Result<(PathBuf, bool), SpillError> {
        let bytes = self.redactor.redact(bytes);
        let kept = bytes.get(..bytes.len().min(self.largest)).unwrap_or_default();
        let hash = digest_bytes(&bytes).hex();
        let path = self.folder.join(format!("{START}{}", hash.get(..16).unwrap_or_default()));
        write_atomic(&path, kept)?;
        self.tidy(&path, kept.len());
        Ok((path, kept.len() == bytes.len()))
    }

    /// Removes the oldest files; what cannot be removed stays, and is tried again next time.
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
