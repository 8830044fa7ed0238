//! Explains one hook: what prevents it from running, which events it waits for, and what the trace knows about it.

use std::fmt::Write;
use std::sync::Arc;

use ollm_app::rehearsal::sample;
use ollm_app::trace::{HookStats, Records, TraceStats, trace_log};
use ollm_app::{App, Forecast, unsent_events};
use ollm_engine::{Reason, Skip, is_used_up};
use ollm_protocol::{Code, Event, EventKind, Hook, Origin};
use ollm_store::one_line;
use serde_json::{Value, json};

use super::{place, rules};
use crate::command::hook::given_event;
use crate::error::Failure;
use crate::output::Output;
use crate::timeline::{BOLD, DIM, PLAIN};

/// The general obstacles to running a hook, and the forecast for its events.
struct Findings {
    /// Reason and detail.
    obstacle: Option<(&'static str, String)>,
    /// The reason why it fails without running.
    failure: Option<String>,
    unmet: Option<String>,
    unsent: Vec<String>,
    /// The forecast for each of its events.
    now: Vec<Forecasted>,
    seen: HookStats,
    last: Option<String>,
}

/// The forecast for a hook at one event.
struct Forecasted {
    event: EventKind,
    /// runs, depends, skipped.
    state: &'static str,
    skip: Option<Skip>,
    /// The reason why it would fail without running.
    failure: Option<String>,
}

pub(super) fn run(
    hook: &Arc<Hook>,
    data: Option<&str>,
    app: &App,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let now = hook.events.iter().map(|kind| forecasted(hook, *kind, data, app)).collect::<Result<_, _>>()?;
    let found = Findings { now, ..findings(hook, app)? };
    if as_json {
        return output.pretty_json(&to_json(hook, &found, app));
    }
    output.text(&text(hook, &found, app))
}

fn findings(hook: &Arc<Hook>, app: &App) -> Result<Findings, Failure> {
    let unreadable = |error: ollm_store::FileError| Failure::new(Code::TraceUnreadable, error.to_string());
    let records = Records::open(trace_log(app.context(), &app.config.trace())).map_err(unreadable)?;
    let about = records.filter_map(Result::ok).filter(|record| record.concerns(hook.id())).collect::<Vec<_>>();
    let ran = about.iter().find(|record| record.runs().any(|run| run.id == hook.id()));
    let last = ran.map(|record| format!("{} {}", record.text("time"), record.id()));
    let seen = TraceStats::of(&about).hooks.remove(hook.id()).unwrap_or_default();
    let obstacle = app.engine.obstacle(hook);
    Ok(Findings {
        failure: obstacle.as_ref().ok().cloned().flatten(),
        obstacle: obstacle.err().map(|skip| (skip.reason.name(), skip.detail)),
        unmet: app.engine.unmet(hook).map(|skip| skip.detail),
        now: Vec::new(),
        unsent: unsent_events(std::iter::once(&**hook), app.context()),
        seen,
        last,
    })
}

fn forecasted(hook: &Arc<Hook>, event: EventKind, data: Option<&str>, app: &App) -> Result<Forecasted, Failure> {
    let event_now = match data {
        None => Event::unchecked(event, []),
        Some(_) => given_event(event.name(), data)?,
    };
    let mut forecast = Forecast::of(&event_now, app);
    let is_it = |other: &Arc<Hook>| other.id() == hook.id();
    let depends = forecast.depends.iter().any(|step| is_it(&step.hook));
    if depends && hook.events.first() == Some(&event) {
        forecast = Forecast::of(&sample(hook, &app.context().cwd), app);
    }
    let mut steps = forecast.stages.iter().flatten().chain(&forecast.depends);
    let failure = steps.find(|step| is_it(&step.hook)).and_then(|step| step.failure.clone());
    let skip = forecast.skipped.into_iter().find(|skip| is_it(&skip.hook));
    // The subject of the event is unknown; these reasons hold for every subject.
    let stands = |skip: &Skip| matches!(skip.reason, Reason::RateLimited | Reason::Duplicate | Reason::Requires);
    let skip = skip.filter(|skip| !depends || stands(skip));
    let failure = failure.filter(|why| !depends || is_used_up(why));
    let state = match (&skip, depends) {
        (Some(_), _) => "skipped",
        (None, true) => "depends",
        (None, false) => "runs",
    };
    Ok(Forecasted { event, state, skip, failure })
}

fn events(hook: &Hook) -> Vec<&'static str> {
    hook.events.iter().copied().map(EventKind::name).collect()
}

