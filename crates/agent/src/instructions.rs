//! A project's own instructions for agents: which files there are, how much of them is read, and which were read already.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files with instructions, the first of a folder counts.
const NAMES: &[&str] = &["AGENTS.md", "CLAUDE.md", "GEMINI.md"];
/// Larger files are no instructions.
const LARGEST: u64 = 1 << 20;
/// The most bytes of one file that the model reads, and of all of them.
const LONGEST: usize = 16 << 10;
const LONGEST_OF_ALL: usize = 48 << 10;

/// The instructions that were read so far.
#[derive(Clone, Debug)]
pub(crate) struct Instructions {
    seen: BTreeSet<PathBuf>,
    left: usize,
}

/// The instructions of one folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// Whether more is in the file than is read.
    pub(crate) cut: bool,
}

impl Default for Instructions {
    fn default() -> Instructions {
        Instructions { seen: BTreeSet::new(), left: LONGEST_OF_ALL }
    }
}

impl Instructions {
    /// Counts a folder's instructions as read.
    pub(crate) fn skip(&mut self, folder: &Path) {
        self.seen.insert(folder.to_owned());
    }

    /// The instructions of a folder, if it has some that were not read yet; at most `most` bytes of them.
    pub(crate) fn read(&mut self, folder: &Path, most: usize) -> Option<Found> {
        if self.left == 0 || !self.seen.insert(folder.to_owned()) {
            return None;
        }
        let (path, text) = NAMES.iter().find_map(|name| text_of(folder, name))?;
        let most = most.min(LONGEST).min(self.left);
        let whole = text.trim();
        let kept = whole.get(..whole.floor_char_boundary(most)).unwrap_or_default().to_owned();
        self.left -= kept.len();
        let cut = kept.len() < whole.len();
        (!kept.is_empty()).then_some(Found { path, text: kept, cut })
    }

    /// The instructions of the folders between a root and a path below it that were not read yet, outermost first.
    pub(crate) fn on_the_way(&mut self, root: &Path, path: &Path, most: usize) -> Vec<Found> {
        let Ok(below) = path.strip_prefix(root) else { return Vec::new() };
        let mut folder = root.to_owned();
        let mut found = Vec::new();
        for part in below.components() {
            folder.push(part);
            if !folder.is_dir() {
                break;
            }
            found.extend(self.read(&folder, most));
        }
        found
    }
}

/// The text of such a file. A link may lead to another file of the folder, and nowhere else: who wrote the project would
/// have the model read files of the person.
fn text_of(folder: &Path, name: &str) -> Option<(PathBuf, String)> {
    let path = folder.join(name);
    let real = path.canonicalize().ok()?;
    if !real.starts_with(folder.canonicalize().ok()?) {
        return None;
    }
    let bytes = ollm_store::read_bounded(&real, LARGEST).ok()??;
    Some((path, String::from_utf8(bytes).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_first_file_of_a_folder_counts_once_and_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("CLAUDE.md"), "be quick").unwrap();
        let mut instructions = Instructions::default();
        let found = instructions.read(folder.path(), 5).unwrap();
        assert_eq!((found.text.as_str(), found.cut), ("be qu", true));
        assert_eq!(instructions.read(folder.path(), 5), None, "it was read");
        fs::write(folder.path().join("AGENTS.md"), "be good").unwrap();
        let found = Instructions::default().read(folder.path(), 99).unwrap();
        assert_eq!((found.text.as_str(), found.cut), ("be good", false));
    }

    #[test]
    fn a_link_that_leads_out_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("project")).unwrap();
        fs::write(folder.path().join("secret"), "s").unwrap();
        symlink("../secret", folder.path().join("project/AGENTS.md")).unwrap();
        assert_eq!(Instructions::default().read(&folder.path().join("project"), 99), None);
        fs::write(folder.path().join("project/GEMINI.md"), "be good").unwrap();
        fs::remove_file(folder.path().join("project/AGENTS.md")).unwrap();
        symlink("GEMINI.md", folder.path().join("project/AGENTS.md")).unwrap();
        assert_eq!(Instructions::default().read(&folder.path().join("project"), 99).unwrap().text, "be good");
    }

    #[test]
    fn all_of_them_together_are_bounded_and_those_on_the_way_come_outermost_first() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b/c/d/e/f");
        fs::create_dir_all(&deep).unwrap();
        for folder in deep.ancestors().take(6) {
            fs::write(folder.join("AGENTS.md"), "x".repeat(LONGEST)).unwrap();
        }
        let mut instructions = Instructions::default();
        let found = instructions.on_the_way(folder.path(), &deep.join("file"), usize::MAX);
        assert_eq!(found.iter().map(|one| one.text.len()).sum::<usize>(), LONGEST_OF_ALL);
        assert_eq!(found[0].path, folder.path().join("a/AGENTS.md"));
        assert!(instructions.on_the_way(Path::new("/elsewhere"), &deep, 9).is_empty());
    }
}
