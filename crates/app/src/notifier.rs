//! Collects the paths that the operating system reports as touched, until they are quiet.
//!
//! It keeps only paths and times. A comparison with the earlier state finds out what happened to them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Config, ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use ollm_store::raw::read_regular;
use ollm_store::{Digest, digest_bytes};

use crate::wake_signal::WakeSignal;

/// How long paths must be quiet before we look, because editors write a file in several steps.
const QUIET: Duration = Duration::from_millis(100);
/// We look after this long, even if changes go on.
const LONGEST: Duration = Duration::from_secs(1);
/// With more touched paths, the whole tree is compared.
const MOST: usize = 100_000;
/// The states of larger files are not recorded.
const LONGEST_STATE: u64 = 8 << 20;
/// How many states of one file are remembered.
const MOST_STATES: usize = 16;

/// Reports which paths were touched.
pub(crate) struct Notifier {
    watcher: RecommendedWatcher,
    shared: Arc<NotifierShared>,
}

#[derive(Default)]
struct NotifierShared {
    touched: Mutex<TouchedPaths>,
    /// Files of which every state is recorded, with the states so far.
    observed: Mutex<HashMap<PathBuf, Vec<Digest>>>,
    news: Condvar,
    /// Another signal that is woken too.
    wake: OnceLock<WakeSignal>,
}

/// The touched paths, each with the time of its first touch.
#[derive(Debug, Default)]
pub(crate) struct TouchedPaths {
    pub(crate) paths: HashMap<PathBuf, SystemTime>,
    /// Whether some are missing, so that everything must be compared.
    pub(crate) is_incomplete: bool,
    first: Option<Instant>,
    last: Option<Instant>,
}

/// The reason why a folder is not watched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotifyError {
    /// The system has no watch left.
    #[error("the system has no more watches for folders")]
    NoWatchLeft,
    /// The folder no longer exists.
    #[error("the folder is gone")]
    Gone,
    /// The system refuses.
    #[error("{0}")]
    Refused(notify::Error),
}

impl Notifier {
    pub(crate) fn new() -> Result<Notifier, NotifyError> {
        let shared = Arc::<NotifierShared>::default();
        let teller = Arc::clone(&shared);
        let heard = move |event: notify::Result<Event>| teller.hear(event, Instant::now());
        let watcher = RecommendedWatcher::new(heard, Config::default().with_follow_symlinks(false));
        Ok(Notifier { watcher: watcher.map_err(NotifyError::of)?, shared })
    }

    /// Watches a folder, but not the folders in it.
    pub(crate) fn watch(&mut self, folder: &Path) -> Result<(), NotifyError> {
        self.watcher.watch(folder, RecursiveMode::NonRecursive).map_err(NotifyError::of)
    }

    /// Stops watching a folder, which may be gone.
    pub(crate) fn unwatch(&mut self, folder: &Path) {
        // The system has already stopped watching a removed folder.
        let _ = self.watcher.unwatch(folder);
    }

    /// Records the state of a file each time a program writes or replaces it.
    pub(crate) fn observe(&self, path: &Path) {
        self.shared.observed().insert(path.to_owned(), Vec::new());
    }

    /// The recorded states of a file, in order. The file is observed no longer.
    pub(crate) fn observed(&self, path: &Path) -> Vec<Digest> {
        self.shared.observed().remove(path).unwrap_or_default()
    }

    /// The touched paths, once they are quiet; `None` before.
    pub(crate) fn take(&self, now: Instant) -> Option<TouchedPaths> {
        let mut touched = self.shared.lock();
        touched.has_settled(now).then(|| std::mem::take(&mut *touched))
    }

    /// All touched paths, whether or not they are quiet.
    pub(crate) fn take_all(&self) -> TouchedPaths {
        std::mem::take(&mut *self.shared.lock())
    }

    /// Also wakes this signal at each touch, and now if something was touched. Only the first signal given is ever
    /// woken.
    pub(crate) fn wake(&self, wake: &WakeSignal) {
        if self.shared.wake.set(wake.clone()).is_ok() && self.is_unsettled() {
            wake.wake();
        }
    }

