//! Metrics about events and hooks, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ollm_engine::{LateResult, Outcome, Report};
use ollm_protocol::{Event, EventKind};

mod otlp;

/// Further rows are not counted, because each takes memory as long as we run.
const MOST_ROWS: usize = 2048;
/// The upper bounds of the duration buckets, in seconds.
const BUCKETS: [f64; 10] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// The counts so far.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    counted: Mutex<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    events: BTreeMap<[String; 2], u64>,
    runs: BTreeMap<[String; 3], u64>,
    skips: BTreeMap<[String; 2], u64>,
    times: BTreeMap<String, Times>,
    left_out: u64,
    spans_sent: u64,
    spans_dropped: u64,
}

/// A histogram of durations.
#[derive(Debug, Default)]
struct Times {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

impl Times {
    fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        self.count += 1;
        self.sum += seconds;
        for (bucket, bound) in self.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= bound);
        }
    }
}

impl Counters {
    fn run(&mut self, event: EventKind, report: &Report) {
        let id = report.hook.id().to_owned();
        let row = [id.clone(), event.name().to_owned(), report.status.name().to_owned()];
        add(&mut self.runs, row, &mut self.left_out);
        if self.times.contains_key(&id) || self.times.len() < MOST_ROWS {
            self.times.entry(id).or_default().add(report.duration);
        }
    }
}

impl Metrics {
    fn lock(&self) -> MutexGuard<'_, Counters> {
        // After a panic of another thread, a count is at most one behind.
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(&self, event: &Event, outcome: &Outcome) {
        let counted = &mut *self.lock();
        let row = [event.kind.name().to_owned(), outcome.verdict.flow.name().to_owned()];
        add(&mut counted.events, row, &mut counted.left_out);
        // A background hook has not ended yet, so its result is unknown.
        outcome.reports.iter().filter(|report| !report.detached).for_each(|report| counted.run(event.kind, report));
        for skip in &outcome.skipped {
            let row = [skip.hook.id().to_owned(), skip.reason.name().to_owned()];
            add(&mut counted.skips, row, &mut counted.left_out);
        }
    }

    /// Counts a background hook that has ended.
    pub(super) fn count_late(&self, late: &LateResult) {
        self.lock().run(late.event, &late.report);
    }

    pub(super) fn sent(&self, spans: usize) {
        self.lock().spans_sent += spans as u64;
    }

    pub(super) fn dropped(&self, spans: usize) {
        self.lock().spans_dropped += spans as u64;
    }

    /// All metrics as text for Prometheus.
    pub(super) fn text(&self) -> String {
        let counted = &*self.lock();
        let mut text = String::new();
        table(&mut text, "ollm_events_total", "Events by what was decided.", ["event", "flow"], &counted.events);
        let labels = ["hook", "event", "status"];
        table(&mut text, "ollm_hook_runs_total", "Runs of hooks by how they ended.", labels, &counted.runs);
        table(&mut text, "ollm_hook_skips_total", "Hooks that did not run.", ["hook", "reason"], &counted.skips);
        histogram(&mut text, &counted.times);
        for (name, help, value) in [
            (
                "ollm_rows_left_out_total",
                "What was not counted, because there are too many different rows.",
                counted.left_out,
            ),
            ("ollm_spans_sent_total", "Spans that a collector took.", counted.spans_sent),
            ("ollm_spans_dropped_total", "Spans that could not be sent.", counted.spans_dropped),
        ] {
            head(&mut text, name, help, "counter");
            let _ = writeln!(text, "{name} {value}");
        }
        text
    }
}

fn add<const N: usize>(rows: &mut BTreeMap<[String; N], u64>, row: [String; N], left_out: &mut u64) {
    if rows.len() >= MOST_ROWS && !rows.contains_key(&row) {
        *left_out += 1;
    } else {
        *rows.entry(row).or_default() += 1;
    }
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn table<const N: usize>(
    text: &mut String,
    name: &str,
    help: &str,
    labels: [&str; N],
    rows: &BTreeMap<[String; N], u64>,
) {
    head(text, name, help, "counter");
    for (row, value) in rows {
        let pairs: Vec<String> = labels.iter().zip(row).map(|(label, value)| pair(label, value)).collect();
        let _ = writeln!(text, "{name}{{{}}} {value}", pairs.join(","));
    }
}

fn histogram(text: &mut String, times: &BTreeMap<String, Times>) {
    const NAME: &str = "ollm_hook_duration_seconds";
    head(text, NAME, "How long hooks took.", "histogram");
    for (hook, times) in times {
        let hook = pair("hook", hook);
        for (count, bound) in times.buckets.iter().zip(BUCKETS) {
            let _ = writeln!(text, "{NAME}_bucket{{{hook},le=\"{bound}\"}} {count}");
        }
        let _ = writeln!(text, "{NAME}_bucket{{{hook},le=\"+Inf\"}} {}", times.count);
        let _ = writeln!(text, "{NAME}_sum{{{hook}}} {}\n{NAME}_count{{{hook}}} {}", times.sum, times.count);
    }
}

/// A label with its value; only these three characters need a backslash.
fn pair(label: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{label}=\"{value}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_bounded_and_values_cannot_break_out_of_their_quotes() {
        let (mut rows, mut left_out) = (BTreeMap::new(), 0);
        for at in 0..MOST_ROWS + 5 {
            add(&mut rows, [at.to_string()], &mut left_out);
        }
        add(&mut rows, ["0".to_owned()], &mut left_out);
        assert_eq!((rows.len(), left_out, rows[&["0".to_owned()]]), (MOST_ROWS, 5, 2));
        assert_eq!(pair("hook", "a\"} 1\n\\"), r#"hook="a\"} 1\n\\""#);
    }
}
