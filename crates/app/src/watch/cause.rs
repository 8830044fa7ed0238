//! Which changes hooks may have made: what changes while they run, and how long such a chain is.
//!
//! No system tells who wrote a file. The file that hooks were called for counts as written by them; any other one may be
//! somebody else's work, so hooks hear of it, but a circle of hooks that change files for one another has an end.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often one file may come up in a chain of changes.
const MOST_RETURNS: usize = 3;
/// How long a chain of changes may be.
const LONGEST_CHAIN: usize = 16;
/// How many runs of hooks are remembered.
const MOST_RUNS: usize = 256;
/// The system tells of a change this much later at most, and its clock for files may be this much behind.
const DELAY: Duration = Duration::from_millis(50);

/// The files whose hooks led to a change, in order.
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
    /// Hooks ran for a file in this time, because of that chain.
    pub(super) fn add(&mut self, path: &Path, chain: &Chain, from: SystemTime, until: SystemTime) {
        if self.0.len() >= MOST_RUNS {
            self.0.pop_front();
        }
        let chain = chain.iter().map(PathBuf::as_path).chain([path]).map(Path::to_owned).collect();
        self.0.push_back(HookRun { from, until, chain });
    }

    /// What led to a change at this time: the longest chain whose hooks ran then, or nothing.
    pub(super) fn cause(&self, at: SystemTime) -> Chain {
        let ran = |delay: Duration| {
            longest(self.0.iter().filter(move |run| run.from <= at + delay && at <= run.until + delay))
        };
        // Runs follow one another: what lies within one does not belong to the one before.
        let within = ran(Duration::ZERO);
        if within.is_empty() { ran(DELAY) } else { within }
    }

    /// What led to a change that happened after this time, as far as hooks may have made it.
    pub(super) fn latest_since(&self, time: SystemTime) -> Chain {
        longest(self.0.iter().filter(|run| run.until + DELAY >= time))
    }
}

fn longest<'r>(runs: impl Iterator<Item = &'r HookRun>) -> Chain {
    runs.max_by_key(|run| run.chain.len()).map(|run| Arc::clone(&run.chain)).unwrap_or_default()
}

/// Whether hooks would go on for ever. A file that only comes up after itself may well be saved by a person who types faster
/// than hooks run.
pub(super) fn is_endless(path: &Path, chain: &Chain) -> bool {
    let returns = chain.iter().filter(|known| *known == path).count();
    chain.len() >= LONGEST_CHAIN || (returns >= MOST_RETURNS && returns < chain.len())
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
    }

    #[test]
    fn a_circle_of_two_hooks_ends() {
        let (mut runs, mut now, mut chain) = (HookRuns::default(), SystemTime::now(), Chain::default());
        let mut told = 0;
        for file in ["a", "b"].into_iter().cycle() {
            if is_endless(Path::new(file), &chain) {
                break;
            }
            told += 1;
            now += Duration::from_secs(1);
            runs.add(Path::new(file), &chain, now, now);
            chain = runs.cause(now);
        }
        assert_eq!(told, 2 * MOST_RETURNS);
    }

    #[test]
    fn a_person_may_save_one_file_again_and_again_while_its_hooks_run() {
        let chain = |count| std::iter::repeat_n(PathBuf::from("a"), count).collect::<Chain>();
        assert!(!is_endless(Path::new("a"), &chain(LONGEST_CHAIN - 1)));
        assert!(is_endless(Path::new("a"), &chain(LONGEST_CHAIN)));
    }

    #[test]
    fn hooks_that_make_ever_new_files_end_too() {
        let (mut runs, mut now, mut chain) = (HookRuns::default(), SystemTime::now(), Chain::default());
        let mut told = 0;
        while !is_endless(Path::new(&told.to_string()), &chain) {
            now += Duration::from_secs(1);
            runs.add(Path::new(&told.to_string()), &chain, now, now);
            chain = runs.cause(now);
            told += 1;
        }
        assert_eq!(told, LONGEST_CHAIN);
    }
}
