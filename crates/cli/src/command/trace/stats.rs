//! Counts over records, for people.

use std::fmt::Write;

use ollm_app::trace::{HookStats, TraceStats};
use ollm_store::one_line;

use crate::table::table;

const HEAD: [&str; 9] = ["HOOK", "RUNS", "BLOCKED", "FAILED", "SKIPPED", "P50 MS", "P95 MS", "P99 MS", "MAX MS"];

pub(super) fn text(stats: &TraceStats, never_fired: &[String]) -> String {
    let (from, to) = stats.span.clone().unwrap_or_default();
    let mut text = format!("{} events from {from} to {to}, {} refused\n", stats.events, stats.refused);
    for (event, (count, refused)) in &stats.by_event {
        let refused = if *refused > 0 { format!(", {refused} refused") } else { String::new() };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {:<22}{count}{refused}", one_line(event));
    }
    if !stats.hooks.is_empty() {
        let rows = stats.hooks.iter().map(|(id, hook)| row(id, hook));
        text.push('\n');
        text.push_str(&table(HEAD, rows));
    }
    if !stats.slowest.is_empty() {
        text.push_str("\nslowest\n");
    }
    for run in &stats.slowest {
        let _ = writeln!(text, "  {:>9.1} ms  {}  {}", run.millis, one_line(&run.hook), one_line(&run.trace_id));
    }
    if !never_fired.is_empty() {
        text.push_str("\nnever ran; `ollm explain ID` says why\n");
    }
    for id in never_fired {
        let _ = writeln!(text, "  {}", one_line(id));
    }
    text
}

fn row(id: &str, hook: &HookStats) -> [String; 9] {
    let failed = hook.count("failed") + hook.count("timeout");
    let rate = hook.failure_rate().filter(|rate| *rate > 0.0).map(|rate| format!(" ({:.0} %)", rate * 100.0));
    let time = |percent| hook.percentile(percent).map_or_else(|| "-".to_owned(), |millis| format!("{millis:.1}"));
    [
        id.to_owned(),
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
