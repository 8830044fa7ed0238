//! Notices changes of files by people, shells, servers and other programs, compares them with the earlier state, and
//! tells hooks.
//!
//! The system only says which paths were touched (`notifier`). Once these are quiet, each is compared with the
//! `baseline`: the state that hooks last heard of. So an editor may write a file in any way. A checkout of thousands of
//! files tells of each file once. If the system loses track or has no watches left, comparing everything finds the same
//! changes. Files that hooks and our own tools write update the baseline without an event.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use ollm_protocol::{Code, FileChange};
use ollm_store::StatKey;
use rustix::fs::FileType;
use rustix::stdio::{stderr, stdout};

use crate::error::AppError;
use crate::notifier::{Notifier, NotifyError, TouchedPaths};
use crate::wake_signal::WakeSignal;

mod baseline;
mod cause;
mod compare;
mod git;
mod late;
mod notes;
mod project;
mod queue;
mod rules;
mod run;
mod scan;
mod share;

use baseline::Baseline;
use cause::{Chain, HookRuns, TellTime};
use compare::time_of;
use git::GitActivity;
use queue::ChangeQueue;
use rules::IgnoreRules;
use scan::{MOST_FILES, Scan, scan};

pub use late::HookRun;
pub(crate) use late::LateEnds;
use late::WritingRun;
pub use notes::FileNote;
pub use project::ProjectWatch;
pub use run::{FILE_EVENTS, WatchListener, has_listener, watch_project};
pub use share::{WatchRole, is_watched};

/// After this many notices, no more are told.
const MOST_NOTICES: usize = 1000;
/// How soon to look again while something is going on.
const SOON: Duration = Duration::from_millis(25);
/// A folder that is missing for longer counts as gone.
const ABSENCE: Duration = Duration::from_secs(2);

/// Notices changes of a project's files.
pub struct FileWatcher {
    root: PathBuf,
    /// Our own folder.
    home: PathBuf,
    rules: IgnoreRules,
    baseline: Baseline,
    /// The watched folders, with the inode of the root.
    folders: BTreeSet<PathBuf>,
    inode: u64,
    /// `None` if everything is compared at intervals instead.
    notifier: Option<Notifier>,
    next_look: Instant,
    git: GitActivity,
    /// Paths that were touched and not compared yet.
    touched: TouchedPaths,
    /// The files that may have changed.
    queue: ChangeQueue,
    /// The files that hooks hear of after a pause, with the chain that led to each change.
    held: BTreeMap<PathBuf, Chain>,
    /// Files whose text was not read yet.
    unread: Vec<PathBuf>,
    runs: HookRuns,
    /// The file whose change was taken last, and the chain that led to it. The event's name of it may lack bytes that
    /// are not UTF-8.
    taken: (PathBuf, Chain),
    absent_since: Option<Instant>,
    /// Device and inode of the files that our own output goes to.
    own_output: Vec<(u64, u64)>,
    /// The time of the last comparison of everything.
    looked_at: SystemTime,
    notices: Vec<String>,
    /// The notices that the person has already got.
    told: BTreeSet<String>,
}

impl FileWatcher {
    /// Watches a project; `home` is our own folder, which is never watched.
    pub fn open(project: &Path, home: &Path) -> Result<FileWatcher, AppError> {
        let gone = |error: std::io::Error| AppError::new(Code::NoFolder, format!("{}: {error}", project.display()));
        let root = project.canonicalize().map_err(gone)?;
        let inode = fs::metadata(&root).map_err(gone)?.ino();
        let mut watcher = FileWatcher {
            rules: IgnoreRules::new(&root, home),
            git: GitActivity::of(&root),
            root,
            home: home.to_owned(),
            baseline: Baseline::default(),
            folders: BTreeSet::new(),
            inode,
            notifier: None,
            next_look: Instant::now(),
            touched: TouchedPaths::default(),
            queue: ChangeQueue::default(),
            held: BTreeMap::new(),
            unread: Vec::new(),
            runs: HookRuns::default(),
            taken: (PathBuf::new(), Chain::default()),
            absent_since: None,
            own_output: own_output(),
            looked_at: SystemTime::now(),
            notices: Vec::new(),
            told: BTreeSet::new(),
        };
        watcher.begin();
        Ok(watcher)
    }

    /// The watched folder, without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How many files are watched.
    pub fn file_count(&self) -> usize {
        self.baseline.len()
    }

    /// Whether everything is compared at intervals, because the system has no watches left.
    pub fn is_polling(&self) -> bool {
        self.notifier.is_none()
    }

    /// New notices for the person; each comes once.
    pub fn take_notices(&mut self) -> Vec<String> {
        self.notices.append(&mut self.rules.problems);
        let mut notices = std::mem::take(&mut self.notices);
        notices.retain(|notice| self.told.len() < MOST_NOTICES && self.told.insert(notice.clone()));
        notices
    }

