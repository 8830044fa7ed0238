//! Merges reports into one verdict: applies each hook's failure policy, and passes changes from one hook to the next.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use ollm_protocol::{Event, Hook, OnFailure, Verdict, tool};
use serde_json::{Map, Value};

use crate::report::{Outcome, Report, Skip};

/// Applies the failure policy to what a failed hook decided.
///
/// A readable refusal counts under every policy. A failure alone never looks like a refusal: the reason says that the
/// hook failed.
pub(crate) fn apply_policy(mut report: Report) -> Report {
    let name = &report.hook.spec.name;
    if report.verdict.reasons.is_empty() && !report.verdict.flow.continues() {
        let deed = if report.refused { "refused by" } else { "a person is asked for by" };
        report.verdict.reasons.push(format!("{deed} hook `{name}`"));
    }
    let Some(reason) = report.failure().filter(|_| !report.refused && !report.detached) else { return report };
    let policy = match report.hook.on_failure.value {
        OnFailure::Allow => return report,
        OnFailure::Block => Verdict::block(reason),
        OnFailure::Ask => Verdict::ask(reason),
    };
    report.verdict = report.verdict.then(policy);
    report
}

/// When a dispatch began, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DispatchStart {
    pub(crate) started: Instant,
    pub(crate) time: SystemTime,
}

/// An event on its way through the stages, with all decisions so far.
#[derive(Debug)]
pub(crate) struct Progress<'e> {
    /// Copied only when a hook changes it: most hooks do not, and a conversation in it may be long.
    event: Cow<'e, Event>,
    pub(crate) verdict: Verdict,
    pub(crate) reports: Vec<Report>,
    pub(crate) skipped: Vec<Skip>,
    /// The hook whose refusal ended the chain.
    pub(crate) stopped_by: Option<String>,
}

impl<'e> Progress<'e> {
    pub(crate) fn new(event: &'e Event, skipped: Vec<Skip>) -> Progress<'e> {
        let event = Cow::Borrowed(event);
        Progress { event, verdict: Verdict::default(), reports: Vec::new(), skipped, stopped_by: None }
    }

    /// The event as the next stage sees it: patched arguments, kept tools, and the data of earlier hooks.
    pub(crate) fn event(&self) -> Cow<'_, Event> {
        if self.verdict.data.is_empty() {
            return Cow::Borrowed(&self.event);
        }
        Cow::Owned(Event::clone(&self.event).with_extra(&self.verdict.data))
    }

    /// Merges the decisions of a stage, in plan order.
    pub(crate) fn take(&mut self, reports: Vec<Report>) {
        for report in reports {
            let verdict = report.verdict.clone();
            if let Some((field, args)) = patched(&self.event, &verdict.patch) {
                self.event.to_mut().data.insert(field.to_owned(), args.into());
            }
            if let Some(kept) = &verdict.tools {
                self.event.to_mut().keep_tools(kept);
            }
            if report.refused && !report.hook.dialect.defaults().runs_on_after_refusal {
                self.stopped_by.get_or_insert_with(|| report.hook.id().to_owned());
            }
            self.verdict = std::mem::take(&mut self.verdict).then(verdict);
            self.reports.push(report);
        }
    }

    pub(crate) fn finish(
        mut self,
        original: &Event,
        plan: Vec<Vec<Arc<Hook>>>,
        begun: DispatchStart,
        trace_id: &str,
    ) -> Outcome {
        // A tool filter only removes tools: a tool that was not offered is not kept.
        if let Some(kept) = self.verdict.tools.as_mut().filter(|_| original.data.contains_key("available_tools")) {
            let offered = original.offered_tools();
            kept.retain(|tool| offered.contains(&tool.as_str()));
        }
        Outcome {
            event: self.event.kind,
            modified_args: patched(original, &self.verdict.patch).map(|(_, args)| args),
            verdict: self.verdict,
            reports: self.reports,
            skipped: self.skipped,
            trace_id: trace_id.to_owned(),
            answered_by: None,
            unheard: None,
            notes: Vec::new(),
            plan,
            time: begun.time,
            started: begun.started,
            duration: begun.started.elapsed(),
        }
    }
}

/// The complete arguments with a patch applied, and the name of their field; `None` if that changes nothing.
pub(crate) fn patched(event: &Event, patch: &Map<String, Value>) -> Option<(&'static str, Map<String, Value>)> {
    if patch.is_empty() {
        return None;
    }
    let ((_, field), (name, before)) = (event.kind.call_fields()?, event.call()?);
    let before = before.cloned().unwrap_or_default();
    let args = tool::patched(name, &before, patch);
    (args != before).then_some((field, args))
}
