//! Passes the agent's events to the engine, and records them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ollm_agent::{Cancel, Decision, Events, Failure, HookNote, LateFailure};
use ollm_engine::{Outcome, Reason, Report};
use ollm_protocol::{Event, EventKind, FileChange, HookSpec};
use ollm_store::cut;

use super::late::LateHooks;
use crate::live_app::LiveApp;
use crate::port::{Notices, SharedPort};
use crate::trace;
use crate::watch::{FileNote, ProjectWatch};

/// How long all hooks together may take between an interruption and the end.
const WAY_OUT: Duration = Duration::from_secs(5);

/// The longest list of tools in a line.
const LONGEST_LIST: usize = 200;

/// Receives every event with its decision and outcome.
pub type EventListener<'a> = Box<dyn FnMut(&Event, &Decision, &Outcome) + Send + 'a>;

/// The engine in the form that the agent uses.
pub(crate) struct Hooks<'a, 'o> {
    hook_context: HookContext<'a, 'o>,
    /// Hooks that did not run and that the person was told of.
    told: BTreeSet<String>,
    /// Whether the person was told that records cannot be written.
    untraced: bool,
    cancel: Cancel,
    /// The time of the first event after an interruption.
    leaving: Option<Instant>,
    late: LateHooks,
    hear: EventListener<'a>,
}

/// The application and the listeners that events need.
#[derive(Clone, Copy)]
pub struct HookContext<'a, 'o> {
    /// Reloaded between turns, never within one.
    pub app: &'a LiveApp,
    /// The listeners for notices.
    pub notices: &'a SharedPort<dyn Notices + 'o>,
}

impl Events for Hooks<'_, '_> {
    fn dispatch(&mut self, event: &Event) -> Decision {
        let watch = Arc::clone(&self.hook_context.app.read().watch);
        let is_watchs = || watch.lock().as_ref().is_some_and(ProjectWatch::is_telling);
        // For events of its own, the watch writes the note.
        let note = if event.kind.is_file() && is_watchs() {
            None
        } else {
            FileNote::begin(event, self.hook_context.app.read().context())
        };
        let (decision, _) = self.decide(event);
        if note.is_some() {
            drop(note);
            // The file's present state was told; the next tool may change it again.
            if let Some(watch) = &mut *watch.lock() {
                watch.hear();
            }
        }
        decision
    }

    fn changed_before(&mut self, path: &Path) -> Option<FileChange> {
        self.hook_context.app.read().watch.lock().as_mut()?.change_of(path)
    }

    fn late_failures(&mut self) -> Vec<LateFailure> {
        self.late.take_failed()
    }
}

impl<'a, 'o> Hooks<'a, 'o> {
    pub(crate) fn new(hook_context: HookContext<'a, 'o>, cancel: Cancel, hear: EventListener<'a>) -> Hooks<'a, 'o> {
        let late = LateHooks::new(&hook_context.app.read());
        Hooks { hook_context, told: BTreeSet::new(), untraced: false, cancel, leaving: None, late, hear }
    }

    /// Passes an event to the hooks; returns the decision and the outcome.
    pub(crate) fn decide(&mut self, event: &Event) -> (Decision, Outcome) {
        let outcome = self.pass(event);
        self.trace(event, &outcome);
        self.late.add(&outcome);
        let mut decision = decision(&outcome);
        decision.messages.extend(self.news(&outcome));
        decision.messages.extend(deeds(event, &outcome));
        (self.hear)(event, &decision, &outcome);
        (decision, outcome)
    }

    /// Runs the hooks of an event. An interruption ends them. The hooks of later events share a short time, and a
    /// second interruption ends that too.
    fn pass(&mut self, event: &Event) -> Outcome {
        let app = self.hook_context.app.read();
        let cancel = &self.cancel;
        if !cancel.is_set() {
            self.leaving = None;
            let noticed = OnceLock::new();
            // A closed terminal ends the input and sends a signal, in either order. The hooks of the end get their time
            // even if the signal comes second.
            let parting = || {
                event.kind == EventKind::SessionEnd
                    && cancel.is_final()
                    && noticed.get_or_init(Instant::now).elapsed() < WAY_OUT
            };
            return app.dispatch_until(event, &|| cancel.is_set() && !parting());
        }
        let since = *self.leaving.get_or_insert_with(Instant::now);
        let last = cancel.is_final();
        app.dispatch_until(event, &|| since.elapsed() >= WAY_OUT || (!last && cancel.is_final()))
    }

