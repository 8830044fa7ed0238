//! Finds hooks that do exactly the same: declared twice, they run once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use ollm_protocol::Hook;
use ollm_protocol::hook::key::HOOK_KEYS;

use crate::facts::Facts;
use crate::report::{Reason, Skip, declared};

/// A number that is equal for two hooks that do the same. For others it is hardly ever equal.
pub(crate) fn fingerprint(hook: &Hook) -> u64 {
    let mut hasher = DefaultHasher::new();
    match hook.spec.action.descriptor().words().split_first() {
        // A bare name and a path with that name at its end may be the same program.
        Some((first, rest)) => (first.rsplit('/').next(), rest).hash(&mut hasher),
        // Closures are distinguished by the hook that registered them.
        None => hook.id().hash(&mut hasher),
    }
    hook.matcher.text().hash(&mut hasher);
    hasher.finish()
}

/// Whether two hooks of the same event do the same for the same subjects, with the same failure policy.
pub(crate) fn same(one: &Hook, other: &Hook, facts: &Facts) -> bool {
    let (ones, others) = (&one.spec, &other.spec);
    // The meaning of a shell line depends on the project.
    let together = ones.project.is_none() || others.project.is_none() || ones.project == others.project;
    together
        && ones.action.is_same(&others.action, &|one, other| facts.same_program(one, other))
        // The meaning of a shell line may depend on the file that declares it.
        && one.script() == other.script()
        && HOOK_KEYS.iter().all(|key| key.is_same(one, other))
        && (&one.settings, &ones.tree) == (&other.settings, &others.tree)
}

/// The reason why a hook does not run when its twin does.
pub(crate) fn skip(twin: &Arc<Hook>, runs: &Hook) -> Skip {
    let detail = format!(
        "does the same as hook `{}`, declared in {}, which runs; remove one of the two",
        runs.id(),
        declared(runs)
    );
    Skip::new(twin, Reason::Duplicate, detail)
}
