//! Hooks that would do the very same thing: declared twice, run once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use ollm_protocol::{Action, ActionSpec, Hook};

use super::{More, Planned};
use crate::registry::declared;
use crate::report::{Reason, Skip};

/// A number that two hooks share if they do the same; others hardly ever do.
pub(crate) fn fingerprint(hook: &Hook) -> u64 {
    let mut hasher = DefaultHasher::new();
    match &hook.spec.action {
        ActionSpec::Command { command, args, .. } => (command, args).hash(&mut hasher),
        ActionSpec::Shell { script: text }
        | ActionSpec::AskAgent { prompt: text }
        | ActionSpec::RunCommand { line: text }
        | ActionSpec::Http { url: text, .. } => text.hash(&mut hasher),
        ActionSpec::Mcp { server, tool, .. } => (server, tool).hash(&mut hasher),
        // Closures are told apart by who registered them.
        ActionSpec::Builtin(_) => hook.id().hash(&mut hasher),
    }
    hook.matcher.text().hash(&mut hasher);
    hasher.finish()
}

/// Whether two hooks of the same event do the same for the same subjects, with the same right to stand in the way.
fn same(one: &Hook, other: &Hook) -> bool {
    let deed = |hook: &Hook| (hook.on_failure.value, hook.dialect.name(), hook.spec.detached);
    let setting = |hook: &Hook| (hook.spec.env.clone(), hook.spec.pass_env.clone(), hook.spec.cwd.clone());
    fingerprint(one) == fingerprint(other)
        && one.spec.action == other.spec.action
        && runs_same(one, other)
        && one.matcher == other.matcher
        && deed(one) == deed(other)
        && setting(one) == setting(other)
}

/// What a line names may depend on the file it stands in.
fn runs_same(one: &Hook, other: &Hook) -> bool {
    match (&one.action, &other.action) {
        (Action::RunCommand { script, .. }, Action::RunCommand { script: others, .. }) => script == others,
        _ => true,
    }
}

/// Puts a hook beside one that is planned already and does the same, if there is one.
pub(super) fn merge(stages: &mut [Vec<Planned>], new: &Planned) -> bool {
    let Some(earlier) = stages.iter_mut().flatten().find(|planned| same(planned, new)) else { return false };
    earlier.more.get_or_insert_with(|| Box::new(More::default())).twins.push(Arc::clone(&new.hook));
    true
}

/// Why a hook does not run when another one that does the same does.
pub(crate) fn skip(twin: &Arc<Hook>, runs: &Hook) -> Skip {
    let detail = format!(
        "does the same as hook `{}`, declared in {}, which runs; remove one of the two",
        runs.id(),
        declared(runs)
    );
    Skip::new(twin, Reason::Duplicate, detail)
}
