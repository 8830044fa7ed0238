//! Clears a planned stage: afterwards, every hook to run is trusted. A hook that trust refuses is skipped, or fails if
//! its policy says so.

use std::sync::Arc;

use ollm_protocol::{Event, Hook};
use ollm_trust::{Refusal, RefusalReason, Trust, TrustContext, Trusted};

use crate::environment::Environment;
use crate::plan::PlannedHook;
use crate::report::{Reason, Skip};
use crate::twin;

/// One step of a cleared plan.
#[derive(Debug)]
pub enum Step {
    /// Run the hook.
    Run(Trusted<Hook>),
    /// The hook cannot run, and its failure policy counts that as a failure.
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

/// A stage in which every hook to run is trusted.
#[derive(Debug)]
pub struct ClearedStage {
    /// The steps, which run at once.
    pub steps: Vec<Step>,
    /// The hooks that do not run.
    pub skipped: Vec<Skip>,
}

/// Clears a stage: trusted hooks run, and the others are skipped or, where their policy says so, fail.
pub fn clear(stage: Vec<PlannedHook>, trust: &Trust, environment: &Environment, event: &Event) -> ClearedStage {
    let mut cleared = ClearedStage { steps: Vec::with_capacity(stage.len()), skipped: Vec::new() };
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
                Err(refusal) if fails(&refusal, hook) => {
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

/// Whether a refusal counts as a failure. A gate that is missing or unsafe fails, because skipping it would let the
/// operation through.
pub(crate) fn fails(refusal: &Refusal, hook: &Hook) -> bool {
    matches!(refusal.reason, RefusalReason::Missing | RefusalReason::Unsafe) && hook.is_gate()
}

/// The report entry for a hook that trust refused.
pub(crate) fn skip(hook: &Arc<Hook>, refusal: Refusal) -> Skip {
    let reason = match refusal.reason {
        RefusalReason::Untrusted => Reason::Untrusted,
        RefusalReason::Modified => Reason::Modified,
        RefusalReason::Missing => Reason::Missing,
        RefusalReason::Unsafe => Reason::Unsafe,
    };
    Skip::new(hook, reason, refusal.detail)
}
