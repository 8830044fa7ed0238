//! Turns touched paths into files that may have changed: one by one, or by comparing everything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ollm_store::StatKey;

use super::FileWatcher;
use super::cause::Chain;
use super::rules::{IgnoreRules, is_ignore_file};
use super::scan::MOST_FILES;
use crate::notifier::TouchedPaths;

/// How often everything is compared if the system cannot report touched paths.
pub(super) const POLL: Duration = Duration::from_secs(1);
/// Comparing everything may take at most one part in this many of the time.
const POLL_SHARE: u32 = 10;

impl FileWatcher {
    /// Finds the files that may have changed, from touched paths.
    pub(super) fn sort(&mut self, touched: TouchedPaths) {
        let changes_rules = touched.paths.keys().any(|path| is_ignore_file(path));
        if touched.is_incomplete || changes_rules {
            return self.compare_all();
        }
        let mut paths: Vec<_> = touched.paths.into_iter().collect();
        paths.sort();
        for (path, at) in paths {
            let chain = self.runs.cause(at);
            self.examine(&path, &chain);
        }
    }

    fn examine(&mut self, path: &Path, chain: &Chain) {
        let is_folder = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
        if self.folders.contains(path) && !is_folder {
            self.leave_folder(path, chain);
        }
        if self.baseline.contains(path) || (!is_folder && self.is_watched(path)) {
            self.queue.push(path.to_owned(), chain.clone());
        }
        if is_folder && path != self.root && self.is_watched(path) {
            self.enter_folder(path, chain);
        }
    }

    /// Whether a new path should be watched.
    pub(super) fn is_watched(&self, path: &Path) -> bool {
        let is_in = path.parent().is_some_and(|folder| self.folders.contains(folder));
        let is_folder = || fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
        is_in && !self.rules.ignores(path, is_folder()) && self.baseline.len() < MOST_FILES
    }

    /// Handles a folder that appeared or was made anew.
    fn enter_folder(&mut self, folder: &Path, chain: &Chain) {
        let found = self.scan(folder);
        let gone = self.baseline.below(folder).into_iter().filter(|path| !found.files.contains_key(path));
        let changed = found.files.iter().filter(|(path, key)| self.baseline.differs(path, key));
        let changed = changed.map(|(path, _)| path.clone());
        let paths: BTreeSet<PathBuf> = gone.chain(changed).collect();
        for path in paths {
            self.queue.push(path, chain.clone());
        }
    }

    /// Watches a folder that was made just now, so that a file in it counts at once.
    pub(super) fn enter_new_folder_of(&mut self, path: &Path) {
        let is_new = |folder: &&Path| folder.starts_with(&self.root) && !self.folders.contains(*folder);
        let Some(folder) = path.ancestors().skip(1).take_while(is_new).last() else { return };
        let is_folder = fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir());
        if is_folder && self.is_watched(folder) {
            let (found, now) = (self.scan(folder), SystemTime::now());
            // They are told in turn, as if the system had reported each.
            for file in found.files.into_keys() {
                self.touched.paths.entry(file).or_insert(now);
            }
        }
    }

    /// Handles a folder that is gone, with everything in it.
    fn leave_folder(&mut self, folder: &Path, chain: &Chain) {
        let from = self.folders.range::<Path, _>((Bound::Included(folder), Bound::Unbounded));
        let lost: Vec<PathBuf> = from.take_while(|path| path.starts_with(folder)).cloned().collect();
        for folder in lost {
            self.folders.remove(&folder);
            if let Some(notifier) = &mut self.notifier {
                notifier.unwatch(&folder);
            }
        }
        for path in self.baseline.below(folder) {
            self.queue.push(path, chain.clone());
        }
    }

    /// Compares everything with the baseline.
    fn compare_all(&mut self) {
        let began = Instant::now();
        let before = std::mem::replace(&mut self.rules, IgnoreRules::new(&self.root, &self.home));
        self.folders.clear();
        let found = self.scan(&self.root.clone());
        let mut changed = BTreeMap::new();
        for (path, key) in &found.files {
            if !self.baseline.contains(path) && was_ignored(&before, &self.root, path) {
                self.baseline.add(path.clone(), *key);
                self.unread.push(path.clone());
            } else if self.baseline.differs(path, key) {
                changed.insert(path.clone(), self.runs.cause(time_of(key)));
            }
        }
        // The time of a removal is unknown: hooks that ran since the last look may have removed the file.
        let latest = self.runs.latest_since(std::mem::replace(&mut self.looked_at, SystemTime::now()));
        for path in self.baseline.missing_in(&found.files) {
            // A file that is newly ignored is not gone.
            if path.is_file() && was_ignored(&self.rules, &self.root, &path) {
                self.baseline.remove(&path);
            } else {
                changed.insert(path, latest.clone());
            }
        }
        for (path, chain) in changed {
            self.queue.push(path, chain);
        }
        self.next_look = Instant::now() + POLL.max(began.elapsed() * POLL_SHARE);
    }
}

/// When the kernel says that a file was last changed.
pub(super) fn time_of(key: &StatKey) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(u64::try_from(key.ctime_ns).unwrap_or_default())
}

/// Whether rules ignore a file or a folder that contains it.
fn was_ignored(rules: &IgnoreRules, root: &Path, path: &Path) -> bool {
    let folders = path.ancestors().skip(1).take_while(|folder| *folder != root && folder.starts_with(root));
    rules.ignores(path, false) || folders.into_iter().any(|folder| rules.ignores(folder, true))
}
