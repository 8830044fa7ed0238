//! A second answer to the same event: what hooks decided a moment ago stands, and only the built-in guards judge anew.

use std::sync::Arc;
use std::time::Instant;

use ollm_protocol::{Event, Flow, Source, Verdict};
use ollm_trust::Trusted;

use crate::engine::{Engine, Listing, trace_id};
use crate::merge::patched;
use crate::report::{Outcome, Report};

/// What an earlier dispatch of the same event decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Earlier {
    /// What all hooks decided together.
    pub verdict: Verdict,
    /// The dispatch.
    pub trace_id: String,
}

impl Engine {
    /// The outcome of an event that was dispatched a moment ago: no hook runs but the built-in ones. Nothing where those are
    /// stricter now than what was decided then; the event has to be dispatched again.
    pub fn repeat(&self, event: &Event, earlier: Earlier) -> Option<Outcome> {
        let (started, time) = (Instant::now(), self.trust.now());
        let Earlier { verdict, trace_id: answered_by } = earlier;
        let mut reports = self.judged_by_guards(event);
        let modified_args = patched(event, &verdict.patch);
        if let Some(args) = &modified_args {
            let mut changed = event.clone();
            changed.data.insert("args".to_owned(), args.clone().into());
            reports.extend(self.judged_by_guards(&changed));
        }
        let strictest = reports.iter().map(|report| report.verdict.flow).max().unwrap_or(Flow::NoOpinion);
        (strictest <= verdict.flow).then(|| Outcome {
            modified_args,
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
