//! Files that people, shells, servers and other programs change: noticed, compared with what was there before, and told
//! to hooks.
//!
//! The system only says which paths were touched (`notifier`). Once they have settled, each is compared with the
//! `baseline`: what hooks last heard of. So an editor may write a file in any way it likes, a checkout of thousands of
//! files tells of each once, and when the system loses track, or has no watches left, comparing everything finds the
//! same changes. What hooks and our own tools write becomes the baseline without an event.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use ollm_protocol::{Code, FileChange};
use ollm_store::StatKey;
use rustix::fs::FileType;
use rustix::stdio::{stderr, stdout};

use crate::error::AppError;
use crate::notifier::{Notifier, NotifyError, Touched};
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
use cause::{Chain, HookRuns, is_endless};
use compare::time_of;
use git::GitActivity;
use queue::ChangeQueue;
use rules::IgnoreRules;
use scan::{MOST_FILES, Scan, scan};

pub use late::HookRun;
pub(crate) use late::LateEnds;
pub use notes::FileNote;
pub use project::ProjectWatch;
pub use run::{FILE_EVENTS, WatchListener, has_listener, watch_project};
pub use share::{WatchRole, is_watched};

/// Who was told this much is told no more.
const MOST_NOTICES: usize = 1000;
/// How soon somebody looks again at what is under way.
const SOON: Duration = Duration::from_millis(25);
/// A folder that is gone for longer does not come back.
const ABSENCE: Duration = Duration::from_secs(2);

/// Notices what becomes of the files of a project.
pub struct FileWatcher {
    root: PathBuf,
    /// Our own folder.
    home: PathBuf,
    rules: IgnoreRules,
    baseline: Baseline,
    /// The folders that are watched, with the inode of the root.
    folders: BTreeSet<PathBuf>,
    inode: u64,
    /// None where everything is compared now and then instead.
    notifier: Option<Notifier>,
    next_look: Instant,
    git: GitActivity,
    /// What was touched and not looked at yet.
    touched: Touched,
    /// The files that may have changed.
    queue: ChangeQueue,
    /// Files whose text is not known yet.
    unread: Vec<PathBuf>,
    runs: HookRuns,
    /// The file whose change was taken last, and what led to that. Its name as text may lack what is not UTF-8.
    taken: (PathBuf, Chain),
    absent_since: Option<Instant>,
    /// Device and inode of the files that we write to ourselves.
    own_output: Vec<(u64, u64)>,
    /// When everything was compared last.
    looked_at: SystemTime,
    notices: Vec<String>,
    /// The notices that a person knows.
    told: BTreeSet<String>,
}

impl FileWatcher {
    /// Watches a project; `home` is our own folder, which is not watched wherever it lies.
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
            touched: Touched::default(),
            queue: ChangeQueue::default(),
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

    /// The folder that is watched, without links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How many files are watched.
    pub fn file_count(&self) -> usize {
        self.baseline.len()
    }

    /// Whether everything is compared now and then, because the system has no watches left.
    pub fn is_polling(&self) -> bool {
        self.notifier.is_none()
    }

    /// What a person should know, once.
    pub fn take_notices(&mut self) -> Vec<String> {
        self.notices.append(&mut self.rules.problems);
        let mut notices = std::mem::take(&mut self.notices);
        notices.retain(|notice| self.told.len() < MOST_NOTICES && self.told.insert(notice.clone()));
        notices
    }

    /// Reads files for later differences, for about so long; says whether some are left.
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

    /// Waits until something is touched, at most for so long.
    pub fn wait(&self, patience: Duration) {
        match &self.notifier {
            Some(notifier) => notifier.wait(patience),
            None => std::thread::sleep(patience),
        }
    }

    /// Wakes this one whenever something is touched, also in a folder that is none of the project's.
    pub(crate) fn wake(&mut self, wake: &WakeSignal, folder: Option<&Path>) {
        let Some(notifier) = &mut self.notifier else { return };
        notifier.wake(wake);
        let failed = folder.and_then(|folder| notifier.watch(folder).err());
        if let Some(error) = failed {
            self.fall_back(&error);
        }
    }

    /// How soon another look is worth it although nothing is touched; none where nothing is under way.
    pub(crate) fn next_look(&self, now: Instant) -> Option<Duration> {
        let Some(notifier) = &self.notifier else {
            return Some(self.next_look.saturating_duration_since(now).max(SOON));
        };
        let is_busy =
            notifier.is_unsettled() || !self.touched.is_empty() || self.has_changes() || self.absent_since.is_some();
        is_busy.then_some(SOON)
    }

