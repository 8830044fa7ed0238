//! Decides which changes hooks may have made: changes that happen while hooks run, in chains.
//!
//! No system says who wrote a file. After hooks ran for a file, its change counts as theirs. Any other file may be
//! another program's work, so hooks hear of it. If hooks change files for one another in a circle, the circle is
//! stopped.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often one file may occur in a chain of changes.
const MOST_RETURNS: usize = 3;
/// How long a chain of changes may be.
const LONGEST_CHAIN: usize = 16;
/// How often a chain that is too long may continue after a pause.
const MOST_PAUSES: usize = 3;
/// How long hooks must be idle before such a chain continues.
const PAUSE: Duration = Duration::from_secs(1);
/// How many runs of hooks are remembered.
const MOST_RUNS: usize = 256;
/// The longest delay of the system's report of a change, and of its clock for files.
const DELAY: Duration = Duration::from_millis(50);

/// The files whose hooks led to a change, in order. An empty path stands for a pause.
pub(super) type Chain = Arc<[PathBuf]>;

/// The latest runs of hooks.
#[derive(Debug, Default)]
pub(super) struct HookRuns(VecDeque<HookRun>);

#[derive(Debug)]
struct HookRun {
    from: SystemTime,
    until: SystemTime,
    chain: Chain,
}

impl HookRuns {
    /// Adds a run of hooks for a file in this time, caused by that chain.
    pub(super) fn add(&mut self, path: &Path, chain: &Chain, from: SystemTime, until: SystemTime) {
        if self.0.len() >= MOST_RUNS {
            self.0.pop_front();
        }
        let chain = chain.iter().map(PathBuf::as_path).chain([path]).map(Path::to_owned).collect();
        self.0.push_back(HookRun { from, until, chain });
    }

    /// The cause of a change at this time: the longest chain whose hooks ran then, or an empty one.
    pub(super) fn cause(&self, at: SystemTime) -> Chain {
        let ran = |delay: Duration| {
            longest(self.0.iter().filter(move |run| run.from <= at + delay && at <= run.until + delay))
        };
        // Runs follow one another: a change during one run does not belong to the run before.
        let within = ran(Duration::ZERO);
        if within.is_empty() { ran(DELAY) } else { within }
    }

    /// Whether hooks have been idle for the length of the pause.
    pub(super) fn have_paused(&self, now: SystemTime) -> bool {
        let latest = self.0.iter().map(|run| run.until).max();
        // A clock that was set back keeps nothing waiting.
        latest.and_then(|until| now.duration_since(until).ok()).is_none_or(|idle| idle >= PAUSE)
    }

    /// The longest chain of hooks that may have made a change after this time.
    pub(super) fn latest_since(&self, time: SystemTime) -> Chain {
        longest(self.0.iter().filter(|run| run.until + DELAY >= time))
    }
}

fn longest<'r>(runs: impl Iterator<Item = &'r HookRun>) -> Chain {
    runs.max_by_key(|run| run.chain.len()).map(|run| Arc::clone(&run.chain)).unwrap_or_default()
}

/// When to tell hooks of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TellTime {
    /// At once.
    Now,
    /// After a pause: hooks may be calling one another, or another program changes files while they run.
    AfterPause,
    /// Never: the chain continued after the pauses.
    Never,
}

/// When to tell hooks of a change with this chain. A circle of hooks ends, and other changes in the meantime are still
/// told. A file that follows only itself may well be saved by a person who types faster than hooks run.
pub(super) fn tell_time(path: &Path, chain: &Chain) -> TellTime {
    let pauses = chain.iter().filter(|known| is_pause(known)).count();
    let returns = chain.iter().filter(|known| *known == path).count();
    let length = chain.len() - pauses;
    let is_too_long = length >= LONGEST_CHAIN || (returns >= MOST_RETURNS && returns < length);
    let comes_after_pause = chain.last().is_some_and(|last| is_pause(last));
    if comes_after_pause || !is_too_long {
        TellTime::Now
    } else if pauses < MOST_PAUSES {
        TellTime::AfterPause
    } else {
        TellTime::Never
    }
}

/// The chain of a change that hooks are told of after a pause.
pub(super) fn after_pause(chain: &Chain) -> Chain {
    chain.iter().map(PathBuf::as_path).chain([Path::new("")]).map(Path::to_owned).collect()
}

fn is_pause(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_belongs_to_the_hooks_that_ran_at_that_time() {
        let (mut runs, now) = (HookRuns::default(), SystemTime::now());
        let second = Duration::from_secs(1);
        runs.add(Path::new("a"), &Chain::default(), now, now + second);
        assert_eq!(&*runs.cause(now + second / 2), [PathBuf::from("a")]);
        assert!(runs.cause(now + second * 2).is_empty());
        assert!(runs.cause(now - second).is_empty());
        assert_eq!(runs.latest_since(now + second), runs.cause(now));
        assert!(runs.latest_since(now + second * 2).is_empty());
        assert!(!runs.have_paused(now + second) && runs.have_paused(now + second * 2) && runs.have_paused(now));
    }

    #[test]
    fn a_circle_of_two_hooks_ends() {
        let (mut runs, mut now, mut chain) = (HookRuns::default(), SystemTime::now(), Chain::default());
        let mut told = 0;
        for file in ["a", "b"].into_iter().cycle() {
            match tell_time(Path::new(file), &chain) {
                TellTime::Now => told += 1,
                TellTime::AfterPause => (told, chain) = (told + 1, after_pause(&chain)),
                TellTime::Never => break,
            }
            now += Duration::from_secs(1);
            runs.add(Path::new(file), &chain, now, now);
            chain = runs.cause(now);
        }
        assert_eq!(told, 2 * MOST_RETURNS + MOST_PAUSES);
    }

    #[test]
    fn a_person_may_save_one_file_again_and_again_while_its_hooks_run() {
        let chain = |count| std::iter::repeat_n(PathBuf::from("a"), count).collect::<Chain>();
        assert_eq!(tell_time(Path::new("a"), &chain(LONGEST_CHAIN - 1)), TellTime::Now);
        assert_eq!(tell_time(Path::new("a"), &chain(LONGEST_CHAIN)), TellTime::AfterPause);
    }

    #[test]
    fn hooks_that_make_ever_new_files_end_too() {
        let (mut runs, mut now, mut chain) = (HookRuns::default(), SystemTime::now(), Chain::default());
        let mut told = 0;
        loop {
            match tell_time(Path::new(&told.to_string()), &chain) {
                TellTime::Now => {}
                TellTime::AfterPause => chain = after_pause(&chain),
                TellTime::Never => break,
            }
            now += Duration::from_secs(1);
            runs.add(Path::new(&told.to_string()), &chain, now, now);
            chain = runs.cause(now);
            told += 1;
        }
        assert_eq!(told, LONGEST_CHAIN + MOST_PAUSES);
    }
}
