//! Files that change beside the conversation: hooks hear of them between the turns.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ollm_agent::{Cancel, ChangedBy, Session};
use ollm_app::session::EventListener;
use ollm_app::watch::{FILE_EVENTS, HookRun, ProjectWatch, WatchRole, has_listener};
use ollm_app::{App, LiveApp, Shared, WakeSignal};
use ollm_protocol::FileChange;

use super::front::Upcoming;
use crate::output::Output;

/// How long files are read for later differences between two inputs, and how soon reading goes on.
const READING: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_millis(30);

/// The files of the project, once a hook wants to hear of them.
pub(super) struct ChatFiles {
    cancel: Cancel,
    /// Woken when a file may have changed.
    wake: WakeSignal,
    /// Shared with the session, whose tools change files as well.
    watch: Arc<Shared<Option<ProjectWatch>>>,
    /// Whether they cannot be watched, of which the person knows.
    is_impossible: bool,
    /// Whether hooks ran at the latest event of a file.
    ran: Arc<Shared<HookRun>>,
}

impl ChatFiles {
    pub(super) fn new(app: &App, cancel: &Cancel, wake: WakeSignal) -> ChatFiles {
        let (cancel, watch) = (cancel.clone(), app.watch.clone());
        ChatFiles { cancel, wake, watch, is_impossible: false, ran: Arc::default() }
    }

    /// Hears of every event of the session.
    pub(super) fn listener(&self) -> EventListener<'static> {
        let ran = Arc::clone(&self.ran);
        Box::new(move |event, _, outcome| {
            if event.kind.is_file() {
                *ran.lock() = HookRun::of(outcome);
            }
        })
    }

    pub(super) fn is_open(&self) -> bool {
        self.watch.lock().is_some()
    }

    /// Whether a file has changed that hooks have not heard of.
    pub(super) fn has_changes(&mut self, app: &LiveApp, output: &Shared<&mut Output>) -> bool {
        self.upcoming(app, output) == Upcoming::Now
    }

    /// Whether a file has changed that hooks have not heard of, or how soon that may be seen.
    pub(super) fn upcoming(&mut self, app: &LiveApp, output: &Shared<&mut Output>) -> Upcoming {
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

    /// Tells hooks of the files that have changed, and says what they want said.
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

    /// The next change and who made it; after an interruption the rest waits for the next time.
    fn next(&self) -> Option<(FileChange, ChangedBy)> {
        let mut watch = self.watch.lock();
        let watch = watch.as_mut().filter(|_| !self.cancel.is_set())?;
        let change = watch.next_change()?;
        Some((change, watch.changed_by()))
    }

    /// What changes meanwhile is the agent's work.
    pub(super) fn turn(&mut self, works: impl FnOnce()) {
        let from = SystemTime::now();
        works();
        if let Some(watch) = &mut *self.watch.lock() {
            watch.agent_worked(from, SystemTime::now());
        }
    }
}