    /// Records an event. If that fails, the person is told once, and nothing else changes.
    fn trace(&mut self, event: &Event, outcome: &Outcome) {
        let HookContext { app, notices } = self.hook_context;
        let mut notices = notices.lock();
        if let Err(why) = trace::record(&app.read(), event, outcome, &mut *notices)
            && !std::mem::replace(&mut self.untraced, true)
        {
            notices.tell(&why);
        }
    }

    /// New notes for the person about hooks that did not run.
    fn news(&mut self, outcome: &Outcome) -> Vec<HookNote> {
        let mut news = Vec::new();
        for skip in &outcome.skipped {
            let matters =
                matches!(skip.reason, Reason::Untrusted | Reason::Modified | Reason::Unsafe | Reason::Missing);
            if matters && self.told.insert(skip.hook.id().to_owned()) {
                let HookSpec { name, extension, .. } = &skip.hook.spec;
                let whose = extension.as_ref().map(|extension| format!(" (extension `{extension}`)"));
                news.push(said(name, &format!("did not run{}: {}", whose.unwrap_or_default(), skip.detail)));
            }
        }
        news
    }
}

/// The changes that hooks made, one line each.
fn deeds(event: &Event, outcome: &Outcome) -> Vec<HookNote> {
    let tool = event.text("tool_name").unwrap_or("the call");
    let mut deeds = Vec::new();
    for report in &outcome.reports {
        let verdict = &report.verdict;
        let mut deed = |text: String| deeds.push(said(&report.hook.spec.name, &text));
        if outcome.modified_args.is_some() && !verdict.patch.is_empty() {
            deed(format!("changed the arguments of {tool}"));
        }
        if let Some(tools) = verdict.tools.as_ref().filter(|_| event.kind == EventKind::BeforeToolSelection) {
            deed(format!("left only these tools on offer: {}", cut(&tools.join(", "), LONGEST_LIST)));
        }
        if verdict.result.is_some() && event.kind == EventKind::AfterTool {
            deed(format!("replaced the result of {tool}"));
        }
    }
    deeds
}

fn decision(outcome: &Outcome) -> Decision {
    let verdict = &outcome.verdict;
    let stands = outcome.reports.iter().find(|report| report.verdict.flow == verdict.flow);
    // Without a report, the approval is missing.
    let name = stands.map(|report| &report.hook).or_else(|| outcome.skipped.first().map(|skip| &skip.hook));
    Decision {
        flow: verdict.flow,
        reason: verdict.reason(),
        refused_by: name.filter(|_| !verdict.flow.continues()).map(|hook| hook.spec.name.clone()),
        system_messages: verdict.system_messages.clone(),
        messages: by_hook(outcome, |verdict| &verdict.messages),
        context: verdict.context.clone(),
        args: outcome.modified_args.clone(),
        result: verdict.result.clone(),
        tools: verdict.tools.clone(),
        prompts: by_hook(outcome, |verdict| &verdict.prompts),
        data: verdict.data.clone(),
        failures: outcome.reports.iter().filter_map(failure).collect(),
    }
}

fn failure(report: &Report) -> Option<Failure> {
    Some(Failure { message: report.failure()?, stack: report.stack.clone() })
}

fn by_hook(outcome: &Outcome, texts: fn(&ollm_protocol::Verdict) -> &Vec<String>) -> Vec<HookNote> {
    let reports = outcome.reports.iter();
    reports.flat_map(|report| texts(&report.verdict).iter().map(|text| said(&report.hook.spec.name, text))).collect()
}

fn said(hook: &str, text: &str) -> HookNote {
    HookNote { hook: hook.to_owned(), text: text.to_owned() }
}
