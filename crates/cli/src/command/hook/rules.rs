//! When a hook runs, as declared: the parts of `show` and `plan` that most hooks do not have.

use ollm_protocol::{Hook, PermissionsSpec, Reach};
use serde_json::{Map, Value, json};

/// Everything that decides when a hook runs, under the keys of a hook file.
pub(super) fn to_json(hook: &Hook) -> Map<String, Value> {
    let spec = &hook.spec;
    let fields = json!({
        "filePatterns": spec.file_patterns,
        "if": spec.condition,
        "rateLimit": {
            "perMinute": spec.rate_limit.per_minute,
            "cooldownMs": spec.rate_limit.cooldown.map(|pause| pause.as_secs_f64() * 1e3),
        },
        "requires": {
            "commands": spec.requires.commands,
            "files": spec.requires.files,
            "services": spec.requires.services,
        },
        "scope": hook.reach.value.name(),
        "scopeFrom": hook.reach.basis.name(),
        "async": detached(hook),
        "permissions": spec.permissions.as_ref().map(PermissionsSpec::to_json),
    });
    fields.as_object().cloned().unwrap_or_default()
}

/// The same for a plan: scope and async always, the rest where the hook says something.
pub(super) fn said(hook: &Hook) -> Map<String, Value> {
    let (mut fields, silent) = (to_json(hook), to_json_of_silence());
    fields.retain(|name, value| !silent.get(name).is_some_and(|silence| silence == value));
    fields
}

/// What a hook without any such rule would print.
fn to_json_of_silence() -> Map<String, Value> {
    let silence = json!({
        "filePatterns": [],
        "if": null,
        "rateLimit": {"perMinute": null, "cooldownMs": null},
        "requires": {"commands": [], "files": [], "services": []},
        "permissions": null,
    });
    silence.as_object().cloned().unwrap_or_default()
}

/// Which events of its kind a hook runs for, in a few words.
pub(crate) fn narrowed(hook: &Hook) -> String {
    let patterns = hook.spec.file_patterns.join(", ");
    let parts = [
        Some(format!("for {}", hook.matcher.text())),
        (!patterns.is_empty()).then(|| format!("files {patterns}")),
        hook.spec.condition.as_ref().map(|condition| format!("if {condition}")),
        (hook.reach.value != Reach::All).then(|| format!("scope {}", hook.reach.value.name())),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// What a plan says about a hook in a few words.
pub(super) fn brief(hook: &Hook) -> Option<String> {
    let words = [
        hook.spec.rate_limit.describe().map(|limit| format!("at most {limit}")),
        detached(hook).then(|| "async".to_owned()),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn detached(hook: &Hook) -> bool {
    hook.events.iter().any(|kind| hook.detached(*kind))
}
