//! Background hooks: until they have ended, changes of the files that they were called for count as theirs.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use ollm_engine::{Outcome, Report};
use ollm_process::{BoxMeans, BoxRules, ProcessBox, after};
use ollm_protocol::{Hook, Needs};

use super::cause::Chain;

/// How many ends of hooks are remembered.
const MOST: usize = 4096;

/// Whether hooks that may have written files ran for a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HookRun {
    /// No such hook ran.
    #[default]
    None,
    /// Such hooks ran, and have ended.
    Ended {
        /// When the last of them ended.
        until: SystemTime,
        /// How many there were.
        count: usize,
    },
    /// Such hooks are still running.
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
    /// The run in an outcome, with only the hooks that may have written to a file of the project.
    pub fn of(outcome: &Outcome, project: &Path, file: &Path) -> HookRun {
        let ran = || outcome.reports.iter().filter(|report| may_write(&report.hook, project, file));
        let late = || ran().filter(|report| report.detached);
        if let Some(timeout) = late().map(|report| report.hook.timeout.value).max() {
            return HookRun::Late { trace_id: outcome.trace_id.clone(), count: late().count(), timeout };
        }
        let (instant, now) = (Instant::now(), SystemTime::now());
        let end = |report: &Report| now - instant.saturating_duration_since(report.started + report.duration);
        ran().map(end).max().map_or(HookRun::None, |until| HookRun::Ended { until, count: ran().count() })
    }
}

/// Whether a hook may have written to a file. A hook with declared permissions is held to them, or does not run. A hook
/// with the strictest box because of its origin is held to it only if the kernel has boxes.
fn may_write(hook: &Hook, project: &Path, file: &Path) -> bool {
    // If an address handles an event, another program does the work.
    if matches!(hook.spec.action.needs(), Needs::Nothing | Needs::Address(_)) {
        return false;
    }
    let Some(permissions) = &hook.permissions else { return true };
    let place = |path: &String| path.starts_with('~') || file.starts_with(real(&project.join(path)));
    let is_held = || hook.spec.permissions.is_some() || has_boxes();
    permissions.write.iter().any(place) || !is_held()
}

/// A path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn has_boxes() -> bool {
    ProcessBox::new(BoxMeans::Landlock, &BoxRules::default()).is_ok()
}

/// A run of hooks that may have written to their file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WritingRun {
    pub(super) from: SystemTime,
    pub(super) until: SystemTime,
    /// How many hooks there were.
    pub(super) count: usize,
}

/// The times at which background hooks ended, by their dispatch.
#[derive(Clone, Debug, Default)]
pub(crate) struct LateEnds(Arc<Mutex<VecDeque<(String, SystemTime)>>>);

impl LateEnds {
    /// Notes that a hook of this dispatch has ended.
    pub(crate) fn add(&self, trace_id: &str) {
        let mut ends = self.lock();
        if ends.len() >= MOST {
            ends.pop_front();
        }
        ends.push_back((trace_id.to_owned(), SystemTime::now()));
    }

    /// When the last of this many hooks of a dispatch ended, if all have ended.
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

/// The files with running background hooks.
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
    /// The chain that led to the change.
    chain: Chain,
    deadline: Instant,
}

impl LateRuns {
    pub(super) fn new(ends: LateEnds) -> LateRuns {
        LateRuns { ends, files: HashMap::new() }
    }

    /// Adds background hooks that run for a file.
    pub(super) fn add(&mut self, path: &Path, chain: Chain, from: SystemTime, run: &HookRun) {
        if let HookRun::Late { trace_id, count, timeout } = run {
            let deadline = after(Instant::now(), *timeout);
            let run = LateRun { trace_id: trace_id.clone(), count: *count, from, chain, deadline };
            self.files.insert(path.to_owned(), run);
        }
    }

    /// Whether no background hooks run.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether background hooks run for a file.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// The files whose background hooks have ended since the last call, each with its chain and its run.
    pub(super) fn take_ended(&mut self) -> Vec<(PathBuf, Chain, WritingRun)> {
        let now = Instant::now();
        let ends = &self.ends;
        let end =
            |run: &LateRun| ends.last(&run.trace_id, run.count).or_else(|| (now >= run.deadline).then(SystemTime::now));
        let ended = self.files.extract_if(|_, run| end(run).is_some());
        let ran = |run: &LateRun| WritingRun {
            from: run.from,
            until: end(run).unwrap_or_else(SystemTime::now),
            count: run.count,
        };
        ended.map(|(path, run)| (path, run.chain.clone(), ran(&run))).collect()
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
            matches!(ended.as_slice(), [(found, _, ran)] if found == path && ran.from == from && ran.until >= from && ran.count == 2)
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
