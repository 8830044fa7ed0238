//! Which hooks run for an event, in which order, and why each other one does not. Pure: no file, no clock.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use ollm_protocol::{EventKind, Hook};

use crate::facts::Facts;
use crate::report::Skip;
use crate::select::{Candidate, Selection};
use crate::twin;

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

/// Plans what was selected for an event.
pub fn plan(event: EventKind, selection: Selection<'_>, facts: &Facts) -> Plan {
    let mut plan = Plan { event, stages: Vec::new(), skipped: selection.skipped };
    let mut twins = facts.twins.then(Twins::default);
    for Candidate { hook, failure } in selection.candidates {
        if failure.is_none()
            && let Err(skip) = facts.admit(hook)
        {
            plan.skipped.push(skip);
            continue;
        }
        let planned = Planned::new(hook, failure);
        if !twins.as_mut().is_some_and(|twins| twins.join(&mut plan.stages, &planned, facts)) {
            add(&mut plan.stages, planned);
        }
    }
    plan
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

/// The hooks of a plan, by what they do.
#[derive(Debug, Default)]
struct Twins {
    /// Fingerprint and place: stage, and position in it.
    places: HashMap<u64, Vec<(usize, usize)>>,
}

impl Twins {
    /// Puts a hook beside one that is planned already and does the same; if there is none, it will be the next of the plan.
    fn join(&mut self, stages: &mut [Vec<Planned>], new: &Planned, facts: &Facts) -> bool {
        let places = self.places.entry(twin::fingerprint(new)).or_default();
        let at = |place: &&(usize, usize)| stages.get(place.0).and_then(|stage| stage.get(place.1));
        let twin =
            places.iter().find(|place| at(place).is_some_and(|planned| twin::same(planned, new, facts))).copied();
        let earlier = twin.and_then(|(stage, position)| stages.get_mut(stage)?.get_mut(position));
        if let Some(earlier) = earlier {
            earlier.more.get_or_insert_with(|| Box::new(More::default())).twins.push(Arc::clone(&new.hook));
            return true;
        }
        places.push(next(stages, new));
        false
    }
}
