//! A project's own instructions for agents: finds the files, limits how much is read, and remembers which were read.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use ollm_store::raw::open_regular;
use rustix::fs::OFlags;

/// File names of instructions; only the first in a folder is read.
const NAMES: &[&str] = &["AGENTS.md", "CLAUDE.md", "GEMINI.md"];
/// The most bytes of one file that the model reads, and of all of them.
const LONGEST: usize = 16 << 10;
const LONGEST_OF_ALL: usize = 48 << 10;

/// The instructions read so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instructions {
    seen: BTreeSet<PathBuf>,
    /// Their bytes.
    used: usize,
}

/// The instructions of one folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstructionFile {
    pub(crate) path: PathBuf,
    /// Empty if there is no space for any of it.
    pub(crate) text: String,
    /// Whether the file holds more than was read.
    pub(crate) cut: bool,
}

impl Instructions {
    /// Counts a folder's instructions as read.
    pub(crate) fn skip(&mut self, folder: &Path) {
        self.seen.insert(folder.to_owned());
    }

    /// Counts a file as read, of which this many bytes are in the conversation.
    pub(crate) fn recall(&mut self, file: &Path, bytes: usize) {
        self.seen.extend(file.parent().map(Path::to_owned));
        self.used += bytes;
    }

    /// The instructions of a folder, if they exist and were not read yet. The caller must still [fit](Self::fit) them.
    pub(crate) fn read(&mut self, folder: &Path) -> Option<InstructionFile> {
        let is_new = self.seen.insert(folder.to_owned());
        NAMES.iter().filter(|_| is_new).find_map(|name| read(folder, name))
    }

    /// Cuts instructions so that all together have at most `most` bytes.
    pub(crate) fn fit(&mut self, mut found: InstructionFile, most: usize) -> InstructionFile {
        let left = most.min(LONGEST_OF_ALL).saturating_sub(self.used);
        let kept = found.text.floor_char_boundary(left.min(LONGEST));
        found.cut |= kept < found.text.len();
        found.text.truncate(kept);
        self.used += kept;
        found
    }

    /// The instructions of the folders between a root and a path below it that were not read yet, outermost first.
    pub(crate) fn on_the_way(&mut self, root: &Path, path: &Path) -> Vec<InstructionFile> {
        let Ok(below) = path.strip_prefix(root) else { return Vec::new() };
        let mut folder = root.to_owned();
        let mut found = Vec::new();
        for part in below.components() {
            folder.push(part);
            if !folder.is_dir() {
                break;
            }
            found.extend(self.read(&folder));
        }
        found
    }
}

/// The beginning of such a file. A link may lead only to another file inside the folder. Otherwise the author of a
/// project could make the model read the person's private files.
fn read(folder: &Path, name: &str) -> Option<InstructionFile> {
    let path = folder.join(name);
    let real = path.canonicalize().ok()?;
    if !real.starts_with(folder.canonicalize().ok()?) {
        return None;
    }
    let (file, data) = open_regular(&real, OFlags::NOFOLLOW).ok()??;
    let mut bytes = Vec::new();
    file.take(LONGEST as u64).read_to_end(&mut bytes).ok()?;
    let cut = data.len() > bytes.len() as u64;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim().trim_end_matches(if cut { '\u{fffd}' } else { ' ' }).to_owned();
    (!text.is_empty()).then_some(InstructionFile { path, text, cut })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn read_all(instructions: &mut Instructions, folder: &Path, most: usize) -> Option<InstructionFile> {
        let found = instructions.read(folder)?;
        Some(instructions.fit(found, most))
    }

    #[test]
    fn a_file_that_is_long_or_no_utf_8_is_read_as_far_as_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("AGENTS.md"), "é".repeat(1 << 20)).unwrap();
        let found = read_all(&mut Instructions::default(), folder.path(), usize::MAX).unwrap();
        assert_eq!((found.text.len(), found.cut), (LONGEST, true));
        fs::write(folder.path().join("AGENTS.md"), b"be g\xf6od").unwrap();
        let found = read_all(&mut Instructions::default(), folder.path(), usize::MAX).unwrap();
        assert_eq!((found.text.as_str(), found.cut), ("be g\u{fffd}od", false));
    }

    #[test]
    fn the_first_file_of_a_folder_counts_once_and_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("CLAUDE.md"), "be quick").unwrap();
        let mut instructions = Instructions::default();
        let found = read_all(&mut instructions, folder.path(), 5).unwrap();
        assert_eq!((found.text.as_str(), found.cut), ("be qu", true));
        assert_eq!(instructions.read(folder.path()), None, "it was read");
        fs::write(folder.path().join("AGENTS.md"), "be good").unwrap();
        let found = Instructions::default().read(folder.path()).unwrap();
        assert_eq!((found.text.as_str(), found.cut), ("be good", false));
    }

    #[test]
    fn a_link_that_leads_out_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("project")).unwrap();
        fs::write(folder.path().join("secret"), "s").unwrap();
        symlink("../secret", folder.path().join("project/AGENTS.md")).unwrap();
        assert_eq!(Instructions::default().read(&folder.path().join("project")), None);
        fs::write(folder.path().join("project/GEMINI.md"), "be good").unwrap();
        fs::remove_file(folder.path().join("project/AGENTS.md")).unwrap();
        symlink("GEMINI.md", folder.path().join("project/AGENTS.md")).unwrap();
        assert_eq!(Instructions::default().read(&folder.path().join("project")).unwrap().text, "be good");
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
        let found = instructions.on_the_way(folder.path(), &deep.join("file"));
        let found: Vec<_> = found.into_iter().map(|one| instructions.fit(one, usize::MAX)).collect();
        assert_eq!(found.iter().map(|one| one.text.len()).sum::<usize>(), LONGEST_OF_ALL);
        assert_eq!(found[0].path, folder.path().join("a/AGENTS.md"));
        assert!(instructions.on_the_way(Path::new("/elsewhere"), &deep).is_empty());
    }
}