fn text(hook: &Hook, found: &Findings, app: &App) -> String {
    let mut text = format!("{BOLD}{}{PLAIN}\n", one_line(hook.id()));
    told(&hook.spec.origin, &mut text);
    match &found.obstacle {
        Some((reason, detail)) => row(&mut text, "never", &format!("{reason}: {detail}")),
        None => row(&mut text, "runs", &format!("for {}, matcher {}", events(hook).join(", "), hook.matcher.text())),
    }
    if found.obstacle.is_none() {
        for Forecasted { event, skip, failure, .. } in &found.now {
            // The reason why it fails at every event is told once.
            if let Some(why) = failure.as_ref().filter(|_| found.failure.is_none()) {
                row(&mut text, "fails now", &format!("for {}, without running: {why}", event.name()));
            }
            let Some(Skip { reason, detail, .. }) = skip else { continue };
            row(&mut text, "not now", &format!("for {}: {}: {detail}", event.name(), reason.name()));
            let place = place::of_reason(hook, *reason, app);
            if place != hook.spec.origin {
                told(&place, &mut text);
            }
        }
    }
    if let Some(why) = &found.failure {
        row(&mut text, "fails", &format!("without running: {why}"));
    }
    let patterns = (!hook.spec.file_patterns.is_empty()).then(|| hook.spec.file_patterns.join(", "));
    for (name, value) in [("files", patterns), ("if", hook.spec.condition.clone()), ("requires", found.unmet.clone())] {
        if let Some(value) = value {
            row(&mut text, name, &value);
        }
    }
    for why in &found.unsent {
        row(&mut text, "waits", why);
    }
    for rule in rules::rules(hook, app) {
        row(&mut text, rule.name, &format!("{} (from the {})", rule.value, rule.from));
        rule.said(app).iter().for_each(|line| row(&mut text, "", line));
    }
    row(&mut text, "seen", &seen(found));
    for event in events(hook) {
        let _ = writeln!(text, "  `ollm explain {event}` shows it among the others of that event");
    }
    text
}

fn row(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<10}{}", one_line(value));
}

/// A place and its lines.
fn told(origin: &Origin, text: &mut String) {
    if let Some(place) = place::shown(origin) {
        let _ = writeln!(text, "  {DIM}--> {}{PLAIN}", one_line(&place));
    }
    for line in place::lines(origin) {
        let _ = writeln!(text, "  {DIM}{line}{PLAIN}");
    }
}

fn seen(found: &Findings) -> String {
    let counts = |counts: &std::collections::BTreeMap<String, usize>| {
        counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
    };
    let ran = match found.seen.runs() {
        0 => "the trace has no run of it".to_owned(),
        runs => format!(
            "ran {} in the trace ({}), the last at {}",
            times(runs),
            counts(&found.seen.statuses),
            found.last.as_deref().unwrap_or("?")
        ),
    };
    let skipped = found.seen.times_skipped();
    if skipped == 0 { ran } else { format!("{ran}; skipped {} ({})", times(skipped), counts(&found.seen.skipped)) }
}

fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn to_json(hook: &Hook, found: &Findings, app: &App) -> Value {
    json!({
        "hook": hook.id(),
        "name": hook.spec.name,
        "declared": place::to_json(hook),
        "events": events(hook),
        "matcher": hook.matcher.text(),
        "obstacle": found.obstacle.as_ref().map(|(reason, detail)| json!({"reason": reason, "detail": detail})),
        "failure": found.failure,
        "unmet": found.unmet,
        "unsent": found.unsent,
        "timeoutMs": hook.timeout.value.as_secs_f64() * 1e3,
        "timeoutFrom": hook.timeout.basis.name(),
        "onFailure": hook.on_failure.value.name(),
        "onFailureFrom": hook.on_failure.basis.name(),
        "fromConfiguration": rules::to_json(hook, app),
        "fromHook": rules::own_to_json(hook, app),
        "now": found.now.iter().map(|now| json!({
            "event": now.event.name(),
            "state": now.state,
            "failure": now.failure,
            "reason": now.skip.as_ref().map(|skip| skip.reason.name()),
            "detail": now.skip.as_ref().map(|skip| &skip.detail),
            "reasonAt": now.skip.as_ref().map(|skip| place::json_of(&place::of_reason(hook, skip.reason, app))),
        })).collect::<Vec<_>>(),
        "runs": found.seen.runs(),
        "statuses": found.seen.statuses,
        "skipped": found.seen.skipped,
        "last": found.last,
    })
}
