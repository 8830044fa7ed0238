//! Notices about one event: hooks that did not run and, with `wants_details`, everything else.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ollm_engine::{Outcome, Reason, Report};
use ollm_protocol::{Event, EventKind, Hook, Remedy};

use crate::app::App;
use crate::app_context::AppContext;
use crate::port::Notices;

/// Further hooks that did not run are only counted.
const MOST_LINES: usize = 20;

/// Tells the person about the dispatch, one line each.
pub(super) fn tell(event: &Event, outcome: &Outcome, context: &AppContext, notices: &mut dyn Notices) {
    for line in not_run(event, outcome, context) {
        notices.tell(&line);
    }
    for failure in outcome.reports.iter().filter_map(|report| failure(report, event, outcome)) {
        notices.tell_failure(&failure);
    }
    if notices.wants_details() {
        tell_details(outcome, notices);
    }
}

/// A failure after which the call goes on: a person who wrote a guard may expect that it blocks.
fn failure(report: &Report, event: &Event, outcome: &Outcome) -> Option<String> {
    let failure = report.failure()?;
    let is_open =
        event.kind == EventKind::BeforeTool && !report.hook.is_gate() && !report.detached && outcome.continues();
    let note = if is_open { "; the call goes on: `\"onFailure\": \"block\"` in the hook would stop it" } else { "" };
    Some(failure + note)
}

/// Hooks that did not run although a person may expect them to, one line each.
pub(super) fn not_run(event: &Event, outcome: &Outcome, context: &AppContext) -> Vec<String> {
    unmatched(event, outcome).into_iter().chain(skipped(outcome, context)).collect()
}

/// Skipped hooks that a person may want to run.
fn skipped(outcome: &Outcome, context: &AppContext) -> Vec<String> {
    let concerns = |reason| matches!(reason, Reason::Untrusted | Reason::Modified | Reason::Unsafe | Reason::Missing);
    let skipped: Vec<_> = outcome.skipped.iter().filter(|skip| concerns(skip.reason)).collect();
    let shown = skipped.iter().take(MOST_LINES);
    let shown = shown.map(|skip| format!("{} did not run: {}", skip.hook.spec.title(), skip.detail));
    let more = skipped.len().checked_sub(MOST_LINES).filter(|more| *more > 0);
    let more = more.map(|more| format!("{more} more hooks did not run; {}", context.tell(&Remedy::ListHooks)));
    shown.chain(more).collect()
}

/// The hooks that could not match, because the event does not say what it is about.
fn unmatched(event: &Event, outcome: &Outcome) -> Option<String> {
    let (field, reason) = match event.missing_subject() {
        Some(field) => (field, Reason::Matcher),
        None => (event.missing_files()?, Reason::Pattern),
    };
    let unmatched = outcome.skipped.iter().filter(|skip| skip.reason == reason);
    let labels: Vec<String> = unmatched.map(|skip| skip.hook.spec.label()).collect();
    let lacks = format!("the {} event has no `{field}`", event.kind.name());
    let (shown, more) = labels.split_at(MOST_LINES.min(labels.len()));
    match more.len() {
        0 if !shown.is_empty() => Some(format!("{lacks}, so these hooks did not run: {}", shown.join(", "))),
        0 if event.kind.is_tool_call() => Some(format!("{lacks}, so nothing that depends on the tool was judged")),
        0 => None,
        more => Some(format!("{lacks}, so these hooks did not run: {} and {more} more", shown.join(", "))),
    }
}

/// The files that were read, if details are wanted.
pub(super) fn tell_files(app: &App, context: &AppContext, notices: &mut dyn Notices) {
    if !notices.wants_details() {
        return;
    }
    let own = context.places.project.iter().map(|project| project.join(".ollm"));
    let configurations =
        std::iter::once(context.places.home.clone()).chain(own).map(|folder| folder.join("config.yaml"));
    for file in configurations.filter(|file| file.is_file()) {
        notices.detail(&|| format!("read {}", file.display()));
    }
    let hooks = app.hooks();
    let mut files: BTreeMap<&Path, usize> = BTreeMap::new();
    for hook in hooks.iter().filter(|hook| !hook.spec.origin.file.as_os_str().is_empty()) {
        *files.entry(&hook.spec.origin.file).or_default() += 1;
    }
    for (file, count) in files {
        notices.detail(&|| format!("read {}: {count} hooks", file.display()));
    }
}

/// The plan, and the duration of each hook.
fn tell_details(outcome: &Outcome, notices: &mut dyn Notices) {
    let stages: Vec<String> = outcome.plan.iter().map(|hooks| stage(hooks)).collect();
    let plan = if stages.is_empty() { "no hook".to_owned() } else { stages.join(", then ") };
    notices.detail(&|| format!("plan of {}: {plan}", outcome.event.name()));
    for skip in &outcome.skipped {
        notices.detail(&|| format!("skipped {}: {}: {}", skip.hook.id(), skip.reason.name(), skip.detail));
    }
    for report in &outcome.reports {
        let millis = report.duration.as_secs_f64() * 1e3;
        notices.detail(&|| format!("{} was {} after {millis:.1} ms", report.hook.id(), report.status.name()));
        for warning in &report.warnings {
            notices.detail(&|| format!("{} warns: {warning}", report.hook.id()));
        }
    }
    let millis = outcome.duration.as_secs_f64() * 1e3;
    notices.detail(&|| format!("{} after {millis:.1} ms", outcome.verdict.flow.name()));
}

fn stage(hooks: &[Arc<Hook>]) -> String {
    hooks.iter().map(|hook| hook.id()).collect::<Vec<_>>().join(" + ")
}
