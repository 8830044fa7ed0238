//! When a hook runs, as declared: the parts of `show` and `plan` that most hooks do not have.

use ollm_protocol::{ActionSpec, Basis, Hook, RateLimit, Reach, Requires, Source};
use ollm_store::looks_secret;
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
    });
    silence.as_object().cloned().unwrap_or_default()
}

/// The same for people: only what is not as usual.
pub(super) fn rows(hook: &Hook) -> Vec<(&'static str, String)> {
    let spec = &hook.spec;
    let mut rows = Vec::new();
    if (hook.reach.value, hook.reach.basis) != (Reach::All, Basis::Dialect) {
        rows.push(("scope", format!("{} (from the {})", hook.reach.value.name(), hook.reach.basis.name())));
    }
    rows.extend((!spec.file_patterns.is_empty()).then(|| ("files", spec.file_patterns.join(", "))));
    rows.extend(spec.condition.clone().map(|condition| ("if", condition)));
    rows.extend(limit(&spec.rate_limit).map(|limit| ("at most", limit)));
    let Requires { commands, files, services } = &spec.requires;
    rows.extend(commands.iter().chain(files).chain(services).map(|thing| ("requires", thing.clone())));
    rows.extend(detached(hook).then(|| ("async", "nobody waits for it, and it decides nothing".to_owned())));
    if let ActionSpec::Http { headers, .. } = &spec.action {
        rows.extend(headers.iter().map(|(name, value)| ("header", format!("{name}: {}", shown(hook, name, value)))));
    }
    rows
}

/// What a plan says about a hook in a few words.
pub(super) fn brief(hook: &Hook) -> Option<String> {
    let words = [
        limit(&hook.spec.rate_limit).map(|limit| format!("at most {limit}")),
        detached(hook).then(|| "async".to_owned()),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn limit(limit: &RateLimit) -> Option<String> {
    let per_minute = limit.per_minute.map(|count| format!("{count} per minute"));
    let cooldown = limit.cooldown.filter(|pause| !pause.is_zero()).map(|pause| format!("once in {pause:?}"));
    let parts: Vec<String> = [per_minute, cooldown].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn detached(hook: &Hook) -> bool {
    hook.events.iter().any(|kind| hook.detached(*kind))
}

/// The user's own secrets are hidden, while what came from elsewhere must be seen.
fn shown(hook: &Hook, name: &str, value: &str) -> String {
    let secret = hook.spec.source == Source::User && (looks_secret(name) || name.eq_ignore_ascii_case("authorization"));
    if secret && !value.contains("${") { "(hidden)".to_owned() } else { value.to_owned() }
}
