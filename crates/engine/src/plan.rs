//! Which hooks run for an event, in which order, and why each other one does not. Pure: no file, no clock.

use std::ops::Deref;
use std::sync::Arc;

use ollm_protocol::{Event, EventKind, Hook, Subject};

use crate::facts::Facts;
use crate::registry::{Needs, Registry, declared};
use crate::report::{Reason, Skip};

pub(crate) mod duplicate;
mod narrow;

use duplicate::Twins;
pub(crate) use narrow::{Narrowed, narrow};

/// What will happen for an event.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The event.
    pub event: EventKind,
    /// The hooks to run: stages one after the other, the hooks of a stage at once.
    pub stages: Vec<Vec<Planned>>,
    /// The hooks that do not run.
    pub skipped: Vec<Skip>,
}

/// A hook that is to run.
#[derive(Clone, Debug)]
pub struct Planned {
    hook: Arc<Hook>,
    /// What only few have, so that the others stay cheap to copy.
    more: Option<Box<More>>,
}

#[derive(Clone, Debug, Default)]
struct More {
    failure: Option<String>,
    twins: Vec<Arc<Hook>>,
}

impl Planned {
    fn new(hook: &Arc<Hook>, failure: Option<String>) -> Planned {
        let more = failure.map(|failure| Box::new(More { failure: Some(failure), twins: Vec::new() }));
        Planned { hook: Arc::clone(hook), more }
    }

    /// Why it counts as failed without having run.
    pub fn failure(&self) -> Option<&str> {
        self.more.as_ref()?.failure.as_deref()
    }

    /// Later hooks that would do the very same thing: of all of them, the first that may run stands for the others.
    pub fn twins(&self) -> &[Arc<Hook>] {
        self.more.as_ref().map_or(&[], |more| &more.twins)
    }

    /// The hook and those that would do the same, in plan order.
    pub fn candidates(&self) -> impl Iterator<Item = &Arc<Hook>> {
        std::iter::once(&self.hook).chain(self.twins())
    }
}

impl Deref for Planned {
    type Target = Arc<Hook>;

    fn deref(&self) -> &Arc<Hook> {
        &self.hook
    }
}

/// Plans an event.
pub fn plan(registry: &Registry, event: &Event, facts: &Facts) -> Plan {
    let mut plan = Plan { event: event.kind, stages: Vec::new(), skipped: Vec::new() };
    let subject = event.subject();
    let needs = registry.needs(event.kind);
    let asks = Asks { some: needs.narrowing || needs.facts, all: !facts.exhausted.is_empty() };
    let mut twins = needs.twins.then(Twins::default);
    for hook in registry.fitting(event.kind, subject) {
        match fits(hook, event, facts, asks) {
            Ok(planned) if twins.as_mut().is_some_and(|twins| twins.join(&mut plan.stages, &planned, facts)) => {}
            Ok(planned) => add(&mut plan.stages, planned),
            Err(skip) => plan.skipped.push(skip),
        }
    }
    if facts.list_unfitting {
        plan.skipped.extend(unfitting(registry, event.kind, subject));
    }
    plan
}

/// Whether some hooks of an event ask for more than their matchers, or all are asked about more.
#[derive(Clone, Copy, Debug)]
struct Asks {
    some: bool,
    all: bool,
}

impl Asks {
    /// Whether this hook does. One that is plain pays nothing for what others ask.
    fn includes(self, hook: &Hook) -> bool {
        let own = || {
            let needs = Needs::of(hook);
            needs.narrowing || needs.facts
        };
        self.all || (self.some && own())
    }
}

fn fits(hook: &Arc<Hook>, event: &Event, facts: &Facts, asks: Asks) -> Result<Planned, Skip> {
    if let Some(why) = &facts.switched_off {
        return Err(Skip::new(hook, Reason::Disabled, why));
    }
    if let Some(why) = &hook.off {
        return Err(Skip::new(hook, Reason::Disabled, why));
    }
    if !hook.spec.enabled {
        return Err(Skip::new(hook, Reason::Disabled, format!("`enabled` is false in {}", declared(hook))));
    }
    if !asks.includes(hook) {
        return Ok(Planned::new(hook, None));
    }
    match narrow(hook, event, facts)? {
        Narrowed::Fails(why) => Ok(Planned::new(hook, Some(why))),
        Narrowed::Fits => facts.admit(hook).map(|()| Planned::new(hook, None)),
    }
}

/// Where a hook goes: neighbours that may run at once share a stage.
fn next(stages: &[Vec<Planned>], new: &Planned) -> (usize, usize) {
    match stages.last() {
        Some(stage) if new.spec.parallel && stage.last().is_some_and(|neighbour| neighbour.spec.parallel) => {
            (stages.len() - 1, stage.len())
        }
        _ => (stages.len(), 0),
    }
}

fn add(stages: &mut Vec<Vec<Planned>>, new: Planned) {
    let (stage, _) = next(stages, &new);
    match stages.get_mut(stage) {
        Some(stage) => stage.push(new),
        None => stages.push(vec![new]),
    }
}

fn unfitting(registry: &Registry, kind: EventKind, subject: Option<&str>) -> Vec<Skip> {
    let hooks = registry.for_event(kind);
    let about = subject.map(|name| Subject::new(kind, name));
    let others = hooks.iter().filter(|hook| !hook.matcher.matches(about));
    let subject = subject.map_or_else(|| "an event without a subject".to_owned(), |subject| format!("`{subject}`"));
    others
        .map(|hook| Skip::new(hook, Reason::Matcher, format!("`{}` does not match {subject}", hook.matcher.text())))
        .collect()
}
