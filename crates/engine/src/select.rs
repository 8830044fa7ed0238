//! Selects the candidates for an event: hooks that are switched on, have some approval, and are for the event by their
//! own keys. Pure; each hook's condition is evaluated once.

use std::cell::LazyCell;
use std::sync::Arc;

use ollm_protocol::{Event, Hook};

use crate::narrow::{Surroundings, is_narrow, narrow};
use crate::report::{Reason, Skip, declared};

/// The hooks for an event, in the order they should run, and why the others are not selected.
#[derive(Debug, Default)]
pub struct Selection<'a> {
    pub(crate) candidates: Vec<Candidate<'a>>,
    pub(crate) skipped: Vec<Skip>,
}

/// A hook that is for an event.
#[derive(Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) hook: &'a Arc<Hook>,
    /// Why it counts as failed without having run.
    pub(crate) failure: Option<String>,
}

/// Selects among the hooks whose matcher fits. If `refusal` gives a reason for a hook, its keys are not evaluated.
pub fn select<'a>(
    found: Vec<&'a Arc<Hook>>,
    event: &Event,
    refusal: impl Fn(&Arc<Hook>) -> Option<Skip>,
    surroundings: impl FnOnce() -> Surroundings,
) -> Selection<'a> {
    let surroundings = LazyCell::new(surroundings);
    let lacking = event.missing_subject();
    let mut selection = Selection { candidates: Vec::with_capacity(found.len()), skipped: Vec::new() };
    for hook in found {
        let failure = match disabled(hook).or_else(|| refusal(hook)) {
            Some(skip) => Err(skip),
            None if lacking.is_some() && !hook.matcher.matches(None) => unmatched(hook, lacking.unwrap_or_default()),
            None if !is_narrow(hook) => Ok(None),
            None => narrow(hook, event, &|| &surroundings),
        };
        match failure {
            Ok(failure) => selection.candidates.push(Candidate { hook, failure }),
            Err(skip) => selection.skipped.push(skip),
        }
    }
    selection
}

impl<'a> Selection<'a> {
    /// The hooks that can run, as opposed to those that count as failed.
    pub(crate) fn able(&self) -> Vec<&'a Arc<Hook>> {
        self.candidates.iter().filter(|candidate| candidate.failure.is_none()).map(|candidate| candidate.hook).collect()
    }
}

/// A hook whose matcher has no subject to check. A gate fails, because it might be for this very event.
fn unmatched(hook: &Arc<Hook>, field: &str) -> Result<Option<String>, Skip> {
    let why = format!("the event has no `{field}`, which its matcher `{}` looks at", hook.matcher.text());
    Skip::new(hook, Reason::Matcher, why).failure_of_gate().map(Some)
}

/// Why a hook is off, if it is.
pub(crate) fn disabled(hook: &Arc<Hook>) -> Option<Skip> {
    if let Some(why) = &hook.off {
        return Some(Skip::new(hook, Reason::Disabled, why));
    }
    (!hook.spec.enabled).then(|| Skip::new(hook, Reason::Disabled, format!("`enabled` is false in {}", declared(hook))))
}
