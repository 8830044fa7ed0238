//! From a planned stage to one in which everything may run: what trust refuses is skipped, or fails where its policy says
//! so.

use std::sync::Arc;

use ollm_protocol::{Event, Hook};
use ollm_trust::{Refusal, RefusalReason, Trust, TrustContext, Trusted};

use crate::environment::Environment;
use crate::plan::Planned;
use crate::report::{Reason, Skip};
use crate::twin;

/// One step of a cleared plan.
#[derive(Debug)]
pub enum Step {
    /// Run it.
    Run(Trusted<Hook>),
    /// It cannot run, and its failure policy makes that count.
    Fail(Arc<Hook>, String),
}

impl Step {
    /// The hook.
    pub fn hook(&self) -> &Arc<Hook> {
        match self {
            Step::Run(trusted) => trusted.hook(),
            Step::Fail(hook, _) => hook,
        }
    }
}

/// A stage in which everything may run.
#[derive(Debug)]
pub struct Cleared {
    /// What to do, at once.
    pub steps: Vec<Step>,
    /// The hooks that do not run.
    pub skipped: Vec<Skip>,
}

/// Lets the hooks of a stage through that may run; the others become skips, or failures where their policy says so.
pub fn clear(stage: Vec<Planned>, trust: &Trust, environment: &Environment, event: &Event) -> Cleared {
    let mut cleared = Cleared { steps: Vec::with_capacity(stage.len()), skipped: Vec::new() };
    for planned in stage {
        let mut candidates = planned.candidates();
        for hook in candidates.by_ref() {
            let folder = environment.folder(hook, event);
            let context = TrustContext { folder: Some(&folder), ..environment.trust_context() };
            match trust.trust(hook, &context, event.session_id()) {
                Ok(trusted) => cleared.steps.push(match planned.failure() {
                    None => Step::Run(trusted),
                    Some(why) => Step::Fail(Arc::clone(hook), why.to_owned()),
                }),
                // A guard that has gone missing, or cannot be relied on, must not open the gate it guarded.
                Err(refusal) if is_gone(&refusal) && hook.is_gate() => {
                    cleared.steps.push(Step::Fail(Arc::clone(hook), refusal.detail));
                }
                Err(refusal) => {
                    cleared.skipped.push(skip(hook, refusal));
                    continue;
                }
            }
            cleared.skipped.extend(candidates.map(|twin| twin::skip(twin, hook)));
            break;
        }
    }
    cleared
}

fn is_gone(refusal: &Refusal) -> bool {
    matches!(refusal.reason, RefusalReason::Missing | RefusalReason::Unsafe)
}

/// What a report says about a hook that trust refused.
pub(crate) fn skip(hook: &Arc<Hook>, refusal: Refusal) -> Skip {
    let reason = match refusal.reason {
        RefusalReason::Untrusted => Reason::Untrusted,
        RefusalReason::Modified => Reason::Modified,
        RefusalReason::Missing => Reason::Missing,
        RefusalReason::Unsafe => Reason::Unsafe,
    };
    Skip::new(hook, reason, refusal.detail)
}