    /// Reads files for later differences, for about this long; returns whether some are left.
    pub fn read_ahead(&mut self, time: Duration) -> bool {
        let began = Instant::now();
        while let Some(path) = self.unread.pop() {
            self.baseline.read(&path);
            if began.elapsed() >= time {
                break;
            }
        }
        !self.unread.is_empty()
    }

    /// Waits until something is touched, at most this long.
    pub fn wait(&self, patience: Duration) {
        match &self.notifier {
            Some(notifier) => notifier.wait(patience),
            None => std::thread::sleep(patience),
        }
    }

    /// Wakes this signal at every touch, and also at touches in a folder outside the project.
    pub(crate) fn wake(&mut self, wake: &WakeSignal, folder: Option<&Path>) {
        let Some(notifier) = &mut self.notifier else { return };
        notifier.wake(wake);
        let failed = folder.and_then(|folder| notifier.watch(folder).err());
        if let Some(error) = failed {
            self.fall_back(&error);
        }
    }

    /// How soon to look again if nothing is touched; `None` if nothing is going on.
    pub(crate) fn next_look(&self, now: Instant) -> Option<Duration> {
        let Some(notifier) = &self.notifier else {
            return Some(self.next_look.saturating_duration_since(now).max(SOON));
        };
        let is_busy = notifier.is_unsettled()
            || !(self.touched.is_empty() && self.held.is_empty())
            || self.has_changes()
            || self.absent_since.is_some();
        is_busy.then_some(SOON)
    }

    /// Checks whether touched paths are quiet; returns whether there is a change to take. Fails if the project is gone.
    pub fn look(&mut self, now: Instant) -> Result<bool, AppError> {
        if !self.exists(now)? {
            return Ok(false);
        }
        let touched = match &self.notifier {
            Some(notifier) => notifier.take(now),
            None => (now >= self.next_look).then(TouchedPaths::unknown),
        };
        if let Some(touched) = touched {
            self.touched.merge(touched);
        }
        if !self.touched.is_empty() && !self.git.is_busy(now) {
            let touched = std::mem::take(&mut self.touched);
            self.sort(touched);
        }
        if !self.has_changes() && self.runs.have_paused(SystemTime::now()) {
            self.tell_held();
        }
        Ok(self.has_changes())
    }

    /// The next change, if there is one.
    pub fn next_change(&mut self) -> Option<FileChange> {
        self.next_change_but(&mut |_| false)
    }

