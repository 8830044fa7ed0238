//! The files of one project as one of the programs that watch it sees them.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use ollm_agent::ChangedBy;
use ollm_protocol::FileChange;

use super::compare::POLL;
use super::late::{HookRun, LateRuns};
use super::notes::Notes;
use super::share::{self, Share, WatchRole};
use super::{FileWatcher, SOON};
use crate::app::App;
use crate::error::AppError;
use crate::wake_signal::WakeSignal;

/// Watches a project together with others: hooks hear of each change once.
pub struct ProjectWatch {
    watcher: FileWatcher,
    /// None where there is no home to meet others in.
    others: Option<(Share, Notes)>,
    /// Whether somebody has to know what hooks were told.
    has_others: bool,
    late: LateRuns,
}

impl fmt::Debug for ProjectWatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ProjectWatch").field("root", &self.watcher.root()).finish_non_exhaustive()
    }
}

impl ProjectWatch {
    /// Begins to watch the project, or the working folder where there is none.
    pub fn open(app: &App, role: WatchRole) -> Result<ProjectWatch, AppError> {
        let context = app.context();
        let folder = share::folder(context);
        let share = folder.as_ref().map(|folder| Share::open(folder, role)).transpose()?;
        // Notes are read from before the first look on, so that none is missed.
        let others = share.zip(folder).map(|(share, folder)| (share, Notes::from_now(&folder)));
        let project = context.places.project.as_deref().unwrap_or(&context.cwd);
        let watcher = FileWatcher::open(project, &context.places.home)?;
        let mut watch = ProjectWatch { watcher, others, has_others: false, late: LateRuns::new(app.late_ends.clone()) };
        if let Some((share, _)) = &mut watch.others {
            share.take();
        }
        Ok(watch)
    }

    /// The files.
    pub fn files(&self) -> &FileWatcher {
        &self.watcher
    }

    /// Whether it is this program that tells hooks.
    pub fn is_teller(&self) -> bool {
        self.others.as_ref().is_none_or(|(share, _)| share.is_teller())
    }

    /// What a person should know, once.
    pub fn take_notices(&mut self) -> Vec<String> {
        self.watcher.take_notices()
    }

    /// Reads files for later differences, for about so long; says whether some are left.
    pub fn read_ahead(&mut self, time: Duration) -> bool {
        self.watcher.read_ahead(time)
    }

    /// Waits until something is touched, at most for so long.
    pub fn wait(&self, patience: Duration) {
        if self.is_teller() {
            self.watcher.wait(patience);
        } else {
            std::thread::sleep(patience);
        }
    }

    /// Wakes this one whenever there may be something to look at.
    pub fn wake(&mut self, wake: &WakeSignal) {
        let folder = self.others.as_ref().map(|(share, _)| share.folder().to_owned());
        self.watcher.wake(wake, folder.as_deref());
    }

    /// How soon another look is worth it although nobody was woken; none where nothing is under way.
    pub fn next_look(&self) -> Option<Duration> {
        if !self.late.is_empty() {
            return Some(SOON);
        }
        if self.is_teller() {
            return self.watcher.next_look(Instant::now());
        }
        // Only that the other one ends matters here, of which its lock tells.
        self.watcher.is_polling().then_some(POLL)
    }

    /// Looks whether there is a change to take; while another program tells hooks there is none. It fails when the project
    /// is gone.
    pub fn look(&mut self) -> Result<bool, AppError> {
        let now = Instant::now();
        for (path, chain, times) in self.late.take_ended() {
            self.watcher.hooks_ran(&path, &chain, times);
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
            // The other one may have noted something since.
            hear(notes, &mut self.watcher);
            self.watcher.compare_soon();
        }
        self.has_others = share.has_others();
        if share.is_wanted() {
            // What changed before the other one looked for the first time is ours to tell.
            self.watcher.look_at_once();
        } else {
            self.watcher.look(now)?;
        }
        if share.is_wanted() && !self.watcher.has_changes() {
            share.give_up();
        }
        Ok(self.has_changes())
    }

    /// The next change, if there is one.
    pub fn next_change(&mut self) -> Option<FileChange> {
        let (late, mut notes) = (&self.late, self.others.as_mut().map(|(_, notes)| notes));
        self.watcher.next_change_but(&mut |path| is_taken(path, late, notes.as_deref_mut()))
    }

    /// What became of a file that a tool is about to change: it is told before that.
    pub(crate) fn change_of(&mut self, path: &Path) -> Option<FileChange> {
        if !self.is_teller() || self.late.has(path) {
            return None;
        }
        if let Some((_, notes)) = &mut self.others {
            hear(notes, &mut self.watcher);
        }
        self.watcher.change_of(path)
    }

    /// Who made the change that was taken last.
    pub fn changed_by(&self) -> ChangedBy {
        if self.watcher.is_agents() { ChangedBy::Agent } else { ChangedBy::Others }
    }

    /// The agent had a turn in this time: what changed meanwhile is its work.
    pub fn agent_worked(&mut self, from: SystemTime, until: SystemTime) {
        self.watcher.agent_worked(from, until);
    }

    /// Hooks were told of the change that was taken last, at `from`: what they wrote into the file since is no further change.
    pub fn told(&mut self, run: &HookRun, from: SystemTime) {
        let (path, chain) = self.watcher.taken();
        match run {
            HookRun::None => {}
            HookRun::Ended => self.watcher.hooks_ran(&path, &chain, (from, SystemTime::now())),
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

/// Takes in what other programs told hooks of.
fn hear(notes: &mut Notes, watcher: &mut FileWatcher) {
    for (path, key) in notes.told() {
        watcher.heard_of(&path, key);
    }
}

/// Whether hooks are at work on a file, ours or those of another program: it is looked at when they have ended.
fn is_taken(path: &Path, late: &LateRuns, notes: Option<&mut Notes>) -> bool {
    late.has(path) || notes.is_some_and(|notes| notes.is_being_told(path))
}
