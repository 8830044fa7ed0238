//! Hooks that nobody waits for: a file that they were called for is theirs until they have ended.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use ollm_engine::Outcome;
use ollm_process::after;
use ollm_protocol::{HookSpec, Needs};

use super::cause::Chain;

/// How many ends are remembered.
const MOST: usize = 4096;

/// Whether hooks ran for a change that may have written files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HookRun {
    /// None did.
    #[default]
    None,
    /// Some did, and have ended.
    Ended,
    /// Some go on.
    Late {
        /// The dispatch they belong to.
        trace_id: String,
        /// How many there are.
        count: usize,
        /// How long they may take.
        timeout: Duration,
    },
}

impl HookRun {
    /// What an outcome says about it.
    pub fn of(outcome: &Outcome) -> HookRun {
        let ran = || outcome.reports.iter().filter(|report| may_write(&report.hook.spec));
        let late = || ran().filter(|report| report.detached);
        match late().map(|report| report.hook.timeout.value).max() {
            Some(timeout) => HookRun::Late { trace_id: outcome.trace_id.clone(), count: late().count(), timeout },
            None if ran().next().is_some() => HookRun::Ended,
            None => HookRun::None,
        }
    }
}

/// Whether a hook may have written files: one that declares permissions is held to them, or does not run.
fn may_write(spec: &HookSpec) -> bool {
    let needs_nothing = matches!(spec.action.needs(), Needs::Nothing);
    !needs_nothing && spec.permissions.as_ref().is_none_or(|permissions| !permissions.write.is_empty())
}

/// When hooks ended that nobody waited for, by their dispatch.
#[derive(Clone, Debug, Default)]
pub(crate) struct LateEnds(Arc<Mutex<VecDeque<(String, SystemTime)>>>);

impl LateEnds {
    /// A hook of this dispatch has ended.
    pub(crate) fn add(&self, trace_id: &str) {
        let mut ends = self.lock();
        if ends.len() >= MOST {
            ends.pop_front();
        }
        ends.push_back((trace_id.to_owned(), SystemTime::now()));
    }

    /// When the last of so many hooks of a dispatch ended, if all have.
    fn last(&self, trace_id: &str, count: usize) -> Option<SystemTime> {
        let ends = self.lock();
        let of_dispatch = ends.iter().filter(|(id, _)| id == trace_id).map(|(_, time)| *time);
        let times: Vec<SystemTime> = of_dispatch.collect();
        times.iter().copied().max().filter(|_| times.len() >= count)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, SystemTime)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files whose hooks go on.
#[derive(Debug, Default)]
pub(super) struct LateRuns {
    ends: LateEnds,
    files: HashMap<PathBuf, LateRun>,
}

#[derive(Debug)]
struct LateRun {
    trace_id: String,
    count: usize,
    from: SystemTime,
    /// What led to the change.
    chain: Chain,
    deadline: Instant,
}

impl LateRuns {
    pub(super) fn new(ends: LateEnds) -> LateRuns {
        LateRuns { ends, files: HashMap::new() }
    }

    /// Takes note of hooks that go on for a file.
    pub(super) fn add(&mut self, path: &Path, chain: Chain, from: SystemTime, run: &HookRun) {
        if let HookRun::Late { trace_id, count, timeout } = run {
            let deadline = after(Instant::now(), *timeout);
            let run = LateRun { trace_id: trace_id.clone(), count: *count, from, chain, deadline };
            self.files.insert(path.to_owned(), run);
        }
    }

    /// Whether no hooks go on.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether hooks go on for a file.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// The files whose hooks have ended since the last time, each with what led to it and when they ran.
    pub(super) fn take_ended(&mut self) -> Vec<(PathBuf, Chain, (SystemTime, SystemTime))> {
        let now = Instant::now();
        let ends = &self.ends;
        let end =
            |run: &LateRun| ends.last(&run.trace_id, run.count).or_else(|| (now >= run.deadline).then(SystemTime::now));
        let ended = self.files.extract_if(|_, run| end(run).is_some());
        let times = |run: &LateRun| (run.from, end(run).unwrap_or_else(SystemTime::now));
        ended.map(|(path, run)| (path, run.chain.clone(), times(&run))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_hooks_until_the_last_of_them_has_ended() {
        let ends = LateEnds::default();
        let (mut runs, path) = (LateRuns::new(ends.clone()), Path::new("/p/a"));
        let from = SystemTime::now();
        let run = HookRun::Late { trace_id: "1".to_owned(), count: 2, timeout: Duration::from_mins(1) };
        runs.add(path, Chain::default(), from, &run);
        ends.add("1");
        ends.add("2");
        assert!(runs.take_ended().is_empty() && runs.has(path));
        ends.add("1");
        let ended = runs.take_ended();
        assert!(
            matches!(ended.as_slice(), [(found, _, (began, end))] if found == path && *began == from && *end >= from)
        );
        assert!(!runs.has(path));
    }

    #[test]
    fn hooks_that_take_too_long_are_not_waited_for() {
        let (mut runs, path) = (LateRuns::default(), Path::new("/p/a"));
        let run = HookRun::Late { trace_id: "1".to_owned(), count: 1, timeout: Duration::ZERO };
        runs.add(path, Chain::default(), SystemTime::now(), &run);
        assert_eq!(runs.take_ended().len(), 1);
    }
}
