//! Exports records: as a table, for Chrome's trace viewer and Perfetto, and as a page for a browser.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::record::{HookRun, Record};

mod html;

pub use html::html;

/// The columns of the table.
const COLUMNS: [&str; 14] = [
    "time",
    "traceId",
    "session",
    "event",
    "subject",
    "verdict",
    "reason",
    "eventMs",
    "hook",
    "status",
    "flow",
    "startMs",
    "durationMs",
    "error",
];

/// One row for each hook that ran, and one for each event without any.
pub fn csv(records: &[Record]) -> Result<String, csv::Error> {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(COLUMNS)?;
    for record in records {
        let mut runs = record.runs().peekable();
        if runs.peek().is_none() {
            table.write_record(row(record, None))?;
        }
        for run in runs {
            table.write_record(row(record, Some(run)))?;
        }
    }
    let bytes = table.into_inner().map_err(csv::IntoInnerError::into_error)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn row(record: &Record, run: Option<HookRun<'_>>) -> [String; 14] {
    let of_event = |field: &str| cell(record.text(field));
    let of_verdict = |field: &str| cell(record.verdict(field).as_str().unwrap_or_default());
    let text = |pick: fn(&HookRun<'_>) -> String| run.as_ref().map(pick).unwrap_or_default();
    [
        of_event("time"),
        of_event("traceId"),
        of_event("session"),
        of_event("event"),
        of_event("subject"),
        of_verdict("flow"),
        of_verdict("reason"),
        record.millis().to_string(),
        text(|run| cell(run.id)),
        text(|run| cell(run.status)),
        text(|run| cell(run.flow)),
        text(|run| run.start.to_string()),
        text(|run| run.millis.to_string()),
        text(|run| cell(run.error.unwrap_or_default())),
    ]
}

/// Text that a spreadsheet does not read as a formula.
fn cell(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() }
}

/// The trace event format of Chrome, which Perfetto also opens. Each session is a process with enough tracks for its
/// parallel events and hooks. If two slices overlap on one track, Perfetto shows only the first.
pub fn chrome(records: &[Record]) -> Value {
    let mut sessions: Vec<Session<'_>> = Vec::new();
    let mut events = Vec::new();
    let start = |record: &Record| record.text("time").parse().map_or(0, |time: Timestamp| time.as_microsecond().max(0));
    let mut records: Vec<(i64, &Record)> = records.iter().map(|record| (start(record), record)).collect();
    // The clock may have been set back between two records.
    records.sort_by_key(|(start, _)| *start);
    for (start, record) in records {
        let id = record.text("session");
        let known = sessions.iter().position(|session| session.id == id);
        let at = known.unwrap_or(sessions.len());
        if known.is_none() {
            sessions.push(Session { id, process: at + 1, events: Tracks::default(), hooks: Tracks::default() });
        }
        sessions.get_mut(at).into_iter().for_each(|session| session.add(record, start, &mut events));
    }
    events.extend(sessions.iter().flat_map(Session::names));
    json!({"traceEvents": events, "displayTimeUnit": "ms"})
}

/// A process of the viewer. Numbers start at one, because zero is the system's idle process.
struct Session<'r> {
    id: &'r str,
    process: usize,
    events: Tracks,
    hooks: Tracks,
}

impl Session<'_> {
    fn add(&mut self, record: &Record, start: i64, events: &mut Vec<Value>) {
        let process = self.process;
        let name = [record.text("event"), record.text("subject")].join(" ");
        let took = micros(record.millis());
        events.push(json!({
            "ph": "X", "cat": "event", "name": name.trim_end(), "pid": process, "tid": event_track(self.events.take(start, took)),
            "ts": start, "dur": took,
            "args": {"traceId": record.id(), "verdict": record.verdict("flow"), "reason": record.verdict("reason")},
        }));
        let mut runs: Vec<HookRun<'_>> = record.runs().collect();
        runs.sort_by(|one, other| one.start.total_cmp(&other.start));
        for run in runs {
            let (start, took) = (start.saturating_add(micros(run.start)), micros(run.millis));
            events.push(json!({
                "ph": "X", "cat": "hook", "name": run.name, "pid": process, "tid": hook_track(self.hooks.take(start, took)),
                "ts": start, "dur": took,
                "args": {"id": run.id, "status": run.status, "flow": run.flow, "error": run.error},
            }));
        }
    }

    /// The names of the process and its tracks.
    fn names(&self) -> Vec<Value> {
        let called = |what: &str, track: usize, name: String| json!({"ph": "M", "name": what, "pid": self.process, "tid": track, "args": {"name": name}});
        let own = if self.id.is_empty() { "no session".to_owned() } else { format!("session {}", self.id) };
        let mut names = vec![called("process_name", event_track(0), own)];
        let numbered = |what: &str, at: usize| if at == 0 { what.to_owned() } else { format!("{what} {}", at + 1) };
        let events = (0..self.events.0.len()).map(|at| called("thread_name", event_track(at), numbered("events", at)));
        let hooks = (0..self.hooks.0.len()).map(|at| called("thread_name", hook_track(at), numbered("hooks", at)));
        names.extend(events.chain(hooks));
        names
    }
}

