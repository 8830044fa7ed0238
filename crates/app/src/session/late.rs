//! Notices background hooks that fail, by their records in the trace, wherever they run.

use std::collections::VecDeque;

use ollm_agent::{Failure, LateFailure};
use ollm_engine::Outcome;
use ollm_protocol::EventKind;
use ollm_store::Follower;

use crate::app::App;
use crate::trace::LateEnd;

/// How many running hooks are remembered.
const MOST: usize = 256;

/// The running background hooks.
#[derive(Debug)]
pub(super) struct LateHooks {
    /// `None` if nothing is traced.
    follower: Option<Follower>,
    /// Whether other processes run them; those report failures themselves.
    are_released: bool,
    running: VecDeque<RunningHook>,
}

#[derive(Debug)]
struct RunningHook {
    trace_id: String,
    id: String,
    /// The hook's name for people.
    label: String,
    at: EventKind,
}

impl LateHooks {
    /// Follows the trace from now on.
    pub(super) fn new(app: &App) -> LateHooks {
        let follower = app.trace_log.as_ref().and_then(|trace_log| trace_log.follow().ok());
        let are_released = app.engine.environment().background.is_some();
        LateHooks { follower, are_released, running: VecDeque::new() }
    }

    /// Remembers the background hooks of an event.
    pub(super) fn add(&mut self, outcome: &Outcome) {
        if self.follower.is_none() {
            return;
        }
        for report in outcome.reports.iter().filter(|report| report.detached && report.error.is_none()) {
            if self.running.len() >= MOST {
                self.running.pop_front();
            }
            let (id, label) = (report.hook.id().to_owned(), report.hook.spec.label());
            self.running.push_back(RunningHook { trace_id: outcome.trace_id.clone(), id, label, at: outcome.event });
        }
    }

    /// The hooks that failed since the last call.
    pub(super) fn take_failed(&mut self) -> Vec<LateFailure> {
        let Some(follower) = self.follower.as_mut().filter(|_| !self.running.is_empty()) else { return Vec::new() };
        let lines = follower.read().unwrap_or_default();
        let ended = lines.iter().filter_map(|line| LateEnd::of_line(line));
        let failures = ended.filter_map(|late| failure(&mut self.running, late));
        failures.map(|(at, failure)| LateFailure { at, failure, is_told: self.are_released }).collect()
    }
}

/// The failure of a hook that has ended, if it is one of ours and failed.
fn failure(running: &mut VecDeque<RunningHook>, late: LateEnd) -> Option<(EventKind, Failure)> {
    let place = running.iter().position(|hook| hook.trace_id == late.trace_id && hook.id == late.id)?;
    let RunningHook { label, at, .. } = running.remove(place)?;
    let message = format!("{label} failed: {}", late.error?);
    Some((at, Failure { message, stack: late.stack }))
}
