//! The engine as the agent sees it: every event is dispatched, and leaves its record.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use ollm_agent::{Cancel, Decision, Events, Failure, HookNote, LateFailure};
use ollm_engine::{Outcome, Reason, Report};
use ollm_protocol::{Event, EventKind, FileChange};
use ollm_store::cut;

use super::late::LateHooks;
use crate::live_app::LiveApp;
use crate::port::{Notices, Shared};
use crate::trace;
use crate::watch::FileNote;

/// How long all hooks together may take between an interruption and the end.
const WAY_OUT: Duration = Duration::from_secs(5);

/// The most of a list of tools that a line shows.
const LONGEST_LIST: usize = 200;

/// Hears of every event and what came of it.
pub type EventListener<'a> = Box<dyn FnMut(&Event, &Decision, &Outcome) + Send + 'a>;

/// The engine as the agent sees it.
pub(crate) struct Hooks<'a, 'o> {
    hook_context: HookContext<'a, 'o>,
    /// Hooks that did not run and that the person knows about.
    told: BTreeSet<String>,
    /// Whether the person knows that nothing is traced.
    untraced: bool,
    cancel: Cancel,
    /// When the first event after an interruption came.
    leaving: Option<Instant>,
    late: LateHooks,
    hear: EventListener<'a>,
}

/// Where events are dispatched, and where people are told of it.
#[derive(Clone, Copy)]
pub struct HookContext<'a, 'o> {
    /// Read anew between turns, never within one.
    pub app: &'a LiveApp,
    /// Who is told.
    pub notices: &'a Shared<dyn Notices + 'o>,
}

impl Events for Hooks<'_, '_> {
    fn dispatch(&mut self, event: &Event) -> Decision {
        let note = FileNote::begin(event, self.hook_context.app.read().context());
        let (decision, _) = self.decide(event);
        drop(note);
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
        let late = LateHooks::new(hook_context.app.read().trail.as_ref());
        Hooks { hook_context, told: BTreeSet::new(), untraced: false, cancel, leaving: None, late, hear }
    }

    /// Passes an event on; what was decided, and how.
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

    /// An interruption ends the hooks of the event under way. Those of the events that still follow, on the way out, have
    /// a little time in all, and a second interruption takes it from them.
    fn pass(&mut self, event: &Event) -> Outcome {
        let app = self.hook_context.app.read();
        let cancel = &self.cancel;
        if !cancel.is_set() {
            self.leaving = None;
            let noticed = OnceLock::new();
            // A terminal that is closed ends the input and sends a signal, in either order: the hooks of the end have
            // their time also where the signal comes second.
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

    /// Writes down what came of an event. That it cannot be written is told once and changes nothing.
    fn trace(&mut self, event: &Event, outcome: &Outcome) {
        let HookContext { app, notices } = self.hook_context;
        let mut notices = notices.lock();
        if let Err(why) = trace::record(&app.read(), event, outcome, &mut *notices)
            && !std::mem::replace(&mut self.untraced, true)
        {
            notices.tell(&why);
        }
    }

    /// What a person should know about hooks that did not run, once.
    fn news(&mut self, outcome: &Outcome) -> Vec<HookNote> {
        let mut news = Vec::new();
        for skip in &outcome.skipped {
            let matters =
                matches!(skip.reason, Reason::Untrusted | Reason::Modified | Reason::Unsafe | Reason::Missing);
            if matters && self.told.insert(skip.hook.id().to_owned()) {
                news.push(said(&skip.hook.spec.name, &format!("did not run: {}", skip.detail)));
            }
        }
        news
    }
}

/// What hooks changed about what was to happen, a line each.
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
    // Without a report it is the approval that is missing.
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
