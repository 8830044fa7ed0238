//! Counts over records, for people.

use std::collections::BTreeSet;
use std::fmt::Write;

use ollm_app::trace::{HookStats, TraceStats};
use ollm_protocol::units::counted;
use ollm_store::one_line;

use super::short_name;
use crate::table::table;

const HEAD: [&str; 9] = ["HOOK", "RUNS", "BLOCKED", "FAILED", "SKIPPED", "P50 MS", "P95 MS", "P99 MS", "MAX MS"];

pub(super) fn text(stats: &TraceStats, never_fired: &[String], long: bool) -> String {
    let ids: BTreeSet<&str> = stats.hooks.keys().chain(never_fired).map(String::as_str).collect();
    let called = |id: &str| called(id, &ids, long);
    let (from, to) = stats.span.clone().unwrap_or_default();
    let events = counted(stats.events, "event");
    let mut text = format!("{events} from {from} to {to}, {} refused\n", stats.refused);
    for (event, (count, refused)) in &stats.by_event {
        let refused = if *refused > 0 { format!(", {refused} refused") } else { String::new() };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {:<22}{count}{refused}", one_line(event));
    }
    if !stats.hooks.is_empty() {
        let rows = stats.hooks.iter().map(|(id, hook)| row(called(id), hook));
        text.push('\n');
        text.push_str(&table(HEAD, rows));
    }
    if !stats.slowest.is_empty() {
        text.push_str("\nslowest\n");
    }
    for run in &stats.slowest {
        let trace = if long { &run.trace_id } else { run.trace_id.rsplit('-').next().unwrap_or_default() };
        let _ = writeln!(text, "  {:>9.1} ms  {}  {}", run.millis, one_line(&called(&run.hook)), one_line(trace));
    }
    if !never_fired.is_empty() {
        text.push_str("\nnever ran; `ollm explain HOOK` says why\n");
    }
    for id in never_fired {
        let _ = writeln!(text, "  {}", one_line(&called(id)));
    }
    text
}

/// What a hook is called: by its name, unless another one has that, or ids are wanted.
fn called(id: &str, ids: &BTreeSet<&str>, long: bool) -> String {
    let name = short_name(id);
    let is_alone = ids.iter().filter(|other| short_name(other) == name).count() <= 1;
    if is_alone && !long { name.to_owned() } else { id.to_owned() }
}

fn row(name: String, hook: &HookStats) -> [String; 9] {
    let failed = hook.count("failed") + hook.count("timeout");
    let rate = hook.failure_rate().filter(|rate| *rate > 0.0).map(|rate| format!(" ({:.0} %)", rate * 100.0));
    let time = |percent| hook.percentile(percent).map_or_else(|| "-".to_owned(), |millis| format!("{millis:.1}"));
    [
        name,
        hook.runs().to_string(),
        hook.count("blocked").to_string(),
        format!("{failed}{}", rate.unwrap_or_default()),
        hook.times_skipped().to_string(),
        time(50),
        time(95),
        time(99),
        time(100),
    ]
}
