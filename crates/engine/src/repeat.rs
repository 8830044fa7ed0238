//! Answers the same event a second time: an earlier decision of the hooks stands, and only the built-in guards run
//! again.

use std::sync::Arc;
use std::time::Instant;

use ollm_protocol::{Event, Flow, Source, Verdict};
use ollm_trust::Trusted;

use crate::engine::{Engine, Listing, trace_id};
use crate::merge::patched;
use crate::report::{Outcome, Report};

/// The decision of an earlier dispatch of the same event.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlierDecision {
    /// The merged verdict of all hooks.
    pub verdict: Verdict,
    /// The trace id of that dispatch.
    pub trace_id: String,
}

impl Engine {
    /// The outcome of an event that was dispatched a moment ago; only built-in hooks run. `None` if these are stricter
    /// now than the earlier decision: then the event must be dispatched again.
    pub fn repeat(&self, event: &Event, earlier: EarlierDecision) -> Option<Outcome> {
        let (started, time) = (Instant::now(), self.trust.now());
        let EarlierDecision { verdict, trace_id: answered_by } = earlier;
        let mut reports = self.judged_by_guards(event);
        let modified_args = patched(event, &verdict.patch);
        if let Some((field, args)) = &modified_args {
            let mut changed = event.clone();
            changed.data.insert((*field).to_owned(), args.clone().into());
            reports.extend(self.judged_by_guards(&changed));
        }
        let strictest = reports.iter().map(|report| report.verdict.flow).max().unwrap_or(Flow::NoOpinion);
        (strictest <= verdict.flow).then(|| Outcome {
            modified_args: modified_args.map(|(_, args)| args),
            verdict,
            plan: vec![reports.iter().map(|report| Arc::clone(&report.hook)).collect()],
            reports,
            trace_id: trace_id(time),
            answered_by: Some(answered_by),
            time,
            started,
            duration: started.elapsed(),
            ..Outcome::of(event.kind, Verdict::default())
        })
    }

    fn judged_by_guards(&self, event: &Event) -> Vec<Report> {
        let (plan, _) = self.planned(event, Listing::Fitting);
        let guards = plan.stages.iter().flatten().filter(|hook| hook.spec.source == Source::Builtin);
        let trusted: Vec<Trusted<_>> = guards.filter_map(|hook| self.trusted(hook).ok()).collect();
        self.run_many(&trusted, event)
    }
}
