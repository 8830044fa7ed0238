//! Plans which hooks run for an event, in which order, and why each other one does not. Pure: no file, no clock.

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
    /// The hooks to run: stages run one after the other, the hooks of a stage at once.
    pub stages: Vec<Vec<PlannedHook>>,
    /// The hooks that do not run.
    pub skipped: Vec<Skip>,
}

/// A hook in the plan.
#[derive(Clone, Debug)]
pub struct PlannedHook {
    hook: Arc<Hook>,
    /// Rare fields, kept apart so that the common case is cheap to copy.
    more: Option<Box<PlannedExtras>>,
}

#[derive(Clone, Debug, Default)]
struct PlannedExtras {
    failure: Option<String>,
    twins: Vec<Arc<Hook>>,
}

/// A hook that would run now, or fail without running.
#[derive(Clone, Debug)]
pub struct ForecastStep {
    /// The hook.
    pub hook: Arc<Hook>,
    /// Why it would fail.
    pub failure: Option<String>,
}

impl PlannedHook {
    fn new(hook: &Arc<Hook>, failure: Option<String>) -> PlannedHook {
        let more = failure.map(|failure| Box::new(PlannedExtras { failure: Some(failure), twins: Vec::new() }));
        PlannedHook { hook: Arc::clone(hook), more }
    }

    /// Why it counts as failed without having run.
    pub fn failure(&self) -> Option<&str> {
        self.more.as_ref()?.failure.as_deref()
    }

    /// Later hooks that do exactly the same. Of the hook and its twins, only the first that may run does.
    pub fn twins(&self) -> &[Arc<Hook>] {
        self.more.as_ref().map_or(&[], |more| &more.twins)
    }

    /// The hook and those that would do the same, in plan order.
    pub fn candidates(&self) -> impl Iterator<Item = &Arc<Hook>> {
        std::iter::once(&self.hook).chain(self.twins())
    }
}

impl Deref for PlannedHook {
    type Target = Arc<Hook>;

    fn deref(&self) -> &Arc<Hook> {
        &self.hook
    }
}

/// Makes the plan from the hooks selected for an event.
pub fn plan(event: EventKind, selection: Selection<'_>, facts: &Facts) -> Plan {
    let mut plan = Plan { event, stages: Vec::new(), skipped: selection.skipped };
    let mut twins = facts.twins.then(Twins::default);
    for Candidate { hook, failure } in selection.candidates {
        let failure = match failure.map_or_else(|| facts.admit(hook), |failure| Ok(Some(failure))) {
            Ok(failure) => failure,
            Err(skip) => {
                plan.skipped.push(skip);
                continue;
            }
        };
        let planned = PlannedHook::new(hook, failure);
        if !twins.as_mut().is_some_and(|twins| twins.join(&mut plan.stages, &planned, facts)) {
            add(&mut plan.stages, planned);
        }
    }
    plan
}

/// The place of a new hook: neighbours that may run in parallel share a stage.
fn next(stages: &[Vec<PlannedHook>], new: &PlannedHook) -> (usize, usize) {
    match stages.last() {
        Some(stage) if new.spec.parallel && stage.last().is_some_and(|neighbour| neighbour.spec.parallel) => {
            (stages.len() - 1, stage.len())
        }
        _ => (stages.len(), 0),
    }
}

fn add(stages: &mut Vec<Vec<PlannedHook>>, new: PlannedHook) {
    let (stage, _) = next(stages, &new);
    match stages.get_mut(stage) {
        Some(stage) => stage.push(new),
        None => stages.push(vec![new]),
    }
}

/// The hooks of a plan, by fingerprint.
#[derive(Debug, Default)]
struct Twins {
    /// By fingerprint, each place as a stage and the position in it.
    places: HashMap<u64, Vec<(usize, usize)>>,
}

impl Twins {
    /// Adds a hook to the twins of a planned one that does the same. Otherwise it notes the hook as the next one of the
    /// plan.
    fn join(&mut self, stages: &mut [Vec<PlannedHook>], new: &PlannedHook, facts: &Facts) -> bool {
        let places = self.places.entry(twin::fingerprint(new)).or_default();
        let at = |place: &&(usize, usize)| stages.get(place.0).and_then(|stage| stage.get(place.1));
        let twin =
            places.iter().find(|place| at(place).is_some_and(|planned| twin::same(planned, new, facts))).copied();
        let earlier = twin.and_then(|(stage, position)| stages.get_mut(stage)?.get_mut(position));
        if let Some(earlier) = earlier {
            earlier.more.get_or_insert_with(|| Box::new(PlannedExtras::default())).twins.push(Arc::clone(&new.hook));
            return true;
        }
        places.push(next(stages, new));
        false
    }
}
