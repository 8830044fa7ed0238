//! Hooks that would do the very same thing: declared twice, run once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use ollm_protocol::hook::key::HOOK_KEYS;
use ollm_protocol::{Action, ActionSpec, Hook};

use crate::facts::Facts;
use crate::report::{Reason, Skip, declared};

/// A number that two hooks share if they do the same; others hardly ever do.
pub(crate) fn fingerprint(hook: &Hook) -> u64 {
    let mut hasher = DefaultHasher::new();
    match &hook.spec.action {
        // A bare name and a path that ends in it may be the same program.
        ActionSpec::Command { command, args, .. } => (command.rsplit('/').next(), args).hash(&mut hasher),
        ActionSpec::Shell { script: text }
        | ActionSpec::AskAgent { prompt: text }
        | ActionSpec::RunCommand { line: text, .. }
        | ActionSpec::Http { url: text, .. } => text.hash(&mut hasher),
        ActionSpec::Mcp { server, tool, .. } => (server, tool).hash(&mut hasher),
        // Closures are told apart by who registered them.
        ActionSpec::Builtin(_) => hook.id().hash(&mut hasher),
    }
    hook.matcher.text().hash(&mut hasher);
    hasher.finish()
}

/// Whether two hooks of the same event do the same for the same subjects, with the same right to stand in the way.
pub(crate) fn same(one: &Hook, other: &Hook, facts: &Facts) -> bool {
    let (ones, others) = (&one.spec, &other.spec);
    // What a line names depends on the project.
    let together = ones.project.is_none() || others.project.is_none() || ones.project == others.project;
    together
        && acts_same(&ones.action, &others.action, facts)
        && runs_same(one, other)
        && HOOK_KEYS.iter().all(|key| key.is_same(one, other))
        && (&one.settings, &ones.tree) == (&other.settings, &others.tree)
}

/// Whether two actions are equal, also if one names the program and the other says where it is.
fn acts_same(one: &ActionSpec, other: &ActionSpec, facts: &Facts) -> bool {
    match (one, other) {
        (
            ActionSpec::Command { command, args, script },
            ActionSpec::Command { command: others, args: other_args, script: other_script },
        ) => (args, script) == (other_args, other_script) && (command == others || facts.same_program(command, others)),
        _ => one == other,
    }
}

/// What a line names may depend on the file it stands in.
fn runs_same(one: &Hook, other: &Hook) -> bool {
    match (&one.action, &other.action) {
        (Action::RunCommand { script, .. }, Action::RunCommand { script: others, .. }) => script == others,
        _ => true,
    }
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
