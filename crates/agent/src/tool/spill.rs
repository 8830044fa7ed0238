//! Results that are too long for the model: it reads the beginning and the end, and may read the rest from a file.

use std::fs;
use std::path::{Path, PathBuf};

/// How many whole results are kept.
const MOST_KEPT: usize = 50;

/// A text of at most about `most` bytes. Of a longer one it is the beginning and the end, and where all of it is.
pub(crate) fn fit(text: &str, most: usize, what: &str, folder: &Path) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = text.get(..text.floor_char_boundary(most / 2)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len() - most / 2)..).unwrap_or_default();
    let place = match spill(text.as_bytes(), what, folder) {
        Ok(path) => format!("all of it is in {}; read it in parts with offset and limit", path.display()),
        Err(error) => format!("it could not be kept: {error}"),
    };
    format!("{head}\n[{} bytes left out; {place}]\n{tail}", text.len() - head.len() - tail.len())
}

fn spill(bytes: &[u8], what: &str, folder: &Path) -> Result<PathBuf, ollm_store::FileError> {
    let path = folder.join(format!("{what}-{}.txt", crate::time::unique()));
    ollm_store::write_atomic(&path, bytes)?;
    forget(folder);
    Ok(path)
}

/// Removes the oldest outputs when there are many.
fn forget(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files: Vec<_> =
        entries.flatten().filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    files.sort_unstable();
    let old = files.len().saturating_sub(MOST_KEPT);
    for (_, path) in files.into_iter().take(old) {
        // What cannot be removed now may be removed next time.
        let _ = fs::remove_file(path);
    }
}
