//! Records in the forms of other programs: tables, Chrome's trace viewer and Perfetto, a page for a browser.

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

/// Text that a spreadsheet does not take for a formula.
fn cell(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() }
}

/// The trace event format of Chrome, which Perfetto opens: a process for each session, a track for its events, and as many
/// tracks for hooks as ran at once.
pub fn chrome(records: &[Record]) -> Value {
    let mut sessions: Vec<&str> = Vec::new();
    let mut events = Vec::new();
    for record in records {
        let session = record.text("session");
        let process = sessions.iter().position(|known| *known == session).unwrap_or_else(|| {
            sessions.push(session);
            sessions.len() - 1
        });
        add(record, process, &mut events);
    }
    for (process, session) in sessions.iter().enumerate() {
        let name = if session.is_empty() { "no session".to_owned() } else { format!("session {session}") };
        events.push(json!({"ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": {"name": name}}));
        events.push(json!({"ph": "M", "name": "thread_name", "pid": process, "tid": 0, "args": {"name": "events"}}));
    }
    json!({"traceEvents": events, "displayTimeUnit": "ms"})
}

fn add(record: &Record, process: usize, events: &mut Vec<Value>) {
    let start = record.text("time").parse().map_or(0.0, micros);
    let subject = record.text("subject");
    let name = [record.text("event"), subject].join(" ");
    events.push(json!({
        "ph": "X", "cat": "event", "name": name.trim_end(), "pid": process, "tid": 0,
        "ts": start, "dur": record.millis() * 1e3,
        "args": {"traceId": record.id(), "verdict": record.verdict("flow"), "reason": record.verdict("reason")},
    }));
    // When each track is free again.
    let mut free: Vec<f64> = Vec::new();
    for run in record.runs() {
        let end = run.start + run.millis;
        let track = free.iter().position(|time| *time <= run.start).unwrap_or(free.len());
        match free.get_mut(track) {
            Some(time) => *time = end,
            None => free.push(end),
        }
        events.push(json!({
            "ph": "X", "cat": "hook", "name": run.name, "pid": process, "tid": track + 1,
            "ts": start + run.start * 1e3, "dur": run.millis * 1e3,
            "args": {"id": run.id, "status": run.status, "flow": run.flow, "error": run.error},
        }));
    }
}

#[expect(clippy::cast_precision_loss, reason = "microseconds of this era are below 2^53")]
fn micros(time: Timestamp) -> f64 {
    time.as_microsecond() as f64
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

    #[test]
    fn hooks_that_ran_at_once_are_on_tracks_of_their_own() {
        let trace = chrome(&records());
        let found: Vec<(&str, u64, f64)> = trace["traceEvents"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| event["ph"] == "X")
            .map(|event| {
                let name = event["name"].as_str().unwrap();
                (name, event["tid"].as_u64().unwrap(), event["ts"].as_f64().unwrap() - 1_767_225_600_500_000.0)
            })
            .collect();
        assert_eq!(found, [("before_tool shell", 0, 0.0), ("a", 1, 0.0), ("<b>", 2, 1000.0), ("c", 1, 3500.0)]);
    }

    #[test]
    fn a_page_shows_text_and_runs_none_of_it() {
        let page = html(&records(), "now");
        assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"), "{page}");
        assert!(page.contains("not approved") && page.contains("no, &quot;never&quot;"));
    }
}
