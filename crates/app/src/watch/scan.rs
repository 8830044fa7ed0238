//! One look at a whole tree: its files with their stamps, and its folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ollm_store::StatKey;

use super::rules::IgnoreRules;

/// The most files of one project that are watched.
pub(super) const MOST_FILES: usize = 200_000;

/// What there is below a folder.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) files: BTreeMap<PathBuf, StatKey>,
    pub(super) folders: Vec<PathBuf>,
    /// Whether there are more files than are watched.
    pub(super) is_cut: bool,
}

/// Looks at everything below a folder that is not ignored. `found` hears of each folder before it is listed, so that
/// nothing is missed that is made in it meanwhile. Links are not followed.
pub(super) fn scan(folder: &Path, rules: &mut IgnoreRules, mut found: impl FnMut(&Path)) -> Scan {
    let mut scan = Scan::default();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        found(&folder);
        rules.enter(&folder);
        // A folder that cannot be read has nothing that hooks could be told of.
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
