//! Whether git is rewriting the files right now. A checkout or a step of a rebase is one change: hooks that edit files in
//! the middle of it would be in its way.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A lock that is older was left behind by a git that died.
const PATIENCE: Duration = Duration::from_secs(30);
/// A longer `.git` file is not git's.
const LONGEST: u64 = 4 << 10;

/// Looks whether git is at work in a repository.
#[derive(Debug, Default)]
pub(super) struct GitActivity {
    lock: Option<PathBuf>,
    since: Option<Instant>,
}

impl GitActivity {
    /// In the repository that a folder belongs to, if it does.
    pub(super) fn of(folder: &Path) -> GitActivity {
        let folder = folder.ancestors().find_map(git_folder);
        GitActivity { lock: folder.map(|folder| folder.join("index.lock")), since: None }
    }

    /// Whether git is at work; one that seems to be for too long is not waited for.
    pub(super) fn is_busy(&mut self, now: Instant) -> bool {
        if !self.lock.as_ref().is_some_and(|lock| lock.exists()) {
            self.since = None;
            return false;
        }
        now.saturating_duration_since(*self.since.get_or_insert(now)) < PATIENCE
    }
}

/// The folder that git keeps its own files in; a further work tree names it in a file.
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
    fn a_further_work_tree_has_its_own_lock() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".git"), "gitdir: elsewhere/tree\n").unwrap();
        let git = GitActivity::of(folder.path());
        assert_eq!(git.lock, Some(folder.path().join("elsewhere/tree/index.lock")));
    }
}
