//! The engine as the agent sees it: every event is dispatched, and leaves its record.

use std::cell::RefCell;
use std::collections::BTreeSet;

use ollm_agent::{Decision, Events, Said};
use ollm_engine::{Outcome, Reason};
use ollm_protocol::Event;

use crate::app::App;
use crate::output::Output;
use crate::trace;
use crate::world::World;

pub(super) type Hear<'a> = Box<dyn FnMut(&Event, &Decision, &Outcome) + 'a>;

/// The engine as the agent sees it.
pub(super) struct Hooks<'a, 'o> {
    desk: Desk<'a, 'o>,
    /// Hooks that did not run and that the person knows about.
    told: BTreeSet<String>,
    /// Whether the person knows that nothing is traced.
    untraced: bool,
    hear: Hear<'a>,
}

/// Where events are dispatched, and where people are told of it.
#[derive(Clone, Copy)]
pub(crate) struct Desk<'a, 'o> {
    /// Read anew between turns, never within one.
    pub(crate) app: &'a RefCell<App>,
    pub(crate) world: &'a World,
    pub(crate) output: &'a RefCell<&'o mut Output>,
}

impl Events for Hooks<'_, '_> {
    fn dispatch(&mut self, event: &Event) -> Decision {
        let outcome = self.desk.app.borrow().engine.dispatch(event);
        self.trace(event, &outcome);
        let mut decision = decision(&outcome);
        decision.messages.extend(self.news(&outcome));
        (self.hear)(event, &decision, &outcome);
        decision
    }
}

impl<'a, 'o> Hooks<'a, 'o> {
    pub(super) fn new(desk: Desk<'a, 'o>, hear: Hear<'a>) -> Hooks<'a, 'o> {
        Hooks { desk, told: BTreeSet::new(), untraced: false, hear }
    }

    /// Writes down what came of an event. That it cannot be written is told once and changes nothing.
    fn trace(&mut self, event: &Event, outcome: &Outcome) {
        let Desk { app, world, output } = self.desk;
        let mut output = output.borrow_mut();
        if let Err(why) = trace::record(&app.borrow(), event, outcome, world, &mut output)
            && !std::mem::replace(&mut self.untraced, true)
        {
            output.tell(&why);
        }
    }

    /// What a person should know about hooks that did not run, once, and about those that failed.
    fn news(&mut self, outcome: &Outcome) -> Vec<Said> {
        let mut news = Vec::new();
        for skip in &outcome.skipped {
            let matters =
                matches!(skip.reason, Reason::Untrusted | Reason::Modified | Reason::Unsafe | Reason::Missing);
            if matters && self.told.insert(skip.hook.id().to_owned()) {
                news.push(said(&skip.hook.spec.name, &format!("did not run: {}", skip.detail)));
            }
        }
        for report in &outcome.reports {
            if let Some(error) = &report.error {
                news.push(said(&report.hook.spec.name, &format!("failed: {error}")));
            }
        }
        news
    }
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
    }
}

fn by_hook(outcome: &Outcome, texts: fn(&ollm_protocol::Verdict) -> &Vec<String>) -> Vec<Said> {
    let reports = outcome.reports.iter();
    reports.flat_map(|report| texts(&report.verdict).iter().map(|text| said(&report.hook.spec.name, text))).collect()
}

fn said(hook: &str, text: &str) -> Said {
    Said { hook: hook.to_owned(), text: text.to_owned() }
}
