//! One span for an event and one for each of its hooks, in the JSON of OTLP.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ollm_engine::{Outcome, Report, Status};
use ollm_protocol::Event;
use ollm_store::cut;
use serde_json::{Value, json};

/// The kind of a span for something that happens within us.
const INTERNAL: u8 = 1;
/// The state of a span that failed.
const ERROR: u8 = 2;
/// Longer texts are cut.
const LONGEST_TEXT: usize = 256;

/// The spans of an event.
pub(super) fn of(event: &Event, outcome: &Outcome) -> Vec<Value> {
    let trace = outcome.trace_id.replace('-', "");
    let root = span_id(&trace, 0);
    let mut spans = vec![dispatch(event, outcome, &trace, &root)];
    for (at, report) in outcome.reports.iter().enumerate() {
        spans.push(hook(report, outcome, &trace, &root, at + 1));
    }
    spans
}

fn dispatch(event: &Event, outcome: &Outcome, trace: &str, id: &str) -> Value {
    let mut attributes = vec![
        text("ollm.event", event.kind.name()),
        text("ollm.flow", outcome.verdict.flow.name()),
        json!({"key": "ollm.continue", "value": {"boolValue": outcome.continues()}}),
        number("ollm.hooks.ran", &outcome.reports.len()),
        number("ollm.hooks.skipped", &outcome.skipped.len()),
    ];
    attributes.extend(event.subject().map(|subject| text("ollm.subject", subject)));
    attributes.extend(event.session_id().map(|session| text("session.id", session)));
    let (start, end) = times(outcome.time, outcome.duration);
    json!({
        "traceId": trace, "spanId": id, "name": event.kind.name(), "kind": INTERNAL,
        "startTimeUnixNano": start, "endTimeUnixNano": end, "attributes": attributes,
    })
}

fn hook(report: &Report, outcome: &Outcome, trace: &str, parent: &str, at: usize) -> Value {
    let spec = &report.hook.spec;
    let mut attributes = vec![
        text("ollm.hook.id", &spec.id),
        text("ollm.hook.name", &spec.name),
        text("ollm.hook.source", spec.source.name()),
        text("ollm.hook.dialect", report.hook.dialect.name()),
        text("ollm.hook.status", report.status.name()),
        text("ollm.flow", report.verdict.flow.name()),
        text("ollm.event", outcome.event.name()),
    ];
    attributes.extend(spec.extension.as_deref().map(|extension| text("ollm.extension", extension)));
    let exit = report.process.as_ref().and_then(|process| process.exit);
    attributes.extend(exit.map(|exit| number("process.exit.code", &exit)));
    let began = outcome.time + report.started.saturating_duration_since(outcome.started);
    let (start, end) = times(began, report.duration);
    let failed = matches!(report.status, Status::Failed | Status::Timeout);
    // The line about a failure comes without secrets already; what a hook read or said is not in it.
    let status = if failed { json!({"code": ERROR, "message": report.status.name()}) } else { json!({}) };
    json!({
        "traceId": trace, "spanId": span_id(trace, at), "parentSpanId": parent, "kind": INTERNAL,
        "name": format!("hook {}", short(&spec.name)),
        "startTimeUnixNano": start, "endTimeUnixNano": end, "attributes": attributes, "status": status,
    })
}

/// Spans as the body of one request.
pub(super) fn request(spans: &[Value]) -> Value {
    json!({"resourceSpans": [{
        "resource": resource(),
        "scopeSpans": [{"scope": scope(), "spans": spans}],
    }]})
}

/// Who tells it.
pub(super) fn resource() -> Value {
    json!({"attributes": [text("service.name", "ollm"), text("service.version", env!("CARGO_PKG_VERSION"))]})
}

/// What measured it.
pub(super) fn scope() -> Value {
    json!({"name": "ollm", "version": env!("CARGO_PKG_VERSION")})
}

/// A time as OTLP writes it.
pub(super) fn nanos(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

/// An attribute that is text.
pub(super) fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": short(value)}})
}

/// Whole numbers are texts in the JSON of protocol buffers.
fn number(key: &str, value: &impl ToString) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn short(value: &str) -> String {
    cut(value, LONGEST_TEXT).into_owned()
}

/// Eight bytes that are never all zero.
fn span_id(trace: &str, at: usize) -> String {
    let mut hasher = DefaultHasher::new();
    (trace, at).hash(&mut hasher);
    format!("{:016x}", hasher.finish().max(1))
}

fn times(start: SystemTime, duration: Duration) -> (String, String) {
    (nanos(start), nanos(start + duration))
}