/// The time from which each track is free.
#[derive(Default)]
struct Tracks(Vec<i64>);

impl Tracks {
    /// Reserves the first track that is free at this time.
    fn take(&mut self, start: i64, took: i64) -> usize {
        let at = self.0.iter().position(|free| *free <= start).unwrap_or(self.0.len());
        let end = start.saturating_add(took);
        match self.0.get_mut(at) {
            Some(free) => *free = end,
            None => self.0.push(end),
        }
        at
    }
}

fn event_track(at: usize) -> usize {
    2 * at + 1
}

fn hook_track(at: usize) -> usize {
    2 * at + 2
}

/// Whole microseconds: with a fraction, a time since 1970 exceeds the precision of the viewers' numbers.
#[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
fn micros(millis: f64) -> i64 {
    (millis * 1e3).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Record> {
        let value = json!({
            "version": 1, "traceId": "t1", "time": "2026-01-01T00:00:00.500Z", "session": "s", "event": "before_tool",
            "subject": "shell", "durationMs": 4.0, "verdict": {"flow": "block", "continue": false, "reason": "=no, \"never\""},
            "hooks": [
                {"id": "a", "name": "a", "status": "ok", "flow": "no_opinion", "startMs": 0.0, "durationMs": 3.0, "error": null},
                {"id": "b", "name": "<b>", "status": "blocked", "flow": "block", "startMs": 1.0, "durationMs": 3.0, "error": null},
                {"id": "c", "name": "c", "status": "ok", "flow": "no_opinion", "startMs": 3.5, "durationMs": 0.5, "error": null},
                "… [cut: 2 more]",
            ],
            "skipped": [{"id": "d", "reason": "untrusted", "detail": "not approved"}],
        });
        vec![Record { value }]
    }

    #[test]
    fn a_table_has_a_row_for_each_run_and_no_formulas() {
        let table = csv(&records()).unwrap();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(
            lines[2],
            "2026-01-01T00:00:00.500Z,t1,s,before_tool,shell,block,\"'=no, \"\"never\"\"\",4,b,blocked,block,1,3,"
        );
    }

    /// The name, process, track, start and end of every slice.
    fn slices(trace: &Value) -> Vec<(&str, u64, u64, i64, i64)> {
        let all = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
        let number = |event: &Value, field: &str| event[field].as_i64().unwrap();
        all.map(|event| {
            let (start, took) = (number(event, "ts") - 1_767_225_600_500_000, number(event, "dur"));
            let name = event["name"].as_str().unwrap();
            (name, event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap(), start, start + took)
        })
        .collect()
    }

    #[test]
    fn hooks_that_ran_at_once_are_on_tracks_of_their_own() {
        let expected = [
            ("before_tool shell", 1, 1, 0, 4000),
            ("a", 1, 2, 0, 3000),
            ("<b>", 1, 4, 1000, 4000),
            ("c", 1, 2, 3500, 4000),
        ];
        assert_eq!(slices(&chrome(&records())), expected);
    }

    fn record_at(millis: u32, session: u8, took: f64, runs: &[(f64, f64)]) -> Record {
        let time = Timestamp::from_millisecond(1_767_225_600_000 + i64::from(millis)).unwrap();
        let hooks: Vec<Value> =
            runs.iter().map(|(start, took)| json!({"id": "h", "startMs": start, "durationMs": took})).collect();
        let value = json!({
            "version": 1, "time": time.to_string(), "session": session.to_string(), "event": "e", "durationMs": took,
            "hooks": hooks, "verdict": {},
        });
        Record { value }
    }

    proptest::proptest! {
        /// Perfetto drops slices that overlap an earlier one on their track, and takes process 0 for the idle process.
        #[test]
        fn nothing_overlaps_on_a_track_whatever_the_clock_does(
            all in proptest::collection::vec((0_u32..50, 0_u8..3, 0.0_f64..20.0, proptest::collection::vec((0.0_f64..20.0, 0.0_f64..20.0), 0..4)), 0..12)
        ) {
            let records: Vec<Record> = all.iter().map(|(at, session, took, runs)| record_at(*at, *session, *took, runs)).collect();
            let trace = chrome(&records);
            let slices = slices(&trace);
            proptest::prop_assert_eq!(slices.len(), all.iter().map(|(_, _, _, runs)| 1 + runs.len()).sum::<usize>());
            for (at, (_, process, track, start, end)) in slices.iter().enumerate() {
                proptest::prop_assert!(*process > 0 && *track > 0);
                for (_, other, beside, from, to) in slices.iter().skip(at + 1) {
                    let is_apart = end <= from || to <= start;
                    proptest::prop_assert!((other, beside) != (process, track) || is_apart);
                }
            }
        }
    }

    #[test]
    fn a_page_shows_text_and_runs_none_of_it() {
        let page = html(&records(), "now");
        assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"), "{page}");
        assert!(page.contains("not approved") && page.contains("no, &quot;never&quot;"));
    }
}
