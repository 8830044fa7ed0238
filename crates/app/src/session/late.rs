//! Hooks that nobody waits for, and that fail: heard of by the records that they leave in the trace, wherever they run.

use std::collections::VecDeque;

use ollm_agent::{Failure, LateFailure};
use ollm_engine::Outcome;
use ollm_protocol::EventKind;
use ollm_store::{Follower, RotatingLog};

use crate::trace::LateEnd;

/// How many are remembered while they run.
const MOST: usize = 256;

/// The hooks that go on, and what becomes of them.
#[derive(Debug)]
pub(super) struct LateHooks {
    /// None where nothing is traced.
    follower: Option<Follower>,
    running: VecDeque<Running>,
}

#[derive(Debug)]
struct Running {
    trace_id: String,
    id: String,
    /// The hook as people are told of it.
    label: String,
    at: EventKind,
}

impl LateHooks {
    /// Follows the trace from now on.
    pub(super) fn new(trail: Option<&RotatingLog>) -> LateHooks {
        LateHooks { follower: trail.and_then(|trail| trail.follow().ok()), running: VecDeque::new() }
    }

    /// Remembers the hooks of an event that go on.
    pub(super) fn add(&mut self, outcome: &Outcome) {
        if self.follower.is_none() {
            return;
        }
        for report in outcome.reports.iter().filter(|report| report.detached && report.error.is_none()) {
            if self.running.len() >= MOST {
                self.running.pop_front();
            }
            let (id, label) = (report.hook.id().to_owned(), report.hook.spec.label());
            self.running.push_back(Running { trace_id: outcome.trace_id.clone(), id, label, at: outcome.event });
        }
    }

    /// Those that failed since the last time.
    pub(super) fn take_failed(&mut self) -> Vec<LateFailure> {
        let Some(follower) = self.follower.as_mut().filter(|_| !self.running.is_empty()) else { return Vec::new() };
        let lines = follower.read().unwrap_or_default();
        let ended = lines.iter().filter_map(|line| LateEnd::of_line(line));
        ended.filter_map(|late| failure(&mut self.running, late)).collect()
    }
}

/// The failure of a hook that has ended, if it is one of ours and did fail.
fn failure(running: &mut VecDeque<Running>, late: LateEnd) -> Option<LateFailure> {
    let place = running.iter().position(|hook| hook.trace_id == late.trace_id && hook.id == late.id)?;
    let Running { label, at, .. } = running.remove(place)?;
    let message = format!("{label} failed: {}", late.error?);
    Some(LateFailure { at, failure: Failure { message, stack: None } })
}