    /// Whether something was touched that is not quiet yet.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.shared.lock().first.is_some()
    }

    /// Waits until something is touched, at most this long.
    pub(crate) fn wait(&self, patience: Duration) {
        let touched = self.shared.lock();
        if touched.first.is_none() {
            // If this wait ends too early, the caller looks and waits again.
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
            // The user's limit on watchers or open files is reached.
            ErrorKind::Io(io) if io.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
                NotifyError::NoWatchLeft
            }
            ErrorKind::PathNotFound => NotifyError::Gone,
            ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::NotFound => NotifyError::Gone,
            _ => NotifyError::Refused(error),
        }
    }
}

impl NotifierShared {
    fn lock(&self) -> MutexGuard<'_, TouchedPaths> {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observed(&self) -> MutexGuard<'_, HashMap<PathBuf, Vec<Digest>>> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the present states of the observed files among these.
    fn look(&self, paths: &[PathBuf]) {
        let is_observed = |path: &&PathBuf| self.observed().contains_key(*path);
        for path in paths.iter().filter(is_observed) {
            let Ok(Some((bytes, _))) = read_regular(path, LONGEST_STATE) else { continue };
            let digest = digest_bytes(&bytes);
            let mut observed = self.observed();
            if let Some(states) = observed.get_mut(path).filter(|states| states.len() < MOST_STATES)
                && states.last() != Some(&digest)
            {
                states.push(digest);
            }
        }
    }

    fn hear(&self, event: notify::Result<Event>, now: Instant) {
        if let Ok(event) = &event
            && is_whole(event.kind)
        {
            self.look(&event.paths);
        }
        let mut touched = self.lock();
        match event {
            // A read changes nothing, and we read files ourselves.
            Ok(event) if is_read(event.kind) => return,
            Ok(event) if !event.need_rescan() => touched.add(event.paths, now),
            // The queue overflowed, or the system lost an event in another way.
            Ok(_) | Err(_) => touched.lose(now),
        }
        self.news.notify_all();
        self.wake.get().inspect(|wake| wake.wake());
    }
}

/// Whether a program finished writing a file or moved it into place. A file that was only created is not whole yet.
fn is_whole(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(AccessKind::Close(AccessMode::Write)) | EventKind::Modify(ModifyKind::Name(_)))
}

/// Whether the event is only a read. A program that writes through mapped memory shows only when it closes the file.
fn is_read(kind: EventKind) -> bool {
    matches!(kind, EventKind::Access(kind) if !matches!(kind, AccessKind::Close(AccessMode::Write)))
}

impl TouchedPaths {
    /// Stands for unknown touched paths.
    pub(crate) fn unknown() -> TouchedPaths {
        TouchedPaths { is_incomplete: true, ..TouchedPaths::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.is_incomplete
    }

    /// Adds paths that were touched later.
    pub(crate) fn merge(&mut self, later: TouchedPaths) {
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
        let (shared, now) = (NotifierShared::default(), Instant::now());
        assert!(!shared.lock().has_settled(now));
        shared.hear(Ok(event("a")), now);
        shared.hear(Ok(event("a")), now + QUIET / 2);
        assert!(!shared.lock().has_settled(now + QUIET));
        assert!(shared.lock().has_settled(now + QUIET / 2 + QUIET));
        assert!(shared.lock().paths.contains_key(Path::new("a")));
    }

    #[test]
    fn what_never_rests_is_looked_at_all_the_same() {
        let (shared, now) = (NotifierShared::default(), Instant::now());
        for step in 0..=1000 {
            shared.hear(Ok(event("a")), now + LONGEST * step / 1000);
        }
        assert!(shared.lock().has_settled(now + LONGEST));
        assert_eq!(shared.lock().paths.len(), 1);
    }

    #[test]
    fn a_queue_that_ran_over_and_too_many_paths_ask_for_a_whole_look() {
        let now = Instant::now();
        let lost = NotifierShared::default();
        lost.hear(Ok(Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan)), now);
        assert!(lost.lock().is_incomplete && lost.lock().has_settled(now + QUIET));
        let many = NotifierShared::default();
        for number in 0..=MOST {
            many.hear(Ok(event(&number.to_string())), now);
        }
        assert!(many.lock().is_incomplete && many.lock().paths.is_empty());
    }

    #[test]
    fn reading_touches_nothing() {
        let shared = NotifierShared::default();
        let read = Event::new(EventKind::Access(AccessKind::Any)).add_path("a".into());
        shared.hear(Ok(read), Instant::now());
        assert!(shared.lock().paths.is_empty());
    }
}
