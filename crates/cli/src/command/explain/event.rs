//! Explains an event: which hooks would run and in which order, and the first reason why each other hook would not.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use ollm_app::{App, Forecast, unsent_events};
use ollm_engine::{ForecastStep, Reason, Skip};
use ollm_protocol::{Event, EventKind, Hook, Origin};
use ollm_store::{cut, escape_for_people, one_line};
use serde_json::{Map, Value, json};

use super::{place, rules};
use crate::command::hook::{given_event, narrowed};
use crate::error::Failure;
use crate::output::{Output, shown_width};
use crate::problem;
use crate::timeline::{BOLD, DIM, PLAIN};

/// Longer values are cut.
const LONGEST_VALUE: usize = 200;

pub(super) fn run(
    name: &str,
    data: Option<&str>,
    app: &App,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let event = given_event(name, data)?;
    let forecast = Forecast::of(&event, app);
    let others = others(&forecast, app);
    let unsent = unsent_events(planned(&forecast), app.context());
    if as_json {
        return output.pretty_json(&to_json(&forecast, &event, &others, &unsent, app));
    }
    let mut text = format!("{BOLD}{}{PLAIN}{}\n", forecast.event.name(), about(&event));
    describe(&forecast, &event, app, &mut text);
    if !others.is_empty() {
        let count: usize = others.values().map(Vec::len).sum();
        let named = others.iter().map(|(kind, hooks)| format!("{} {}", hooks.len(), kind));
        let noun = if count == 1 { "hook waits" } else { "hooks wait" };
        let _ = writeln!(text, "\n{count} {noun} for other events: {}", named.collect::<Vec<_>>().join(", "));
    }
    for note in unsent.iter().chain(&app.what_is_off()) {
        let _ = writeln!(text, "\n{}", escape_for_people(note));
    }
    if !app.problems.is_empty() {
        text.push_str("\nnot loaded, or not as written\n");
    }
    app.problems
        .iter()
        .for_each(|problem| text.push_str(&problem::render(problem, shown_width().unwrap_or(usize::MAX))));
    output.text(&text)
}

fn about(event: &Event) -> String {
    match (event.subject(), event.kind.subject_field()) {
        (Some(subject), Some(field)) => format!(", {field} {}", one_line(subject)),
        (None, Some(field)) => format!(", any {field}; --data '{{\"{field}\": …}}' names one"),
        _ => String::new(),
    }
}

fn planned(forecast: &Forecast) -> impl Iterator<Item = &Hook> {
    forecast.stages.iter().flatten().map(|step| &*step.hook)
}

/// The hooks of other events, by the events that they wait for.
fn others(forecast: &Forecast, app: &App) -> BTreeMap<&'static str, Vec<Arc<Hook>>> {
    let is_other = |hook: &Arc<Hook>| !hook.events.contains(&forecast.event);
    let mut found: BTreeMap<&'static str, Vec<Arc<Hook>>> = BTreeMap::new();
    for hook in app.hooks().into_iter().filter(is_other) {
        let first = hook.events.first().copied().map_or("nothing", EventKind::name);
        found.entry(first).or_default().push(hook);
    }
    found
}

fn describe(forecast: &Forecast, event: &Event, app: &App, text: &mut String) {
    let count = forecast.stages.iter().flatten().count();
    let _ =
        writeln!(text, "\n{BOLD}{}{PLAIN}", if count == 0 { "no hook would run" } else { "would run, in this order" });
    for (number, stage) in forecast.stages.iter().enumerate() {
        for ForecastStep { hook, failure } in stage {
            let at_once = if stage.len() > 1 { ", at once with others" } else { "" };
            let _ = writeln!(text, "  {}. {}{at_once}", number + 1, one_line(hook.id()));
            told(hook, failure.as_deref(), app, text);
        }
    }
    if !forecast.depends.is_empty() {
        let _ = writeln!(text, "\n{BOLD}would run for some{PLAIN}");
    }
    for ForecastStep { hook, failure } in &forecast.depends {
        let _ = writeln!(text, "  {}  {}", one_line(hook.id()), one_line(&narrowed(hook)));
        told(hook, failure.as_deref(), app, text);
    }
    if !forecast.skipped.is_empty() {
        let _ = writeln!(text, "\n{BOLD}would not run{PLAIN}");
    }
    for Skip { hook, reason, detail, .. } in &forecast.skipped {
        let _ = writeln!(text, "  {}  {}: {}", one_line(hook.id()), reason.name(), one_line(detail));
        if *reason == Reason::Condition {
            condition(hook, event, app, text);
        }
        declared(&place::of_reason(hook, *reason, app), text);
    }
}

