//! Tells hooks about files that change outside the conversation, between its turns.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ollm_agent::{Cancel, ChangedBy, Session};
use ollm_app::session::EventListener;
use ollm_app::watch::{FILE_EVENTS, HookRun, ProjectWatch, WatchRole, has_listener};
use ollm_app::{App, LiveApp, SharedPort, WakeSignal};
use ollm_protocol::FileChange;

use super::front::Upcoming;
use crate::output::Output;

/// How long files are read for later differences between two inputs, and the pause before reading continues.
const READING: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_millis(30);
/// How often hooks are told at the end: their messages may make the agent change more files.
const MOST_ROUNDS: usize = 4;

/// The files of the project, once a hook wants to hear of them.
pub(super) struct ChatFiles {
    cancel: Cancel,
    /// Woken when a file may have changed.
    wake: WakeSignal,
    /// Shared with the session, whose tools change files too.
    watch: Arc<SharedPort<Option<ProjectWatch>>>,
    /// Whether they cannot be watched; the person was told so.
    is_impossible: bool,
    /// Whether hooks ran at the latest event about a file.
    ran: Arc<SharedPort<HookRun>>,
    /// The watched folder, without links.
    project: PathBuf,
}

impl ChatFiles {
    pub(super) fn new(app: &App, cancel: &Cancel, wake: WakeSignal) -> ChatFiles {
        let (cancel, watch, context) = (cancel.clone(), app.watch.clone(), app.context());
        let project = context.places.project.as_ref().unwrap_or(&context.cwd);
        let project = project.canonicalize().unwrap_or_else(|_| project.clone());
        ChatFiles { cancel, wake, watch, is_impossible: false, ran: Arc::default(), project }
    }

    /// A listener for every event of the session.
    pub(super) fn listener(&self) -> EventListener<'static> {
        let (ran, project) = (Arc::clone(&self.ran), self.project.clone());
        Box::new(move |event, _, outcome| {
            if event.kind.is_file() {
                *ran.lock() = HookRun::of(outcome, &project, Path::new(event.text("path").unwrap_or_default()));
            }
        })
    }

    pub(super) fn is_open(&self) -> bool {
        self.watch.lock().is_some()
    }

    /// Whether there is a file change that hooks have not heard of.
    pub(super) fn has_changes(&mut self, app: &LiveApp, output: &SharedPort<&mut Output>) -> bool {
        self.upcoming(app, output) == Upcoming::Now
    }

    /// Whether there is a file change that hooks have not heard of, or when to look again.
    pub(super) fn upcoming(&mut self, app: &LiveApp, output: &SharedPort<&mut Output>) -> Upcoming {
        if self.is_impossible || !has_listener(&app.read(), &FILE_EVENTS) {
            return Upcoming::OnWake;
        }
        let found = self.look(&app.read());
        let notices = self.watch.lock().as_mut().map(ProjectWatch::take_notices).unwrap_or_default();
        for notice in &notices {
            output.lock().tell(notice);
        }
        found.unwrap_or_else(|why| {
            output.lock().tell(&why);
            (*self.watch.lock(), self.is_impossible) = (None, true);
            Upcoming::OnWake
        })
    }

    fn look(&self, app: &App) -> Result<Upcoming, String> {
        let mut watch = self.watch.lock();
        let watch = match &mut *watch {
            Some(watch) => watch,
            none => {
                let opened = ProjectWatch::open(app, WatchRole::Chat);
                let watch = none.insert(opened.map_err(|error| format!("files are not watched: {error}"))?);
                watch.wake(&self.wake);
                watch
            }
        };
        let is_unread = watch.read_ahead(READING);
        Ok(match (watch.look().map_err(|error| error.to_string())?, watch.next_look()) {
            (true, _) => Upcoming::Now,
            (false, Some(pause)) => Upcoming::Within(pause),
            (false, None) if is_unread => Upcoming::Within(PAUSE),
            (false, None) => Upcoming::OnWake,
        })
    }

    /// Tells hooks of changed files, and passes their messages to the model.
    pub(super) fn tell(&mut self, session: &mut Session<'_>) {
        while let Some((change, by)) = self.next() {
            let from = SystemTime::now();
            *self.ran.lock() = HookRun::None;
            session.file_changed(change, by);
            let ran = self.ran.lock().clone();
            if let Some(watch) = &mut *self.watch.lock() {
                watch.told(&ran, from);
            }
        }
        self.turn(|| drop(session.answer_hooks()));
    }

    /// Tells hooks of all changes so far, even recent ones, before the conversation ends.
    pub(super) fn tell_rest(&mut self, session: &mut Session<'_>) {
        self.cancel.rearm();
        for _ in 0..MOST_ROUNDS {
            let found = self.watch.lock().as_mut().map(ProjectWatch::look_at_all);
            // If the project is gone, there is nothing to tell.
            if self.cancel.is_set() || !matches!(found, Some(Ok(true))) {
                return;
            }
            self.tell(session);
        }
    }

    /// The next change and its author; after an interruption the rest waits for the next time.
    fn next(&self) -> Option<(FileChange, ChangedBy)> {
        let mut watch = self.watch.lock();
        let watch = watch.as_mut().filter(|_| !self.cancel.is_set())?;
        let change = watch.next_change()?;
        Some((change, watch.changed_by()))
    }

    /// Runs a turn; changes during it are the agent's work.
    pub(super) fn turn(&mut self, works: impl FnOnce()) {
        let from = SystemTime::now();
        works();
        if let Some(watch) = &mut *self.watch.lock() {
            watch.agent_worked(from, SystemTime::now());
        }
    }
}
