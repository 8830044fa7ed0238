//! Watches the files of one project together with other programs.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use ollm_agent::ChangedBy;
use ollm_protocol::FileChange;

use super::compare::POLL;
use super::late::{HookRun, LateRuns, WritingRun};
use super::notes::Notes;
use super::share::{self, Share, WatchRole};
use super::{FileWatcher, SOON};
use crate::app::App;
use crate::error::AppError;
use crate::wake_signal::WakeSignal;

/// Watches a project together with other programs, so that hooks hear of each change once.
pub struct ProjectWatch {
    watcher: FileWatcher,
    /// `None` without a home, which the programs need to find one another.
    others: Option<(Share, Notes)>,
    /// Whether another program needs to know what hooks were told.
    has_others: bool,
    late: LateRuns,
    /// Whether hooks are being told of the last taken change.
    is_telling: bool,
}

impl fmt::Debug for ProjectWatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ProjectWatch").field("root", &self.watcher.root()).finish_non_exhaustive()
    }
}

impl ProjectWatch {
    /// Starts to watch the project, or the working folder if there is none.
    pub fn open(app: &App, role: WatchRole) -> Result<ProjectWatch, AppError> {
        let context = app.context();
        let folder = share::folder(context);
        let share = folder.as_ref().map(|folder| Share::open(folder, role)).transpose()?;
        // Notes are read from a point before the first look, so that none is missed.
        let others = share.zip(folder).map(|(share, folder)| (share, Notes::from_now(&folder)));
        let project = context.places.project.as_deref().unwrap_or(&context.cwd);
        let watcher = FileWatcher::open(project, &context.places.home)?;
        let late = LateRuns::new(app.late_ends.clone());
        let mut watch = ProjectWatch { watcher, others, has_others: false, late, is_telling: false };
        if let Some((share, _)) = &mut watch.others {
            share.take();
        }
        Ok(watch)
    }

    /// The files.
    pub fn files(&self) -> &FileWatcher {
        &self.watcher
    }

    /// Whether this program tells hooks.
    pub fn is_teller(&self) -> bool {
        self.others.as_ref().is_none_or(|(share, _)| share.is_teller())
    }

    /// New notices for the person; each comes once.
    pub fn take_notices(&mut self) -> Vec<String> {
        self.watcher.take_notices()
    }

    /// Reads files for later differences, for about this long; returns whether some are left.
    pub fn read_ahead(&mut self, time: Duration) -> bool {
        self.watcher.read_ahead(time)
    }

    /// Waits until something is touched, at most this long.
    pub fn wait(&self, patience: Duration) {
        if self.is_teller() {
            self.watcher.wait(patience);
        } else {
            std::thread::sleep(patience);
        }
    }

    /// Wakes this signal whenever there may be a change.
    pub fn wake(&mut self, wake: &WakeSignal) {
        let folder = self.others.as_ref().map(|(share, _)| share.folder().to_owned());
        self.watcher.wake(wake, folder.as_deref());
    }

    /// How soon to look again without a wake; `None` if nothing is going on.
    pub fn next_look(&self) -> Option<Duration> {
        if !self.late.is_empty() {
            return Some(SOON);
        }
        if self.is_teller() {
            return self.watcher.next_look(Instant::now());
        }
        // Only the end of the other program matters here, and its lock shows that.
        self.watcher.is_polling().then_some(POLL)
    }

    /// Looks for a change to take; there is none while another program tells hooks. Fails if the project is gone.
    pub fn look(&mut self) -> Result<bool, AppError> {
        let now = Instant::now();
        for (path, chain, run) in self.late.take_ended() {
            self.watcher.hooks_ran(&path, &chain, run);
        }
        let Some((share, notes)) = &mut self.others else {
            self.watcher.look(now)?;
            return Ok(self.has_changes());
        };
        hear(notes, &mut self.watcher);
        if !share.is_teller() {
            if !share.take() {
                return self.watcher.exists(now).map(|_| false);
            }
            // The other program may have written notes since.
            hear(notes, &mut self.watcher);
            self.watcher.compare_soon();
        }
        self.has_others = share.has_others();
        if share.is_wanted() {
            // Changes from before the other program's first look are ours to tell.
            self.watcher.look_at_once();
        } else {
            self.watcher.look(now)?;
        }
        if share.is_wanted() && !self.watcher.has_changes() {
            share.give_up();
        }
        Ok(self.has_changes())
    }

    /// Compares everything with the state that hooks know, even recent changes; returns whether there is a change to
    /// take.
    pub fn look_at_all(&mut self) -> Result<bool, AppError> {
        self.watcher.compare_soon();
        self.watcher.tell_held();
        self.look()
    }

    /// The next change, if there is one.
    pub fn next_change(&mut self) -> Option<FileChange> {
        let (late, mut notes) = (&self.late, self.others.as_mut().map(|(_, notes)| notes));
        let change = self.watcher.next_change_but(&mut |path| is_taken(path, late, notes.as_deref_mut()));
        self.is_telling = change.is_some();
        change
    }

    /// Whether hooks are being told of the last taken change.
    pub(crate) fn is_telling(&self) -> bool {
        self.is_telling
    }

    /// Takes over the changes that other programs told, as far as the files have not changed since.
    pub(crate) fn hear(&mut self) {
        if let Some((_, notes)) = &mut self.others {
            hear(notes, &mut self.watcher);
        }
    }

    /// The change of a file that a tool is about to change; it is told first.
    pub(crate) fn change_of(&mut self, path: &Path) -> Option<FileChange> {
        if !self.is_teller() || self.late.has(path) {
            return None;
        }
        self.hear();
        self.watcher.change_of(path)
    }

    /// The author of the last taken change.
    pub fn changed_by(&self) -> ChangedBy {
        if self.watcher.is_agents() { ChangedBy::Agent } else { ChangedBy::Others }
    }

    /// Notes that the agent had a turn in this time: changes in it are the agent's work.
    pub fn agent_worked(&mut self, from: SystemTime, until: SystemTime) {
        self.watcher.agent_worked(from, until);
    }

    /// Notes that hooks were told of the last taken change at `from`. Their own changes of the file since then are no
    /// further changes.
    pub fn told(&mut self, run: &HookRun, from: SystemTime) {
        self.is_telling = false;
        let (path, chain) = self.watcher.taken();
        match run {
            HookRun::None => self.watcher.no_hook_ran(&path),
            HookRun::Ended { until, count } => {
                self.watcher.hooks_ran(&path, &chain, WritingRun { from, until: *until, count: *count });
            }
            HookRun::Late { .. } => self.late.add(&path, chain, from, run),
        }
        if let Some((_, notes)) = self.others.as_ref().filter(|_| self.has_others) {
            notes.add(&path);
        }
    }

    fn has_changes(&mut self) -> bool {
        let (late, mut notes) = (&self.late, self.others.as_mut().map(|(_, notes)| notes));
        self.watcher.has_changes_but(&mut |path| is_taken(path, late, notes.as_deref_mut()))
    }
}

/// Takes over the changes that other programs told hooks of.
fn hear(notes: &mut Notes, watcher: &mut FileWatcher) {
    for (path, key) in notes.told() {
        watcher.heard_of(&path, key);
    }
}

/// Whether hooks of ours or of another program are at work on a file; the file is compared when they have ended.
fn is_taken(path: &Path, late: &LateRuns, notes: Option<&mut Notes>) -> bool {
    late.has(path) || notes.is_some_and(|notes| notes.is_being_told(path))
}
