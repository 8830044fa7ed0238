//! Explains how an earlier verdict came about, step by step.

use std::fmt::Write;

use ollm_app::App;
use ollm_app::trace::{HookRun, Record, at, event_of};
use ollm_engine::Reason;
use ollm_protocol::{Event, EventKind, Source};
use ollm_store::one_line;
use serde_json::{Value, json};

use super::event::{self, condition};
use super::place;
use crate::error::Failure;
use crate::output::Output;
use crate::timeline::{BOLD, DIM, PLAIN};

/// Later words are stronger; of two words the stronger one holds.
const FLOWS: [&str; 5] = ["no_opinion", "allow", "ask", "block", "halt"];

/// One hook's part in the verdict.
struct Fold<'r> {
    run: HookRun<'r>,
    /// The verdict after this hook.
    after: &'static str,
    decided: bool,
}

pub(super) fn run(record: &Record, app: &App, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let folds = folds(record);
    if as_json {
        return output.pretty_json(&to_json(record, &folds, app));
    }
    output.text(&text(record, &folds, app))
}

fn folds(record: &Record) -> Vec<Fold<'_>> {
    let mut strength = 0;
    let mut folds = Vec::new();
    for run in record.runs() {
        let said = FLOWS.iter().position(|flow| *flow == run.flow).unwrap_or_default();
        let decided = said > strength;
        strength = strength.max(said);
        folds.push(Fold { run, after: FLOWS.get(strength).copied().unwrap_or("?"), decided });
    }
    folds
}

fn declared(id: &str, app: &App) -> String {
    match app.hook(id).ok().and_then(|hook| place::place(&hook)) {
        Some(place) => place,
        None if id.starts_with("builtin:") => "built in".to_owned(),
        None => "declared nowhere any more".to_owned(),
    }
}

/// Where a hook is declared, or where it is said why it did not run, with the lines.
fn shown(id: &str, reason: &str, app: &App, text: &mut String) {
    match app.hook(id).ok().filter(|hook| place::place(hook).is_some()) {
        Some(hook) => {
            let reason = REASONS.into_iter().find(|known| known.name() == reason);
            let origin = reason.map(|reason| place::of_reason(&hook, reason, app));
            event::declared(origin.as_ref().unwrap_or(&hook.spec.origin), text);
        }
        None => {
            let _ = writeln!(text, "       {DIM}--> {}{PLAIN}", one_line(&declared(id, app)));
        }
    }
}

/// The reasons that a file can give why a hook did not run.
const REASONS: [Reason; 7] = [
    Reason::Disabled,
    Reason::Matcher,
    Reason::Pattern,
    Reason::Condition,
    Reason::RateLimited,
    Reason::Requires,
    Reason::Scope,
];

fn text(record: &Record, folds: &[Fold<'_>], app: &App) -> String {
    let subject = one_line(record.text("subject"));
    let mut text =
        format!("{BOLD}{} {subject}{PLAIN}  {}\n", one_line(record.text("event")), one_line(record.text("time")));
    let _ = writeln!(text, "  begins as no_opinion");
    for (number, Fold { run, after, decided }) in folds.iter().enumerate() {
        let effect = if *decided {
            format!("{BOLD}so the verdict is {after}{PLAIN}")
        } else {
            format!("the verdict stays {after}")
        };
        let (id, status, flow) = (one_line(run.id), one_line(run.status), one_line(run.flow));
        let parts: Vec<String> = run.parts().map(one_line).collect();
        let parts = if parts.is_empty() { String::new() } else { format!("; it gives {}", parts.join(", ")) };
        // A failed hook says nothing; `onFailure` or the dialect decides what its failure means.
        let says = if matches!(run.status, "failed" | "timeout") { "which counts as" } else { "says" };
        let _ = writeln!(text, "  {}. {id}  {status}, {says} {flow}: {effect}{parts}", number + 1);
        shown(run.id, "", app, &mut text);
        if let Some(error) = run.error {
            let _ = writeln!(text, "       error: {}", one_line(error));
        }
    }
    let event = known_event(record);
    for skip in record.list("skipped").iter().filter(|skip| skip.is_object()) {
        let field = |name| one_line(at(skip, name).as_str().unwrap_or_default());
        let _ = writeln!(text, "  not run: {}  {}: {}", field("id"), field("reason"), field("detail"));
        if let (Ok(hook), "condition", Some(event)) = (app.hook(&field("id")), &*field("reason"), &event) {
            condition(&hook, event, app, &mut text);
        }
        // The entry for all hooks of a project together has no single declaration to show.
        if field("id") != Source::Workspace.name() {
            shown(&field("id"), &field("reason"), app, &mut text);
        }
    }
    let flow = record.verdict("flow").as_str().unwrap_or("?");
    let goes_on = if record.continues() { "the operation went on" } else { "the operation did not go on" };
    let _ = writeln!(text, "  => {BOLD}{}{PLAIN}: {goes_on}", one_line(flow));
    for (field, value) in [
        ("reason", record.verdict("reason")),
        ("off", at(&record.value, "off")),
        ("unheard", at(&record.value, "unheard")),
    ] {
        if let Some(value) = value.as_str() {
            let _ = writeln!(text, "     {field}: {}", one_line(&value.replace('\n', "; ")));
        }
    }
    text
}

/// The event as far as the record has its data.
fn known_event(record: &Record) -> Option<Event> {
    let kind = EventKind::from_name(record.text("event"))?;
    let data = at(&record.value, "data").as_object().cloned().unwrap_or_default();
    Some(record.event().unwrap_or_else(|_| event_of(kind, &data)))
}

fn to_json(record: &Record, folds: &[Fold<'_>], app: &App) -> Value {
    let fold = |Fold { run, after, decided }: &Fold<'_>| {
        json!({
            "id": run.id, "status": run.status, "flow": run.flow, "error": run.error,
            "declared": declared(run.id, app), "decided": decided, "verdict": after, "parts": run.parts().collect::<Vec<_>>(),
        })
    };
    json!({
        "traceId": record.id(),
        "event": record.text("event"),
        "subject": at(&record.value, "subject"),
        "steps": folds.iter().map(fold).collect::<Vec<_>>(),
        "skipped": record.list("skipped"),
        "verdict": at(&record.value, "verdict"),
    })
}
