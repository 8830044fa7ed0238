//! Notices whether git is rewriting the files now. A checkout or a step of a rebase is one change; hooks that edit
//! files in the middle would disturb it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// An older lock was left behind by a git that died.
const PATIENCE: Duration = Duration::from_secs(30);
/// Git's own `.git` files are not longer.
const LONGEST: u64 = 4 << 10;

/// Watches whether git is at work in a repository.
#[derive(Debug, Default)]
pub(super) struct GitActivity {
    lock: Option<PathBuf>,
    since: Option<Instant>,
}

impl GitActivity {
    /// Watches the repository that a folder belongs to, if there is one.
    pub(super) fn of(folder: &Path) -> GitActivity {
        let folder = folder.ancestors().find_map(git_folder);
        GitActivity { lock: folder.map(|folder| folder.join("index.lock")), since: None }
    }

    /// Whether git is at work. After a time limit the answer is no.
    pub(super) fn is_busy(&mut self, now: Instant) -> bool {
        if !self.lock.as_ref().is_some_and(|lock| lock.exists()) {
            self.since = None;
            return false;
        }
        now.saturating_duration_since(*self.since.get_or_insert(now)) < PATIENCE
    }
}

/// The repository's uncommitted list of ignored files, which holds for all its work trees.
pub(super) fn exclude_file(root: &Path) -> Option<PathBuf> {
    let folder = git_folder(root)?;
    // In the folder of another work tree, this file names the shared folder.
    let bytes = ollm_store::read_bounded(&folder.join("commondir"), LONGEST).ok().flatten();
    let shared = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map(|text| folder.join(text.trim()));
    Some(shared.unwrap_or(folder).join("info/exclude"))
}

/// The folder of git's own files; in another work tree, a file names it.
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let own = folder.join(".git");
    let meta = fs::metadata(&own).ok()?;
    if meta.is_dir() {
        return Some(own);
    }
    let bytes = ollm_store::read_bounded(&own, LONGEST).ok()??;
    let text = String::from_utf8(bytes).ok()?;
    Some(folder.join(text.strip_prefix("gitdir:")?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_is_waited_for_but_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".git")).unwrap();
        fs::create_dir_all(folder.path().join("sub")).unwrap();
        let (mut git, now) = (GitActivity::of(&folder.path().join("sub")), Instant::now());
        assert!(!git.is_busy(now));
        fs::write(folder.path().join(".git/index.lock"), "").unwrap();
        assert!(git.is_busy(now));
        assert!(git.is_busy(now + PATIENCE / 2));
        assert!(!git.is_busy(now + PATIENCE));
        fs::remove_file(folder.path().join(".git/index.lock")).unwrap();
        assert!(!git.is_busy(now + PATIENCE));
    }

    #[test]
    fn a_further_work_tree_shares_what_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let (tree, own) = (folder.path().join("tree"), folder.path().join("main/.git/worktrees/tree"));
        fs::create_dir_all(&tree).unwrap();
        fs::create_dir_all(&own).unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        assert_eq!(exclude_file(&tree), Some(own.join("../../info/exclude")));
        assert_eq!(exclude_file(&folder.path().join("main")), Some(folder.path().join("main/.git/info/exclude")));
        assert_eq!(exclude_file(folder.path()), None);
    }

    #[test]
    fn a_further_work_tree_has_its_own_lock() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".git"), "gitdir: elsewhere/tree\n").unwrap();
        let git = GitActivity::of(folder.path());
        assert_eq!(git.lock, Some(folder.path().join("elsewhere/tree/index.lock")));
    }
}
