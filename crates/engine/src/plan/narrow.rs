//! What a hook itself says about when it is for: scope, file patterns, condition.

use std::sync::Arc;

use ollm_protocol::{Event, Hook, Reach};

use crate::facts::Facts;
use crate::report::{Reason, Skip};

/// What narrowing down came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Narrowed {
    /// The hook is for this event.
    Fits,
    /// Whether it is cannot be told, and its failure counts.
    Fails(String),
}

pub(crate) fn narrow(hook: &Arc<Hook>, event: &Event, _facts: &Facts) -> Result<Narrowed, Skip> {
    scope(hook, event)?;
    Ok(Narrowed::Fits)
}

fn scope(hook: &Arc<Hook>, event: &Event) -> Result<(), Skip> {
    let (whose, other) = match (hook.reach.value, event.is_subagents()) {
        (Reach::Main, true) => ("main", "a sub-agent"),
        (Reach::Subagents, false) => ("subagents", "the main agent"),
        _ => return Ok(()),
    };
    let basis = hook.reach.basis.name();
    let detail = format!(
        "the event comes from {other}, and the hook's scope is {whose} (from the {basis}); \"scope\": \"all\" has it run for both"
    );
    Err(Skip::new(hook, Reason::Scope, detail))
}
