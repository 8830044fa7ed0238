//! Why one hook does or does not run: what stands in its way at all, which events it waits for, and what the trace knows of it.

use std::fmt::Write;
use std::sync::Arc;

use ollm_app::trace::{HookStats, Records, TraceStats, trail};
use ollm_app::{App, unsent_events};
use ollm_protocol::{Code, EventKind, Hook};
use ollm_store::one_line;
use serde_json::{Value, json};

use super::place;
use crate::error::Failure;
use crate::output::Output;
use crate::timeline::{BOLD, DIM, PLAIN};

/// What keeps a hook from running whatever happens, and what was seen of it so far.
struct Findings {
    /// Reason and detail.
    obstacle: Option<(&'static str, String)>,
    unmet: Option<String>,
    unsent: Vec<String>,
    seen: HookStats,
    last: Option<String>,
}

pub(super) fn run(hook: &Arc<Hook>, app: &App, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let found = findings(hook, app)?;
    if as_json {
        return output.pretty_json(&to_json(hook, &found));
    }
    output.text(&text(hook, &found))
}

fn findings(hook: &Arc<Hook>, app: &App) -> Result<Findings, Failure> {
    let unreadable = |error: ollm_store::FileError| Failure::new(Code::TraceUnreadable, error.to_string());
    let records = Records::open(trail(app.context(), &app.config.trace())).map_err(unreadable)?;
    let about = records.filter_map(Result::ok).filter(|record| record.concerns(hook.id())).collect::<Vec<_>>();
    let ran = about.iter().find(|record| record.runs().any(|run| run.id == hook.id()));
    let last = ran.map(|record| format!("{} {}", record.text("time"), record.id()));
    let seen = TraceStats::of(&about).hooks.remove(hook.id()).unwrap_or_default();
    Ok(Findings {
        obstacle: app.engine.obstacle(hook).map(|skip| (skip.reason.name(), skip.detail)),
        unmet: app.engine.unmet(hook).map(|skip| skip.detail),
        unsent: unsent_events(std::iter::once(&**hook), app.context()),
        seen,
        last,
    })
}

fn events(hook: &Hook) -> Vec<&'static str> {
    hook.events.iter().copied().map(EventKind::name).collect()
}

fn text(hook: &Hook, found: &Findings) -> String {
    let mut text = format!("{BOLD}{}{PLAIN}\n", one_line(hook.id()));
    if let Some(place) = place::place(hook) {
        let _ = writeln!(text, "  {DIM}--> {}{PLAIN}", one_line(&place));
    }
    if let Some(line) = place::line(hook) {
        let _ = writeln!(text, "  {DIM}{line}{PLAIN}");
    }
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<10}{}", one_line(value));
    };
    match &found.obstacle {
        Some((reason, detail)) => row("never", &format!("{reason}: {detail}")),
        None => row("runs", &format!("for {}, matcher {}", events(hook).join(", "), hook.matcher.text())),
    }
    let patterns = (!hook.spec.file_patterns.is_empty()).then(|| hook.spec.file_patterns.join(", "));
    for (name, value) in [("files", patterns), ("if", hook.spec.condition.clone()), ("requires", found.unmet.clone())] {
        if let Some(value) = value {
            row(name, &value);
        }
    }
    for why in &found.unsent {
        row("waits", why);
    }
    row("timeout", &format!("{:?} (from the {})", hook.timeout.value, hook.timeout.basis.name()));
    row("failure", &format!("{} (from the {})", hook.on_failure.value.name(), hook.on_failure.basis.name()));
    row("scope", &format!("{} (from the {})", hook.reach.value.name(), hook.reach.basis.name()));
    row("seen", &seen(found));
    for event in events(hook) {
        let _ = writeln!(text, "  `ollm explain {event}` shows it among the others of that event");
    }
    text
}

fn seen(found: &Findings) -> String {
    let counts = |counts: &std::collections::BTreeMap<String, usize>| {
        counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
    };
    let ran = match found.seen.runs() {
        0 => "the trace has no run of it".to_owned(),
        runs => format!(
            "ran {runs} times in the trace ({}), the last at {}",
            counts(&found.seen.statuses),
            found.last.as_deref().unwrap_or("?")
        ),
    };
    let skipped = found.seen.times_skipped();
    if skipped == 0 { ran } else { format!("{ran}; skipped {skipped} times ({})", counts(&found.seen.skipped)) }
}

fn to_json(hook: &Hook, found: &Findings) -> Value {
    json!({
        "hook": hook.id(),
        "name": hook.spec.name,
        "declared": place::to_json(hook),
        "events": events(hook),
        "matcher": hook.matcher.text(),
        "obstacle": found.obstacle.as_ref().map(|(reason, detail)| json!({"reason": reason, "detail": detail})),
        "unmet": found.unmet,
        "unsent": found.unsent,
        "timeoutMs": hook.timeout.value.as_secs_f64() * 1e3,
        "timeoutFrom": hook.timeout.basis.name(),
        "onFailure": hook.on_failure.value.name(),
        "onFailureFrom": hook.on_failure.basis.name(),
        "runs": found.seen.runs(),
        "statuses": found.seen.statuses,
        "skipped": found.seen.skipped,
        "last": found.last,
    })
}