    /// Whether a file may have changed.
    pub(crate) fn has_changes(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether a file may have changed that need not wait.
    pub(crate) fn has_changes_but(&self, waits: &mut dyn FnMut(&Path) -> bool) -> bool {
        self.queue.has(waits)
    }

    /// Compares touched paths at once, before they are quiet.
    pub(crate) fn look_at_once(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.merge(self.notifier.as_ref().map_or_else(TouchedPaths::unknown, Notifier::take_all));
        self.sort(touched);
        self.tell_held();
    }

    /// Releases the changes that wait for a pause.
    pub(crate) fn tell_held(&mut self) {
        for (path, chain) in std::mem::take(&mut self.held) {
            self.queue.push(path, cause::after_pause(&chain));
        }
    }

    /// Makes the next look compare everything.
    pub(crate) fn compare_soon(&mut self) {
        self.touched.merge(TouchedPaths::unknown());
    }

    /// The next change of a file that need not wait; the others stay queued.
    pub(crate) fn next_change_but(&mut self, waits: &mut dyn FnMut(&Path) -> bool) -> Option<FileChange> {
        while let Some((path, chain)) = self.queue.pop(waits) {
            if notes::key_of(&path).is_some_and(|key| self.own_output.contains(&(key.dev, key.ino))) {
                continue;
            }
            let time = cause::tell_time(&path, &chain);
            if time != TellTime::Now {
                self.put_off(path, chain, time);
                continue;
            }
            // Observed before the comparison, so that no later state is missed.
            self.notifier.iter().for_each(|notifier| notifier.observe(&path));
            if let Some(change) = self.baseline.compare(&path, &self.root) {
                self.taken = (path, chain);
                return Some(change);
            }
            self.no_hook_ran(&path);
        }
        None
    }

    /// Delays or drops a change, so that hooks do not call one another without end.
    fn put_off(&mut self, path: PathBuf, chain: Chain, time: TellTime) {
        let why = format!("{} changes again and again while hooks run", baseline::name(&path, &self.root));
        if time == TellTime::AfterPause {
            self.notices.push(format!("{why}; they hear of it after a pause"));
            self.held.insert(path, chain);
        } else {
            self.notices.push(format!("{why}; this change is taken unchecked"));
            self.baseline.absorb(&path);
        }
    }

    /// The change of one file since hooks last heard of it, whether or not it was touched.
    pub(crate) fn change_of(&mut self, path: &Path) -> Option<FileChange> {
        self.enter_new_folder_of(path);
        let counts = self.baseline.contains(path) || self.is_watched(path);
        counts.then(|| self.baseline.compare(path, &self.root)).flatten()
    }

    /// After hooks ran that may write to the file, its present state counts as known to hooks. Three changes are still
    /// told: a save after they ended, a removal, and more different states than there were hooks. The last of these is
    /// told once, because a hook may well write in several steps.
    fn hooks_ran(&mut self, path: &Path, chain: &Chain, run: WritingRun) {
        let seen = self.notifier.as_ref().map(|notifier| notifier.observed(path)).unwrap_or_default();
        let changes = self.baseline.changes(path, &seen);
        if changes <= run.count || chain.contains(&path.to_owned()) {
            self.baseline.absorb_before(path, run.until);
        }
        self.runs.add(path, chain, run.from, run.until);
    }

    /// No hook ran for the file that may write to it.
    fn no_hook_ran(&self, path: &Path) {
        if let Some(notifier) = &self.notifier {
            notifier.observed(path);
        }
    }

    /// The file whose change was taken last, and the chain that led to it.
    pub(crate) fn taken(&self) -> (PathBuf, Chain) {
        self.taken.clone()
    }

    /// Notes that the agent had a turn in this time. In chains of changes, the project's root stands for the agent.
    pub(crate) fn agent_worked(&mut self, from: SystemTime, until: SystemTime) {
        self.runs.add(&self.root, &Chain::default(), from, until);
    }

    /// Whether the agent caused the change that was taken last.
    pub(crate) fn is_agents(&self) -> bool {
        self.taken.1.first() == Some(&self.root)
    }

    /// Notes that another program told hooks of a file with this stamp, or of its removal. The file may have changed
    /// again since.
    pub(crate) fn heard_of(&mut self, path: &Path, key: Option<StatKey>) {
        if !self.baseline.contains(path) && !self.is_watched(path) {
            return;
        }
        let now = notes::key_of(path);
        if now == key {
            self.baseline.absorb(path);
        } else if !self.baseline.has_stamp(path, key) {
            self.baseline.set(path, key);
            self.touched
                .paths
                .entry(path.to_owned())
                .or_insert_with(|| now.map_or_else(SystemTime::now, |now| time_of(&now)));
        }
    }

    fn begin(&mut self) {
        match Notifier::new() {
            Ok(notifier) => self.notifier = Some(notifier),
            Err(error) => self.fall_back(&error),
        }
        let found = self.scan(&self.root.clone());
        self.unread = found.files.keys().rev().cloned().collect();
        for (path, key) in found.files {
            self.baseline.add(path, key);
        }
    }

    /// Scans a folder, and watches it and the folders below it from then on.
    fn scan(&mut self, folder: &Path) -> Scan {
        let (notifier, mut failed) = (&mut self.notifier, None);
        let found = scan(folder, &mut self.rules, |folder| {
            if let (Some(notifier), None) = (notifier.as_mut(), &failed) {
                failed = notifier.watch(folder).err().filter(|error| !matches!(error, NotifyError::Gone));
            }
        });
        if let Some(error) = failed {
            self.fall_back(&error);
        }
        if found.is_cut {
            self.notices.push(format!(
                "{} has more than {MOST_FILES} files; the rest is not watched (an .ollmignore can leave folders out)",
                folder.display()
            ));
        }
        self.folders.extend(found.folders.iter().cloned());
        found
    }

    /// Falls back to comparing everything at intervals, without watches.
    fn fall_back(&mut self, error: &NotifyError) {
        self.notifier = None;
        let way_out = match error {
            NotifyError::NoWatchLeft if cfg!(target_os = "linux") => {
                "; raise fs.inotify.max_user_watches or fs.inotify.max_user_instances, or leave folders out with an .ollmignore"
            }
            _ => "",
        };
        self.notices.push(format!("{error}: all files are compared every second or so instead{way_out}"));
    }

    /// Whether the project exists. A project that came back is scanned anew.
    pub(crate) fn exists(&mut self, now: Instant) -> Result<bool, AppError> {
        let inode = fs::metadata(&self.root).ok().filter(fs::Metadata::is_dir).map(|meta| meta.ino());
        let Some(inode) = inode else {
            if now.saturating_duration_since(*self.absent_since.get_or_insert(now)) < ABSENCE {
                return Ok(false);
            }
            let message = format!("{} is gone; nothing is watched any more", self.root.display());
            return Err(AppError::new(Code::NoFolder, message));
        };
        let was_gone = self.absent_since.take().is_some();
        if std::mem::replace(&mut self.inode, inode) != inode || was_gone {
            self.touched.merge(TouchedPaths::unknown());
        }
        Ok(true)
    }
}

/// The files that our standard output and standard error go to: each line there would be another change. Nothing is
/// written here.
fn own_output() -> Vec<(u64, u64)> {
    let stats = [stdout(), stderr()].map(rustix::fs::fstat);
    let files = stats.into_iter().flatten().filter(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
    files.map(|stat| (stat.st_dev, stat.st_ino)).collect()
}

#[cfg(test)]
mod tests;
