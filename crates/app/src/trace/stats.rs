//! Statistics over many records: how often each hook ran, how it ended, and how long it took.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::record::{HookRun, Record, at};
use crate::guards::UNREAD_PROJECT;

/// How many of the slowest runs are listed.
const SLOWEST: usize = 5;

/// Statistics over records.
#[derive(Clone, Debug, Default)]
pub struct TraceStats {
    /// How many events there were.
    pub events: usize,
    /// How many of them did not continue.
    pub refused: usize,
    /// The times of the first and the last event.
    pub span: Option<(String, String)>,
    /// How many events of each name there were, and how many of them did not continue.
    pub by_event: BTreeMap<String, (usize, usize)>,
    /// The hooks by id.
    pub hooks: BTreeMap<String, HookStats>,
    /// The slowest runs, slowest first.
    pub slowest: Vec<SlowRun>,
}

/// Statistics over the runs of one hook.
#[derive(Clone, Debug, Default)]
pub struct HookStats {
    /// How many runs ended in each way: ok, blocked, failed, timeout.
    pub statuses: BTreeMap<String, usize>,
    /// How often it did not run, by the reason.
    pub skipped: BTreeMap<String, usize>,
    /// How long each run took in milliseconds, in ascending order.
    millis: Vec<f64>,
}

/// One slow run.
#[derive(Clone, Debug)]
pub struct SlowRun {
    /// The hook's id.
    pub hook: String,
    /// Its record.
    pub trace_id: String,
    /// The duration in milliseconds.
    pub millis: f64,
}

impl TraceStats {
    /// Counts records, in any order.
    pub fn of<'r>(records: impl IntoIterator<Item = &'r Record>) -> TraceStats {
        let mut stats = TraceStats::default();
        for record in records {
            stats.add(record);
        }
        for hook in stats.hooks.values_mut() {
            hook.millis.sort_by(f64::total_cmp);
        }
        stats
    }

    fn add(&mut self, record: &Record) {
        let refused = usize::from(!record.continues());
        self.events += 1;
        self.refused += refused;
        let named = self.by_event.entry(record.text("event").to_owned()).or_default();
        *named = (named.0 + 1, named.1 + refused);
        let time = record.text("time");
        let span = self.span.get_or_insert_with(|| (time.to_owned(), time.to_owned()));
        if time < span.0.as_str() {
            time.clone_into(&mut span.0);
        }
        if time > span.1.as_str() {
            time.clone_into(&mut span.1);
        }
        record.runs().for_each(|run| self.add_run(&run, record));
        for skip in record.list("skipped") {
            // Hooks that were not read have no statistics.
            let id = at(skip, "id").as_str().filter(|id| *id != UNREAD_PROJECT);
            if let (Some(id), Some(reason)) = (id, at(skip, "reason").as_str()) {
                let hook = self.hooks.entry(id.to_owned()).or_default();
                *hook.skipped.entry(reason.to_owned()).or_default() += 1;
            }
        }
    }

    fn add_run(&mut self, run: &HookRun<'_>, record: &Record) {
        let hook = self.hooks.entry(run.id.to_owned()).or_default();
        *hook.statuses.entry(run.status.to_owned()).or_default() += 1;
        hook.millis.push(run.millis);
        if self.slowest.len() < SLOWEST || self.slowest.last().is_some_and(|last| last.millis < run.millis) {
            let (hook, trace_id) = (run.id.to_owned(), record.id().to_owned());
            self.slowest.push(SlowRun { hook, trace_id, millis: run.millis });
            self.slowest.sort_by(|one, other| other.millis.total_cmp(&one.millis));
            self.slowest.truncate(SLOWEST);
        }
    }

    /// All statistics as JSON, with the hooks that no record names.
    pub fn to_json(&self, never_fired: &[String]) -> Value {
        let counted = |(name, (count, refused)): (&String, &(usize, usize))| {
            (name.clone(), json!({"count": count, "refused": refused}))
        };
        let slow = |run: &SlowRun| json!({"hook": run.hook, "traceId": run.trace_id, "durationMs": run.millis});
        json!({
            "events": self.events,
            "refused": self.refused,
            "from": self.span.as_ref().map(|span| &span.0),
            "to": self.span.as_ref().map(|span| &span.1),
            "byEvent": self.by_event.iter().map(counted).collect::<serde_json::Map<_, _>>(),
            "hooks": self.hooks.iter().map(|(id, hook)| hook.to_json(id)).collect::<Vec<_>>(),
            "slowest": self.slowest.iter().map(slow).collect::<Vec<_>>(),
            "neverFired": never_fired,
        })
    }
}

