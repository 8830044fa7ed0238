//! The metrics in OTLP's JSON.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::{BUCKETS, Metrics, Times};
use crate::telemetry::span;

/// The temporality of counts since the start: cumulative.
const CUMULATIVE: u8 = 2;

/// The start of counting, and the present time.
struct Span {
    start: String,
    now: String,
}

impl Metrics {
    /// All metrics as the body of a request.
    pub(in crate::telemetry) fn request(&self, start: SystemTime) -> Value {
        let span = Span { start: span::nanos(start), now: span::nanos(SystemTime::now()) };
        let counted = &*self.lock();
        let metrics = [
            sums("ollm.events", ["ollm.event", "ollm.flow"], &counted.events, &span),
            sums("ollm.hook.runs", ["ollm.hook.id", "ollm.event", "ollm.hook.status"], &counted.runs, &span),
            sums("ollm.hook.skips", ["ollm.hook.id", "ollm.reason"], &counted.skips, &span),
            times(&counted.times, &span),
        ];
        json!({"resourceMetrics": [{
            "resource": span::resource(),
            "scopeMetrics": [{"scope": span::scope(), "metrics": metrics}],
        }]})
    }
}

fn sums<const N: usize>(name: &str, labels: [&str; N], rows: &BTreeMap<[String; N], u64>, span: &Span) -> Value {
    let points = rows.iter().map(|(row, value)| {
        let attributes: Vec<Value> = labels.iter().zip(row).map(|(label, value)| span::text(label, value)).collect();
        json!({
            "attributes": attributes, "asInt": value.to_string(),
            "startTimeUnixNano": span.start, "timeUnixNano": span.now,
        })
    });
    let points: Vec<Value> = points.collect();
    json!({"name": name, "unit": "1", "sum": {
        "dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true,
    }})
}

fn times(rows: &BTreeMap<String, Times>, span: &Span) -> Value {
    let points = rows.iter().map(|(hook, times)| {
        // The count of each bucket alone, and the count above all bounds.
        let up_to = times.buckets.iter().copied().chain([times.count]);
        let below = std::iter::once(0).chain(times.buckets.iter().copied());
        let counts: Vec<String> = up_to.zip(below).map(|(up_to, below)| (up_to - below).to_string()).collect();
        json!({
            "attributes": [span::text("ollm.hook.id", hook)], "count": times.count.to_string(), "sum": times.sum,
            "bucketCounts": counts, "explicitBounds": BUCKETS,
            "startTimeUnixNano": span.start, "timeUnixNano": span.now,
        })
    });
    let points: Vec<Value> = points.collect();
    json!({"name": "ollm.hook.duration", "unit": "s", "histogram": {
        "dataPoints": points, "aggregationTemporality": CUMULATIVE,
    }})
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn buckets_are_told_one_by_one() {
        let mut slow = Times::default();
        [1, 7, 7_000, 90_000].map(Duration::from_millis).into_iter().for_each(|time| slow.add(time));
        let rows = BTreeMap::from([("a".to_owned(), slow)]);
        let told = times(&rows, &Span { start: "1".to_owned(), now: "2".to_owned() });
        let point = &told["histogram"]["dataPoints"][0];
        assert_eq!(point["bucketCounts"], json!(["1", "1", "0", "0", "0", "0", "0", "0", "0", "1", "1"]));
        assert_eq!(point["count"], "4");
    }
}
