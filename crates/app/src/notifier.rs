//! What the operating system says was touched, gathered until it has settled.
//!
//! Only paths are kept, and how long ago they were touched: what became of them is found by comparison with what was
//! there before.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use notify::event::{AccessKind, AccessMode};
use notify::{Config, ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::wake_signal::WakeSignal;

/// How long nothing may be touched before we look: editors write a file in several steps.
const QUIET: Duration = Duration::from_millis(100);
/// We look after this long even if it goes on.
const LONGEST: Duration = Duration::from_secs(1);
/// With more touched paths than this the whole tree is compared instead.
const MOST: usize = 100_000;

/// Tells which paths were touched.
pub(crate) struct Notifier {
    watcher: RecommendedWatcher,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    touched: Mutex<Touched>,
    news: Condvar,
    /// Who else is woken.
    wake: OnceLock<WakeSignal>,
}

/// The paths that were touched, and when each was first.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    pub(crate) paths: HashMap<PathBuf, SystemTime>,
    /// Whether some are missing, so that everything has to be compared.
    pub(crate) is_incomplete: bool,
    first: Option<Instant>,
    last: Option<Instant>,
}

/// Why a folder is not watched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotifyError {
    /// The system has no watch left.
    #[error("the system has no more watches for folders")]
    NoWatchLeft,
    /// It is not there any more.
    #[error("the folder is gone")]
    Gone,
    /// The system refuses.
    #[error("{0}")]
    Refused(notify::Error),
}

impl Notifier {
    pub(crate) fn new() -> Result<Notifier, NotifyError> {
        let shared = Arc::<Shared>::default();
        let teller = Arc::clone(&shared);
        let heard = move |event: notify::Result<Event>| teller.hear(event, Instant::now());
        let watcher = RecommendedWatcher::new(heard, Config::default().with_follow_symlinks(false));
        Ok(Notifier { watcher: watcher.map_err(NotifyError::of)?, shared })
    }

    /// Watches what happens in a folder, but not below its folders.
    pub(crate) fn watch(&mut self, folder: &Path) -> Result<(), NotifyError> {
        self.watcher.watch(folder, RecursiveMode::NonRecursive).map_err(NotifyError::of)
    }

    /// Stops watching a folder, which may be gone.
    pub(crate) fn unwatch(&mut self, folder: &Path) {
        // What was removed is not watched any more.
        let _ = self.watcher.unwatch(folder);
    }

    /// What was touched, once it has settled; nothing before.
    pub(crate) fn take(&self, now: Instant) -> Option<Touched> {
        let mut touched = self.shared.lock();
        touched.has_settled(now).then(|| std::mem::take(&mut *touched))
    }

    /// What was touched, settled or not.
    pub(crate) fn take_all(&self) -> Touched {
        std::mem::take(&mut *self.shared.lock())
    }

    /// Wakes this one as well whenever something is touched, and now if something was. Only the first one is ever woken.
    pub(crate) fn wake(&self, wake: &WakeSignal) {
        if self.shared.wake.set(wake.clone()).is_ok() && self.is_unsettled() {
            wake.wake();
        }
    }

    /// Whether something was touched that has not settled.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.shared.lock().first.is_some()
    }

    /// Waits until something is touched, at most for so long.
    pub(crate) fn wait(&self, patience: Duration) {
        let touched = self.shared.lock();
        if touched.first.is_none() {
            // Woken too early, the caller looks and waits again.
            drop(self.shared.news.wait_timeout(touched, patience));
            return;
        }
        drop(touched);
        std::thread::sleep(patience.min(QUIET / 4));
    }
}

