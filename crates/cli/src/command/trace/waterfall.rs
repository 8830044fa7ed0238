//! The events of a session from top to bottom, each with its hooks on a time scale of its own.

use std::collections::HashSet;
use std::fmt::Write;
use std::time::Duration;

use ollm_app::trace::{HookRun, Record, at};
use ollm_protocol::units::counted;
use ollm_store::one_line;

use super::short_name;
use crate::timeline::{BOLD, Bar, DIM, PLAIN, RED, skip_line};

/// More events of one session are not shown.
pub(super) const MOST: usize = 1000;

pub(super) fn text(records: &[Record]) -> String {
    let mut text = head(records);
    let mut folded: Vec<&str> = Vec::new();
    let mut told = HashSet::new();
    for record in records {
        if is_quiet(record) {
            folded.push(record.text("event"));
            continue;
        }
        unfold(&mut folded, &mut text);
        bars(record, &mut told, &mut text);
    }
    unfold(&mut folded, &mut text);
    text
}

fn head(records: &[Record]) -> String {
    let Some(first) = records.first() else { return String::new() };
    let session = match first.text("session") {
        "" => "events without a session".to_owned(),
        id => format!("session {}", one_line(id)),
    };
    let refused = records.iter().filter(|record| !record.continues()).count();
    let day = first.text("time").get(..10).unwrap_or_default();
    let refused = if refused > 0 { format!(", {RED}{refused} refused{PLAIN}") } else { String::new() };
    let count = match records.len() {
        MOST => format!("the last {MOST} events"),
        count => counted(count, "event"),
    };
    format!("{BOLD}{session}{PLAIN}, {}, UTC: {count}{refused}\n", one_line(day))
}

/// Whether it had nothing to do with a person's hooks: none ran, none was kept from running, none refused.
fn is_quiet(record: &Record) -> bool {
    record.continues() && record.runs().all(|run| !is_shown(&run)) && record.list("skipped").is_empty()
}

/// Built-in guards are shown where they say something.
fn is_shown(run: &HookRun<'_>) -> bool {
    !run.is_builtin() || matches!(run.flow, "ask" | "block" | "halt")
}

fn unfold(folded: &mut Vec<&str>, text: &mut String) {
    if folded.is_empty() {
        return;
    }
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for name in folded.drain(..) {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let often = |(name, count): &(&str, usize)| match count {
        1 => one_line(name),
        _ => format!("{} ×{count}", one_line(name)),
    };
    let names: Vec<String> = counts.iter().map(often).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{DIM}{:<14}without hooks: {}{PLAIN}", "", names.join(", "));
}

/// One event, with the hooks that ran on a time scale of its own.
pub(crate) fn event(record: &Record, text: &mut String) {
    bars(record, &mut HashSet::new(), text);
}

/// The same, where an earlier event of the session may have told already why a hook does not run.
fn bars<'r>(record: &'r Record, told: &mut HashSet<(&'r str, &'r str)>, text: &mut String) {
    let time = record.text("time").get(11..23).unwrap_or_default();
    let subject = one_line(record.text("subject"));
    let name = one_line(record.text("event"));
    let _ = writeln!(text, "{DIM}{}{PLAIN}  {BOLD}{name}{PLAIN} {subject}", one_line(time));
    let runs: Vec<HookRun<'_>> = record.runs().filter(is_shown).collect();
    let whole = runs.iter().map(|run| run.start + run.millis).fold(1.0, f64::max);
    for run in &runs {
        let bar = Bar { name: run.name, status: run.status, start: millis(run.start), took: millis(run.millis) };
        let _ = writeln!(text, "{}", bar.line(millis(whole)));
        if let Some(error) = run.error {
            let _ = writeln!(text, "    {}", one_line(error));
        }
    }
    let mut as_before = Vec::new();
    for skip in record.list("skipped").iter().filter(|skip| skip.is_object()) {
        let field = |name| at(skip, name).as_str().unwrap_or_default();
        let (name, reason) = (one_line(short_name(field("id"))), one_line(field("reason")));
        if told.insert((field("id"), field("reason"))) {
            let _ = writeln!(text, "{}", skip_line(&name, &reason, &one_line(field("detail"))));
        } else {
            as_before.push(format!("{name} ({reason})"));
        }
    }
    if !as_before.is_empty() {
        let _ = writeln!(text, "  {DIM}not run, as before: {}{PLAIN}", as_before.join(", "));
    }
    if !record.continues() {
        let flow = record.verdict("flow").as_str().unwrap_or("?");
        let reason = record.verdict("reason").as_str().unwrap_or_default();
        let _ = writeln!(text, "  => {RED}{}{PLAIN}: {}", one_line(flow), one_line(&reason.replace('\n', "; ")));
    } else if record.verdict("modifiedArgs") == true {
        let _ = writeln!(text, "  => arguments changed");
    }
}

fn millis(number: f64) -> Duration {
    Duration::try_from_secs_f64(number / 1e3).unwrap_or_default()
}
