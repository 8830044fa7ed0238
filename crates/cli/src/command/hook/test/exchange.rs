//! What passed between us and a hook, for people and for programs.

use std::fmt::Write;

use super::touched;
use ollm_app::cases;
use ollm_engine::{Outcome, Report};
use ollm_protocol::{Event, Hook};
use ollm_store::{escape_for_people, one_line};
use serde_json::{Value, json};

use crate::error::Failure;
use crate::output::Output;
use crate::timeline::{BOLD, DIM, PLAIN};

pub(super) fn show(
    hook: &Hook,
    event: &Event,
    outcome: &Outcome,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let stdin = String::from_utf8_lossy(&hook.written(event)).into_owned();
    if as_json {
        return output.pretty_json(&json(hook, &stdin, outcome));
    }
    output.text(&text(hook, &stdin, outcome))
}

fn json(hook: &Hook, stdin: &str, outcome: &Outcome) -> Value {
    let report = outcome.reports.first();
    let process = report.and_then(|report| report.process.as_ref());
    let said = process.and_then(|process| process.spoken.as_ref());
    json!({
        "id": hook.id(),
        "event": outcome.event.name(),
        "stdin": stdin,
        "stdout": said.map(|said| &said.stdout),
        "stderr": said.map(|said| &said.stderr),
        "exit": process.and_then(|process| process.exit),
        "signal": process.and_then(|process| process.signal),
        "durationMs": report.map(|report| (report.duration.as_secs_f64() * 1e6).round() / 1e3),
        "warnings": report.map(|report| &report.warnings),
        "touched": report.filter(|report| !report.accesses.is_empty()).map(touched::to_json),
        "skipDetail": outcome.skipped.first().map(|skip| &skip.detail),
        "verdict": cases::actual(outcome),
    })
}

fn text(hook: &Hook, stdin: &str, outcome: &Outcome) -> String {
    let mut text = format!("{BOLD}{}{PLAIN} at {}\n", one_line(hook.id()), outcome.event.name());
    part(&mut text, "stdin", &indented(stdin));
    for report in &outcome.reports {
        ran(&mut text, report);
    }
    for skip in &outcome.skipped {
        let _ = writeln!(text, "{DIM}did not run{PLAIN}  {}: {}", skip.reason.name(), one_line(&skip.detail));
    }
    part(&mut text, "verdict", &decided(outcome));
    text
}

fn ran(text: &mut String, report: &Report) {
    if let Some(process) = &report.process {
        if let Some(said) = &process.spoken {
            part(text, "stdout", &said.stdout);
            part(text, "stderr", &said.stderr);
        }
        let end = match (process.exit, process.signal) {
            (Some(status), _) => format!("status {status}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "stopped by us".to_owned(),
        };
        let _ = writeln!(text, "{DIM}end{PLAIN}          {end} after {:.1} ms", report.duration.as_secs_f64() * 1e3);
    }
    let _ = writeln!(text, "{DIM}status{PLAIN}       {}", report.status.name());
    for (name, line) in report
        .error
        .iter()
        .map(|error| ("error", error))
        .chain(report.warnings.iter().map(|warning| ("warning", warning)))
    {
        let _ = writeln!(text, "{DIM}{name}{PLAIN}{:pad$}{}", "", one_line(line), pad = 13 - name.len());
    }
    for (name, line) in touched::lines(report) {
        let _ = writeln!(text, "{DIM}{name}{PLAIN}{:pad$}{}", "", one_line(&line), pad = 13 - name.len());
    }
}

/// What was decided, without the fields that say nothing.
fn decided(outcome: &Outcome) -> String {
    let mut actual = cases::actual(outcome);
    if let Some(map) = actual.as_object_mut() {
        map.retain(|name, value| {
            let says_nothing = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
            !says_nothing && !matches!(name.as_str(), "status" | "error" | "skipped")
        });
    }
    format!("{actual:#}")
}

/// JSON so that a person can read it; every other text unchanged.
fn indented(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |value| format!("{value:#}"))
}

fn part(text: &mut String, name: &str, content: &str) {
    let content = escape_for_people(content);
    let content = content.trim_end();
    if content.is_empty() {
        let _ = writeln!(text, "{DIM}{name}{PLAIN}{:pad$}(nothing)", "", pad = 13 - name.len());
        return;
    }
    let _ = writeln!(text, "{DIM}{name}{PLAIN}");
    for line in content.lines() {
        let _ = writeln!(text, "  {line}");
    }
}
