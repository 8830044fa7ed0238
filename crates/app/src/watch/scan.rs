//! Scans a whole tree: its files with their stamps, and its folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ollm_store::StatKey;

use super::rules::IgnoreRules;

/// The most files of one project that are watched.
pub(super) const MOST_FILES: usize = 200_000;

/// The files and folders below a folder.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) files: BTreeMap<PathBuf, StatKey>,
    pub(super) folders: Vec<PathBuf>,
    /// Whether some files are left out because there are too many.
    pub(super) is_cut: bool,
}

/// Scans everything below a folder that is not ignored. `found` receives each folder before it is listed, so that no
/// file made meanwhile is missed. Links are not followed.
pub(super) fn scan(folder: &Path, rules: &mut IgnoreRules, mut found: impl FnMut(&Path)) -> Scan {
    let mut scan = Scan::default();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        found(&folder);
        rules.enter(&folder);
        // In a folder that cannot be read, no file can be told to hooks.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            if rules.ignores(&path, kind.is_dir()) {
                continue;
            }
            if kind.is_dir() {
                open.push(path);
            } else if scan.files.len() >= MOST_FILES {
                scan.is_cut = true;
            } else if let (true, Ok(meta)) = (kind.is_file(), entry.metadata()) {
                scan.files.insert(path, StatKey::of(&meta));
            }
        }
        scan.folders.push(folder);
    }
    scan
}
