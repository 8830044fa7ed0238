//! Hooks that would do the very same thing: declared twice, run once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use ollm_protocol::Hook;
use ollm_protocol::hook::key::HOOK_KEYS;

use crate::facts::Facts;
use crate::report::{Reason, Skip, declared};

/// A number that two hooks share if they do the same; others hardly ever do.
pub(crate) fn fingerprint(hook: &Hook) -> u64 {
    let mut hasher = DefaultHasher::new();
    match hook.spec.action.descriptor().words().split_first() {
        // A bare name and a path that ends in it may be the same program.
        Some((first, rest)) => (first.rsplit('/').next(), rest).hash(&mut hasher),
        // Closures are told apart by who registered them.
        None => hook.id().hash(&mut hasher),
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
        && ones.action.is_same(&others.action, &|one, other| facts.same_program(one, other))
        // What a line names may depend on the file it stands in.
        && one.script() == other.script()
        && HOOK_KEYS.iter().all(|key| key.is_same(one, other))
        && (&one.settings, &ones.tree) == (&other.settings, &others.tree)
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