/// A hook's condition, and the values it reads.
pub(super) fn condition(hook: &Hook, event: &Event, app: &App, text: &mut String) {
    for (name, value) in app.engine.condition_values(hook, event) {
        let value = value.map_or_else(|| "not there".to_owned(), |value| cut(&value, LONGEST_VALUE).into_owned());
        let _ = writeln!(text, "       {} is {}", one_line(&name), one_line(&value));
    }
}

/// A place and its lines.
pub(super) fn declared(origin: &Origin, text: &mut String) {
    if let Some(place) = place::shown(origin) {
        let _ = writeln!(text, "       {DIM}--> {}{PLAIN}", one_line(&place));
    }
    for line in place::lines(origin) {
        let _ = writeln!(text, "       {DIM}{line}{PLAIN}");
    }
}

/// Where a hook is declared, what applies to it and by which origin, and why it fails without running.
fn told(hook: &Hook, failure: Option<&str>, app: &App, text: &mut String) {
    declared(&hook.spec.origin, text);
    let rules = rules::rules(hook, app);
    let listed = rules.iter().map(|rule| format!("{} {} (from the {})", rule.name, one_line(&rule.value), rule.from));
    let _ = writeln!(text, "       {}", listed.collect::<Vec<_>>().join("; "));
    for line in rules.iter().flat_map(|rule| rule.said(app)) {
        let _ = writeln!(text, "       {DIM}{}{PLAIN}", one_line(&line));
    }
    if let Some(why) = failure {
        let _ = writeln!(text, "       fails without running: {}", one_line(why));
    }
}

fn to_json(
    forecast: &Forecast,
    event: &Event,
    others: &BTreeMap<&'static str, Vec<Arc<Hook>>>,
    unsent: &[String],
    app: &App,
) -> Value {
    let mut hooks = Vec::new();
    for (number, stage) in forecast.stages.iter().enumerate() {
        for step in stage {
            let more = [("stage", json!(number + 1)), ("failure", json!(step.failure))];
            hooks.push(entry(&step.hook, "runs", more, app));
        }
    }
    for ForecastStep { hook, failure } in &forecast.depends {
        hooks.push(entry(hook, "depends", [("matcher", json!(hook.matcher.text())), ("failure", json!(failure))], app));
    }
    for Skip { hook, reason, detail, .. } in &forecast.skipped {
        let mut skipped = entry(hook, "skipped", [("reason", json!(reason.name())), ("detail", json!(detail))], app);
        if let Some(entry) = skipped.as_object_mut() {
            entry.insert("reasonAt".to_owned(), place::json_of(&place::of_reason(hook, *reason, app)));
        }
        if let (Reason::Condition, Some(entry)) = (reason, skipped.as_object_mut()) {
            let values = app.engine.condition_values(hook, event).into_iter();
            let read = |value: Option<String>| value.and_then(|value| serde_json::from_str(&value).ok());
            let values: Map<String, Value> =
                values.map(|(name, value)| (name, read(value).unwrap_or_default())).collect();
            entry.insert("values".to_owned(), values.into());
        }
        hooks.push(skipped);
    }
    let others = others.iter().map(|(kind, hooks)| {
        let ids: Vec<&str> = hooks.iter().map(|hook| hook.id()).collect();
        ((*kind).to_owned(), json!(ids))
    });
    json!({
        "event": forecast.event.name(),
        "hooks": hooks,
        "otherEvents": others.collect::<Map<_, _>>(),
        "unsent": unsent,
        "off": app.what_is_off(),
        "problems": app.problems.len(),
    })
}

fn entry(hook: &Hook, state: &str, more: [(&str, Value); 2], app: &App) -> Value {
    let mut value = json!({
        "id": hook.id(),
        "name": hook.spec.name,
        "state": state,
        "declared": place::to_json(hook),
        "timeoutMs": hook.timeout.value.as_secs_f64() * 1e3,
        "timeoutFrom": hook.timeout.basis.name(),
        "onFailure": hook.on_failure.value.name(),
        "onFailureFrom": hook.on_failure.basis.name(),
        "fromConfiguration": rules::to_json(hook, app),
        "fromHook": rules::own_to_json(hook, app),
    });
    if let Some(map) = value.as_object_mut() {
        map.extend(more.map(|(name, value)| (name.to_owned(), value)));
    }
    value
}
