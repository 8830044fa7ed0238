//! `ollm hook plan`: what would happen for an event, without running anything.

use std::fmt::Write;
use std::sync::Arc;

use ollm_app::{App, AppContext, git_hook, tell_undeclared};
use ollm_catalog::Positions;
use ollm_engine::{Plan, Planned, Reason, Skip};
use ollm_protocol::Hook;
use ollm_store::one_line;
use serde_json::{Value, json};

use super::{event, rules};
use crate::error::Failure;
use crate::output::Output;

pub(super) fn run(
    event: &str,
    data: Option<&str>,
    context: &AppContext,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let event = event::given(event, data)?.event;
    let app = App::load(context, Positions::OnDemand)?;
    context.tell_notices(output);
    app.tell_problems(output);
    tell_undeclared(context, output);
    let Plan { event, stages, mut skipped } = app.engine.plan(&event);
    let name = event.name();
    let stages = runnable(stages, &app, &mut skipped);
    let planned = stages.iter().flatten().map(|step| &*step.hook);
    if let Some(note) = git_hook::waits_in_vain(planned, context) {
        output.tell(&note);
    }
    if as_json {
        return output.pretty_json(&to_json(name, &stages, &skipped));
    }
    output.text(&text(name, &stages, &skipped))
}

/// The hooks that would run; the others are skipped with the reason.
fn runnable(stages: Vec<Vec<Planned>>, app: &App, skipped: &mut Vec<Skip>) -> Vec<Vec<Step>> {
    let stages = stages.into_iter().map(|stage| {
        let forecasts = stage.iter().map(|planned| {
            let (hook, others) = app.engine.forecast(planned);
            skipped.extend(others);
            Some(Step { hook: hook?, failure: planned.failure().map(str::to_owned) })
        });
        forecasts.flatten().collect::<Vec<_>>()
    });
    stages.filter(|stage| !stage.is_empty()).collect()
}

/// A hook that would run, or fail without running.
struct Step {
    hook: Arc<Hook>,
    failure: Option<String>,
}

fn to_json(event: &str, stages: &[Vec<Step>], skipped: &[Skip]) -> Value {
    let step = |step: &Step| {
        let mut value = brief(&step.hook);
        if let (Some(map), Some(why)) = (value.as_object_mut(), &step.failure) {
            map.insert("failure".to_owned(), why.clone().into());
        }
        value
    };
    let stages = stages.iter().map(|stage| stage.iter().map(step).collect::<Vec<_>>()).collect::<Vec<_>>();
    let skipped = skipped.iter().map(|skip| {
        let mut value = brief(&skip.hook);
        if let Some(map) = value.as_object_mut() {
            map.insert("reason".to_owned(), skip.reason.name().into());
            map.insert("detail".to_owned(), skip.detail.clone().into());
        }
        value
    });
    json!({"event": event, "stages": stages, "skipped": skipped.collect::<Vec<_>>()})
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

fn text(event: &str, stages: &[Vec<Step>], skipped: &[Skip]) -> String {
    let mut text = format!("{event}\n");
    if stages.is_empty() {
        text.push_str("  no hook runs\n");
    }
    for (number, stage) in stages.iter().enumerate() {
        let together = if stage.len() > 1 { ", at once" } else { "" };
        let _ = writeln!(text, "  {}.{together}", number + 1);
        for Step { hook, failure } in stage {
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
            let _ = writeln!(text, "     {}  [{rules}{more}]", one_line(hook.id()));
            if let Some(why) = failure {
                let _ = writeln!(text, "       fails: {}", one_line(why));
            }
        }
    }
    if !skipped.is_empty() {
        text.push_str("  not run:\n");
    }
    for Skip { hook, reason, detail } in skipped {
        let mark = if matches!(reason, Reason::Matcher) { "" } else { "! " };
        let _ = writeln!(text, "     {mark}{}  {}: {}", one_line(hook.id()), reason.name(), one_line(detail));
    }
    text
}