impl HookStats {
    /// How often it ran.
    pub fn runs(&self) -> usize {
        self.millis.len()
    }

    /// How many runs ended like this.
    pub fn count(&self, status: &str) -> usize {
        self.statuses.get(status).copied().unwrap_or_default()
    }

    /// The share of runs that failed or timed out, from 0 to 1; `None` if it never ran.
    #[expect(clippy::cast_precision_loss, reason = "counts of records are far below 2^52")]
    pub fn failure_rate(&self) -> Option<f64> {
        let failed = self.count("failed") + self.count("timeout");
        (self.runs() > 0).then(|| failed as f64 / self.runs() as f64)
    }

    /// The percentile of the durations, by the nearest rank; `None` if it never ran.
    pub fn percentile(&self, percent: usize) -> Option<f64> {
        let rank = (self.millis.len() * percent).div_ceil(100).max(1);
        self.millis.get(rank - 1).copied()
    }

    /// How often it did not run.
    pub fn times_skipped(&self) -> usize {
        self.skipped.values().sum()
    }

    fn to_json(&self, id: &str) -> Value {
        json!({
            "id": id,
            "runs": self.runs(),
            "statuses": self.statuses,
            "skipped": self.skipped,
            "failureRate": self.failure_rate(),
            "p50Ms": self.percentile(50),
            "p95Ms": self.percentile(95),
            "p99Ms": self.percentile(99),
            "maxMs": self.percentile(100),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(id: &str, goes_on: bool, hooks: &[(&str, &str, f64)]) -> Record {
        let hooks: Vec<Value> = hooks
            .iter()
            .map(|(id, status, millis)| json!({"id": id, "name": id, "status": status, "durationMs": millis}))
            .collect();
        let value = json!({
            "version": 1, "traceId": id, "time": format!("2026-01-01T00:00:0{id}.000Z"), "event": "before_tool",
            "hooks": hooks, "skipped": [{"id": "b", "reason": "untrusted"}], "verdict": {"continue": goes_on},
        });
        Record { value }
    }

    #[test]
    fn runs_are_counted_by_how_they_ended_and_ranked_by_how_long_they_took() {
        let records = [
            record("1", true, &[("a", "ok", 1.0)]),
            record("2", false, &[("a", "blocked", 3.0)]),
            record("3", true, &[("a", "timeout", 9.0)]),
            record("4", true, &[("a", "ok", 2.0)]),
        ];
        let stats = TraceStats::of(&records);
        assert_eq!((stats.events, stats.refused, &stats.by_event["before_tool"]), (4, 1, &(4, 1)));
        assert_eq!(stats.span, Some(("2026-01-01T00:00:01.000Z".to_owned(), "2026-01-01T00:00:04.000Z".to_owned())));
        let hook = &stats.hooks["a"];
        assert_eq!((hook.runs(), hook.count("ok"), hook.failure_rate()), (4, 2, Some(0.25)));
        assert_eq!([50, 95, 99, 100].map(|percent| hook.percentile(percent)), [2.0, 9.0, 9.0, 9.0].map(Some));
        assert_eq!((stats.hooks["b"].runs(), stats.hooks["b"].times_skipped()), (0, 4));
        let slowest: Vec<&str> = stats.slowest.iter().map(|run| run.trace_id.as_str()).collect();
        assert_eq!(slowest, ["3", "2", "4", "1"]);
    }

    #[test]
    fn what_stands_for_hooks_that_were_not_read_is_no_hook() {
        let value = json!({"skipped": [{"id": UNREAD_PROJECT, "reason": "after_block"}], "verdict": {}});
        assert!(TraceStats::of(&[Record { value }]).hooks.is_empty());
    }

    #[test]
    fn a_hook_that_never_ran_has_no_times() {
        let hook = HookStats::default();
        assert_eq!((hook.percentile(50), hook.failure_rate()), (None, None));
    }
}