    /// Looks whether something was touched and has settled; says whether there is something to take. It fails when the
    /// project is gone.
    pub fn look(&mut self, now: Instant) -> Result<bool, AppError> {
        if !self.exists(now)? {
            return Ok(false);
        }
        let touched = match &self.notifier {
            Some(notifier) => notifier.take(now),
            None => (now >= self.next_look).then(Touched::unknown),
        };
        if let Some(touched) = touched {
            self.touched.merge(touched);
        }
        if !self.touched.is_empty() && !self.git.is_busy(now) {
            let touched = std::mem::take(&mut self.touched);
            self.sort(touched);
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

    /// Whether a file may have changed that may be told now.
    pub(crate) fn has_changes_but(&self, waits: &mut dyn FnMut(&Path) -> bool) -> bool {
        self.queue.has(waits)
    }

    /// Looks at what was touched without waiting until it has settled.
    pub(crate) fn look_at_once(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.merge(self.notifier.as_ref().map_or_else(Touched::unknown, Notifier::take_all));
        self.sort(touched);
    }

    /// Has everything compared with the next look.
    pub(crate) fn compare_soon(&mut self) {
        self.touched.merge(Touched::unknown());
    }

    /// The next change of a file that may be told now; the others wait.
    pub(crate) fn next_change_but(&mut self, waits: &mut dyn FnMut(&Path) -> bool) -> Option<FileChange> {
        while let Some((path, chain)) = self.queue.pop(waits) {
            if notes::key_of(&path).is_some_and(|key| self.own_output.contains(&(key.dev, key.ino))) {
                continue;
            }
            if is_endless(&path, &chain) {
                self.baseline.absorb(&path);
                let name = baseline::name(&path, &self.root);
                let why = if chain.iter().all(|known| *known == path) {
                    format!("{name} changes again and again while its hooks run")
                } else {
                    format!("hooks change {name} for one another again and again")
                };
                self.notices.push(format!("{why}; this change is taken as it is"));
                continue;
            }
            if let Some(change) = self.baseline.compare(&path, &self.root) {
                self.taken = (path, chain);
                return Some(change);
            }
        }
        None
    }

    /// What became of one file since hooks last heard of it, whether or not it was touched.
    pub(crate) fn change_of(&mut self, path: &Path) -> Option<FileChange> {
        let counts = self.baseline.contains(path) || self.is_watched(path);
        counts.then(|| self.baseline.compare(path, &self.root)).flatten()
    }

    /// Hooks ran for a file in this time: what was written into it until then is what hooks know. That it is gone, they do not.
    pub(crate) fn hooks_ran(&mut self, path: &Path, chain: &Chain, (from, until): (SystemTime, SystemTime)) {
        if notes::key_of(path).is_some_and(|key| time_of(&key) <= until) {
            self.baseline.absorb(path);
        }
        self.runs.add(path, chain, from, until);
    }

    /// The file whose change was taken last, and what led to that.
    pub(crate) fn taken(&self) -> (PathBuf, Chain) {
        self.taken.clone()
    }

    /// The agent had a turn in this time. The root of the project stands for it in chains of changes.
    pub(crate) fn agent_worked(&mut self, from: SystemTime, until: SystemTime) {
        self.runs.add(&self.root, &Chain::default(), from, until);
    }

    /// Whether the agent led to the change that was taken last.
    pub(crate) fn is_agents(&self) -> bool {
        self.taken.1.first() == Some(&self.root)
    }

    /// Hooks have heard of a file with this stamp, or that it is gone, from somebody else. It may have changed again since.
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

    /// Looks at a folder, and watches it and those below from then on.
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

    /// Without watches everything is compared now and then.
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

    /// Whether the project is there; one that came back is looked at anew.
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
            self.touched.merge(Touched::unknown());
        }
        Ok(true)
    }
}

/// What our standard output and standard error lead to: each line there would be another change. Nothing is written here.
fn own_output() -> Vec<(u64, u64)> {
    let stats = [stdout(), stderr()].map(rustix::fs::fstat);
    let files = stats.into_iter().flatten().filter(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
    files.map(|stat| (stat.st_dev, stat.st_ino)).collect()
}

#[cfg(test)]
mod tests;
