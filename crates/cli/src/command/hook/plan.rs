//! `ollm hook plan`: what would happen for an event, without running anything.

use std::fmt::Write;

use ollm_app::{App, AppContext, Forecast, tell_undeclared, unsent_events};
use ollm_engine::{ForecastStep, Reason, Skip};
use ollm_protocol::Hook;
use ollm_store::one_line;
use serde_json::{Value, json};

use super::{event, rules};
use crate::error::Failure;
use crate::output::Output;
use crate::timeline::{BOLD, DIM, GREEN, PLAIN, RED, YELLOW};

pub(super) fn run(
    event: &str,
    data: Option<&str>,
    context: &AppContext,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let event = event::given(event, data)?.event;
    output.busy("reading hooks");
    let app = App::load(context)?;
    context.tell_notices(output);
    app.tell_problems(output);
    tell_undeclared(context, output);
    let forecast = Forecast::of(&event, &app);
    let planned = forecast.stages.iter().flatten().map(|step| &*step.hook);
    for line in unsent_events(planned, context) {
        output.tell(&line);
    }
    if as_json {
        return output.pretty_json(&to_json(&forecast));
    }
    output.text(&text(&forecast))
}

fn to_json(forecast: &Forecast) -> Value {
    let step = |step: &ForecastStep| {
        let mut value = brief(&step.hook);
        if let (Some(map), Some(why)) = (value.as_object_mut(), &step.failure) {
            map.insert("failure".to_owned(), why.clone().into());
        }
        value
    };
    let stages: Vec<Vec<Value>> = forecast.stages.iter().map(|stage| stage.iter().map(step).collect()).collect();
    let depends = forecast.depends.iter().map(|found| {
        let mut value = step(found);
        if let Some(map) = value.as_object_mut() {
            map.insert("matcher".to_owned(), found.hook.matcher.text().into());
        }
        value
    });
    let skipped = forecast.skipped.iter().map(|skip| {
        let mut value = brief(&skip.hook);
        if let Some(map) = value.as_object_mut() {
            map.insert("reason".to_owned(), skip.reason.name().into());
            map.insert("detail".to_owned(), skip.detail.clone().into());
        }
        value
    });
    json!({
        "event": forecast.event.name(),
        "stages": stages,
        "depends": depends.collect::<Vec<_>>(),
        "skipped": skipped.collect::<Vec<_>>(),
    })
}

fn brief(hook: &Hook) -> Value {
    let mut value = json!({
        "id": hook.id(),
        "name": hook.spec.name,
        "source": hook.spec.source.name(),
        "dialect": hook.dialect.name(),
        "priority": hook.spec.priority.name(),
        "timeoutMs": hook.timeout.value.as_secs_f64() * 1e3,
        "timeoutFrom": hook.timeout.basis.name(),
        "onFailure": hook.on_failure.value.name(),
        "onFailureFrom": hook.on_failure.basis.name(),
    });
    if let Some(map) = value.as_object_mut() {
        map.extend(rules::said(hook));
    }
    value
}

fn text(forecast: &Forecast) -> String {
    let Forecast { event, stages, depends, skipped } = forecast;
    let mut text = format!("{BOLD}{}{PLAIN}\n", event.name());
    if stages.is_empty() && depends.is_empty() {
        text.push_str("  no hook runs\n");
    }
    for (number, stage) in stages.iter().enumerate() {
        let together = if stage.len() > 1 { ", at once" } else { "" };
        let _ = writeln!(text, "  {}.{together}", number + 1);
        for ForecastStep { hook, failure } in stage {
            let rules = format!(
                "{}, {} priority, {}, at most {:?} (from the {}), failure: {} (from the {})",
                hook.spec.source.name(),
                hook.spec.priority.name(),
                hook.dialect.name(),
                hook.timeout.value,
                hook.timeout.basis.name(),
                hook.on_failure.value.name(),
                hook.on_failure.basis.name(),
            );
            let more = rules::brief(hook).map(|more| format!(", {more}")).unwrap_or_default();
            let _ = writeln!(text, "     {GREEN}{}{PLAIN}  {DIM}[{rules}{more}]{PLAIN}", one_line(hook.id()));
            fails(failure.as_deref(), &mut text);
        }
    }
    if !depends.is_empty() {
        text.push_str("  run for some:\n");
    }
    for ForecastStep { hook, failure } in depends {
        let _ = writeln!(text, "     {YELLOW}{}{PLAIN}  {}", one_line(hook.id()), one_line(&rules::narrowed(hook)));
        fails(failure.as_deref(), &mut text);
    }
    if !skipped.is_empty() {
        text.push_str("  not run:\n");
    }
    for Skip { hook, reason, detail, .. } in skipped {
        let (mark, colour) = if matches!(reason, Reason::Matcher) { ("", DIM) } else { ("! ", RED) };
        let (id, detail) = (one_line(hook.id()), one_line(detail));
        let _ = writeln!(text, "     {colour}{mark}{id}{PLAIN}  {}: {detail}", reason.name());
    }
    text
}

fn fails(why: Option<&str>, text: &mut String) {
    if let Some(why) = why {
        let _ = writeln!(text, "       {RED}fails{PLAIN}: {}", one_line(why));
    }
}