impl NotifyError {
    fn of(error: notify::Error) -> NotifyError {
        match &error.kind {
            ErrorKind::MaxFilesWatch => NotifyError::NoWatchLeft,
            // So many watchers, or so many open files, as this user may have.
            ErrorKind::Io(io) if io.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
                NotifyError::NoWatchLeft
            }
            ErrorKind::PathNotFound => NotifyError::Gone,
            ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::NotFound => NotifyError::Gone,
            _ => NotifyError::Refused(error),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Touched> {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, event: notify::Result<Event>, now: Instant) {
        let mut touched = self.lock();
        match event {
            // Whoever only reads changes nothing, and we read ourselves.
            Ok(event) if is_read(event.kind) => return,
            Ok(event) if !event.need_rescan() => touched.add(event.paths, now),
            // The queue ran over, or the system lost something in another way.
            Ok(_) | Err(_) => touched.lose(now),
        }
        self.news.notify_all();
        self.wake.get().inspect(|wake| wake.wake());
    }
}

/// Whether nothing was written. A program that writes through memory shows only when it closes the file.
fn is_read(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(kind) if !matches!(kind, AccessKind::Close(AccessMode::Write)))
}

impl Touched {
    /// Nobody knows what was touched.
    pub(crate) fn unknown() -> Touched {
        Touched { is_incomplete: true, ..Touched::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.is_incomplete
    }

    /// Takes in what was touched later.
    pub(crate) fn merge(&mut self, later: Touched) {
        self.is_incomplete |= later.is_incomplete;
        for (path, at) in later.paths {
            self.paths.entry(path).or_insert(at);
        }
        if self.paths.len() > MOST {
            self.paths.clear();
            self.is_incomplete = true;
        }
    }

    fn add(&mut self, paths: Vec<PathBuf>, now: Instant) {
        let time = SystemTime::now();
        for path in paths {
            self.paths.entry(path).or_insert(time);
        }
        if self.paths.len() > MOST {
            return self.lose(now);
        }
        self.stamp(now);
    }

    fn lose(&mut self, now: Instant) {
        self.paths.clear();
        self.is_incomplete = true;
        self.stamp(now);
    }

    fn stamp(&mut self, now: Instant) {
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    fn has_settled(&self, now: Instant) -> bool {
        let age = |since: Option<Instant>| since.map(|since| now.saturating_duration_since(since));
        age(self.last).is_some_and(|age| age >= QUIET) || age(self.first).is_some_and(|age| age >= LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(path: &str) -> Event {
        Event::new(EventKind::Any).add_path(path.into())
    }

    #[test]
    fn what_is_touched_settles_after_a_quiet_moment() {
        let (shared, now) = (Shared::default(), Instant::now());
        assert!(!shared.lock().has_settled(now));
        shared.hear(Ok(event("a")), now);
        shared.hear(Ok(event("a")), now + QUIET / 2);
        assert!(!shared.lock().has_settled(now + QUIET));
        assert!(shared.lock().has_settled(now + QUIET / 2 + QUIET));
        assert!(shared.lock().paths.contains_key(Path::new("a")));
    }

    #[test]
    fn what_never_rests_is_looked_at_all_the_same() {
        let (shared, now) = (Shared::default(), Instant::now());
        for step in 0..=1000 {
            shared.hear(Ok(event("a")), now + LONGEST * step / 1000);
        }
        assert!(shared.lock().has_settled(now + LONGEST));
        assert_eq!(shared.lock().paths.len(), 1);
    }

    #[test]
    fn a_queue_that_ran_over_and_too_many_paths_ask_for_a_whole_look() {
        let now = Instant::now();
        let lost = Shared::default();
        lost.hear(Ok(Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan)), now);
        assert!(lost.lock().is_incomplete && lost.lock().has_settled(now + QUIET));
        let many = Shared::default();
        for number in 0..=MOST {
            many.hear(Ok(event(&number.to_string())), now);
        }
        assert!(many.lock().is_incomplete && many.lock().paths.is_empty());
    }

    #[test]
    fn reading_touches_nothing() {
        let shared = Shared::default();
        let read = Event::new(EventKind::Access(AccessKind::Any)).add_path("a".into());
        shared.hear(Ok(read), Instant::now());
        assert!(shared.lock().paths.is_empty());
    }
}
