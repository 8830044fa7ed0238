//! Which hooks run for an event, in which order, and why each other one does not. Pure: no file, no clock.

use std::sync::Arc;

use ollm_protocol::{Event, EventKind, Hook};

use crate::registry::{Registry, declared};
use crate::report::{Reason, Skip};

/// What planning must know beside the registry and the event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Why no hook at all may run, if that is so.
    pub switched_off: Option<String>,
    /// Whether to list also the hooks of the event whose matcher does not fit.
    pub list_unfitting: bool,
}

/// What will happen for an event.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The event.
    pub event: EventKind,
    /// The hooks to run: stages one after the other, the hooks of a stage at once.
    pub stages: Vec<Vec<Arc<Hook>>>,
    /// The hooks that do not run.
    pub skipped: Vec<Skip>,
}

/// Plans an event.
pub fn plan(registry: &Registry, event: &Event, facts: &Facts) -> Plan {
    let mut plan = Plan { event: event.kind, stages: Vec::new(), skipped: Vec::new() };
    let subject = event.subject();
    for hook in registry.fitting(event.kind, subject) {
        if let Some(why) = &facts.switched_off {
            plan.skipped.push(Skip::new(hook, Reason::Disabled, why));
        } else if hook.spec.enabled {
            add(&mut plan.stages, hook);
        } else {
            let detail = format!("`enabled` is false in {}", declared(hook));
            plan.skipped.push(Skip::new(hook, Reason::Disabled, detail));
        }
    }
    if facts.list_unfitting {
        plan.skipped.extend(unfitting(registry, event.kind, subject));
    }
    plan
}

/// Neighbours that may run at once share a stage.
fn add(stages: &mut Vec<Vec<Arc<Hook>>>, hook: &Arc<Hook>) {
    if hook.spec.parallel
        && let Some(stage) = stages.last_mut()
        && stage.last().is_some_and(|neighbour| neighbour.spec.parallel)
    {
        stage.push(Arc::clone(hook));
    } else {
        stages.push(vec![Arc::clone(hook)]);
    }
}

fn unfitting(registry: &Registry, kind: EventKind, subject: Option<&str>) -> Vec<Skip> {
    let hooks = registry.for_event(kind);
    let others = hooks.iter().filter(|hook| !hook.matcher.matches(subject));
    let subject = subject.map_or_else(|| "an event without a subject".to_owned(), |subject| format!("`{subject}`"));
    others
        .map(|hook| Skip::new(hook, Reason::Matcher, format!("`{}` does not match {subject}", hook.matcher.text())))
        .collect()
}
