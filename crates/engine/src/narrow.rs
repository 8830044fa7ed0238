//! Decides by a hook's scope, file patterns and condition whether the hook is for an event. Pure: no file, no clock.

use std::path::Path;
use std::sync::Arc;

use ollm_condition::{ConditionScope, SeenValue};
use ollm_protocol::{Event, Hook, Reach, from_root};
use serde_json::{Map, Value};

use crate::report::{Reason, Skip};

/// The surroundings that patterns and conditions see in addition to the event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// The folder we are in.
    pub cwd: String,
    /// The root of the project, or the folder above if there is no project.
    pub root: String,
    /// The variables that any hook may see.
    pub variables: Map<String, Value>,
}

impl Surroundings {
    /// The folder an event happened in.
    fn cwd(&self, event: &Event) -> String {
        let here = Path::new(&self.cwd);
        event.text("cwd").map_or_else(|| self.cwd.clone(), |cwd| here.join(cwd).display().to_string())
    }
}

/// Why a hook counts as failed although it is for the event; `None` if it does not.
type Failure = Option<String>;

/// Whether a hook limits its events by more than its matcher.
pub(crate) fn is_narrow(hook: &Hook) -> bool {
    let sees = !hook.patterns.is_empty() || hook.condition.is_some();
    sees || hook.reach.value != Reach::All || hook.broken.is_some()
}

/// Whether a hook is for this event. The surroundings are computed only for patterns and conditions.
pub(crate) fn narrow<'s>(
    hook: &Arc<Hook>,
    event: &Event,
    surroundings: &dyn Fn() -> &'s Surroundings,
) -> Result<Failure, Skip> {
    scope(hook, event)?;
    if let Some(unread) = patterns(hook, event, surroundings)? {
        return Ok(Some(unread));
    }
    let failure = condition(hook, event, surroundings)?;
    Ok(failure.or_else(|| hook.broken.clone()))
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

fn patterns<'s>(hook: &Arc<Hook>, event: &Event, surroundings: &dyn Fn() -> &'s Surroundings) -> Result<Failure, Skip> {
    if hook.patterns.is_empty() {
        return Ok(None);
    }
    let paths = event.paths();
    let surroundings = surroundings();
    let own = hook.spec.project.as_ref().map(|project| project.display().to_string());
    let (cwd, root) = (surroundings.cwd(event), own.as_ref().unwrap_or(&surroundings.root));
    let fits = |path: &&str| hook.patterns.matches(&from_root(path, &cwd, root));
    if paths.iter().any(fits) {
        return Ok(None);
    }
    let patterns = hook.patterns.text().join("`, `");
    if let Some(field) = event.missing_files() {
        let why = format!("the event has no `{field}`, which its `filePatterns` `{patterns}` look at");
        return Skip::new(hook, Reason::Pattern, why).failure_of_gate().map(Some);
    }
    let detail = match paths.as_slice() {
        [] => format!("`filePatterns` wants a file that matches `{patterns}`, and the event names none"),
        [path] => format!("`{path}` does not match `{patterns}`"),
        [path, other] => format!("neither `{path}` nor `{other}` matches `{patterns}`"),
        [path, others @ ..] => {
            format!("neither `{path}` nor the other {} files match `{patterns}`", others.len())
        }
    };
    Err(Skip::new(hook, Reason::Pattern, detail))
}

/// If a condition cannot be evaluated, the hook is skipped. A gate fails instead.
fn condition<'s>(
    hook: &Arc<Hook>,
    event: &Event,
    surroundings: &dyn Fn() -> &'s Surroundings,
) -> Result<Failure, Skip> {
    let condition = match &hook.condition {
        None => return Ok(None),
        Some(Ok(condition)) => condition,
        Some(Err(error)) => return unanswered(hook, &format!("its `if` cannot be read: {error}")),
    };
    let surroundings = surroundings();
    let cwd = surroundings.cwd(event);
    match condition.holds(&condition_scope(hook, event, &cwd, surroundings)) {
        Ok(true) => Ok(None),
        Ok(false) => {
            Err(Skip::new(hook, Reason::Condition, format!("`if` is false for this event: {}", condition.text())))
        }
        Err(fault) => unanswered(hook, &format!("its `if` cannot be answered: {fault}")),
    }
}

fn condition_scope<'a>(
    hook: &Hook,
    event: &'a Event,
    cwd: &'a str,
    surroundings: &'a Surroundings,
) -> ConditionScope<'a> {
    let source = hook.spec.source.name();
    ConditionScope::new(event.kind.name(), &event.data, cwd, &surroundings.variables, source)
}

/// The parts of an event that a hook's condition reads, with their values.
pub(crate) fn condition_values(hook: &Hook, event: &Event, surroundings: &Surroundings) -> Vec<SeenValue> {
    let Some(Ok(condition)) = &hook.condition else { return Vec::new() };
    let cwd = surroundings.cwd(event);
    condition.values(&condition_scope(hook, event, &cwd, surroundings))
}

fn unanswered(hook: &Arc<Hook>, why: &str) -> Result<Failure, Skip> {
    Skip::new(hook, Reason::Condition, why).failure_of_gate().map(Some)
}
