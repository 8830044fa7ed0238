//! What a hook itself says about when it is for: scope, file patterns, condition.

use std::sync::Arc;

use ollm_protocol::{ConditionScope, Event, Hook, Reach, from_root};

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

pub(crate) fn narrow(hook: &Arc<Hook>, event: &Event, facts: &Facts) -> Result<Narrowed, Skip> {
    scope(hook, event)?;
    patterns(hook, event, facts)?;
    let narrowed = condition(hook, event, facts)?;
    Ok(match &hook.broken {
        Some(why) if narrowed == Narrowed::Fits => Narrowed::Fails(why.clone()),
        _ => narrowed,
    })
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

fn patterns(hook: &Arc<Hook>, event: &Event, facts: &Facts) -> Result<(), Skip> {
    if hook.patterns.is_empty() {
        return Ok(());
    }
    let paths = event.paths();
    let (cwd, root) = (facts.cwd(event), &facts.surroundings.root);
    let fits = |path: &&str| hook.patterns.matches(&from_root(path, &cwd, root));
    if paths.iter().any(fits) {
        return Ok(());
    }
    let patterns = hook.patterns.text().join("`, `");
    let detail = match paths.as_slice() {
        [] => format!("`filePatterns` wants a file that matches `{patterns}`, and the event names none"),
        [path] => format!("`{path}` does not match `{patterns}`"),
        [path, others @ ..] => {
            format!("neither `{path}` nor the other {} files match `{patterns}`", others.len())
        }
    };
    Err(Skip::new(hook, Reason::Pattern, detail))
}

/// A condition that cannot be answered skips the hook, unless its failure stands in the way of the operation.
fn condition(hook: &Arc<Hook>, event: &Event, facts: &Facts) -> Result<Narrowed, Skip> {
    let condition = match &hook.condition {
        None => return Ok(Narrowed::Fits),
        Some(Ok(condition)) => condition,
        Some(Err(error)) => return unanswered(hook, &format!("its `if` cannot be read: {error}")),
    };
    let cwd = facts.cwd(event);
    let scope = ConditionScope::new(event, &cwd, &facts.surroundings.variables, hook.spec.source.name());
    match condition.holds(&scope) {
        Ok(true) => Ok(Narrowed::Fits),
        Ok(false) => {
            Err(Skip::new(hook, Reason::Condition, format!("`if` is false for this event: {}", condition.text())))
        }
        Err(fault) => unanswered(hook, &format!("its `if` cannot be answered: {fault}")),
    }
}

fn unanswered(hook: &Arc<Hook>, why: &str) -> Result<Narrowed, Skip> {
    if hook.is_gate() { Ok(Narrowed::Fails(why.to_owned())) } else { Err(Skip::new(hook, Reason::Condition, why)) }
}
