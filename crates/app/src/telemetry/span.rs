//! Makes one span for an event and one for each of its hooks, in OTLP's JSON.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ollm_engine::{LateResult, Outcome, Report, Status};
use ollm_protocol::{Event, EventKind};
use ollm_store::cut;
use serde_json::{Value, json};

/// The span kind "internal" of OTLP.
const INTERNAL: u8 = 1;
/// The status code "error" of OTLP.
const ERROR: u8 = 2;
/// Longer texts are cut.
const LONGEST_TEXT: usize = 256;

/// The spans of an event; they contain its data if `data` is given.
pub(super) fn of(event: &Event, outcome: &Outcome, data: Option<String>) -> Vec<Value> {
    let trace = outcome.trace_id.replace('-', "");
    let root = span_id(&trace, 0);
    let mut spans = vec![dispatch(event, outcome, &trace, &root, data)];
    // A background hook gets its span when it ends.
    for (at, report) in outcome.reports.iter().enumerate().filter(|(_, report)| !report.detached) {
        let began = outcome.time + report.started.saturating_duration_since(outcome.started);
        spans.push(hook(
            report,
            outcome.event,
            began,
            Ids { trace: &trace, parent: &root, own: &span_id(&trace, at + 1) },
        ));
    }
    spans
}

/// The span of a background hook that has ended.
pub(super) fn late(late: &LateResult) -> Value {
    let trace = late.trace_id.replace('-', "");
    let (parent, own) = (span_id(&trace, 0), span_id(&trace, &late.id));
    let began = SystemTime::now().checked_sub(late.report.duration).unwrap_or(UNIX_EPOCH);
    hook(&late.report, late.event, began, Ids { trace: &trace, parent: &parent, own: &own })
}

/// The ids of a span: its trace, its parent and its own.
struct Ids<'a> {
    trace: &'a str,
    parent: &'a str,
    own: &'a str,
}

fn dispatch(event: &Event, outcome: &Outcome, trace: &str, id: &str, data: Option<String>) -> Value {
    let mut attributes = vec![
        text("ollm.event", event.kind.name()),
        text("ollm.flow", outcome.verdict.flow.name()),
        json!({"key": "ollm.continue", "value": {"boolValue": outcome.continues()}}),
        number("ollm.hooks.ran", &outcome.reports.len()),
        number("ollm.hooks.skipped", &outcome.skipped.len()),
    ];
    attributes.extend(event.subject().map(|subject| text("ollm.subject", subject)));
    attributes.extend(event.session_id().map(|session| text("session.id", session)));
    attributes.extend(data.map(|data| json!({"key": "ollm.data", "value": {"stringValue": data}})));
    let (start, end) = times(outcome.time, outcome.duration);
    json!({
        "traceId": trace, "spanId": id, "name": event.kind.name(), "kind": INTERNAL,
        "startTimeUnixNano": start, "endTimeUnixNano": end, "attributes": attributes,
    })
}

fn hook(report: &Report, event: EventKind, began: SystemTime, Ids { trace, parent, own }: Ids<'_>) -> Value {
    let spec = &report.hook.spec;
    let mut attributes = vec![
        text("ollm.hook.id", &spec.id),
        text("ollm.hook.name", &spec.name),
        text("ollm.hook.source", spec.source.name()),
        text("ollm.hook.dialect", report.hook.dialect.name()),
        text("ollm.hook.status", report.status.name()),
        text("ollm.flow", report.verdict.flow.name()),
        text("ollm.event", event.name()),
    ];
    attributes.extend(spec.extension.as_deref().map(|extension| text("ollm.extension", extension)));
    let exit = report.process.as_ref().and_then(|process| process.exit);
    attributes.extend(exit.map(|exit| number("process.exit.code", &exit)));
    let (start, end) = times(began, report.duration);
    let failed = matches!(report.status, Status::Failed | Status::Timeout);
    // The error message has no secrets in it, and nothing that the hook read or said.
    let status = if failed { json!({"code": ERROR, "message": report.status.name()}) } else { json!({}) };
    json!({
        "traceId": trace, "spanId": own, "parentSpanId": parent, "kind": INTERNAL,
        "name": format!("hook {}", short(&spec.name)),
        "startTimeUnixNano": start, "endTimeUnixNano": end, "attributes": attributes, "status": status,
    })
}

/// The body of a request with spans.
pub(super) fn request(spans: &[Value]) -> Value {
    json!({"resourceSpans": [{
        "resource": resource(),
        "scopeSpans": [{"scope": scope(), "spans": spans}],
    }]})
}

/// The service that sends the spans.
pub(super) fn resource() -> Value {
    json!({"attributes": [text("service.name", "ollm"), text("service.version", env!("CARGO_PKG_VERSION"))]})
}

/// The instrumentation scope.
pub(super) fn scope() -> Value {
    json!({"name": "ollm", "version": env!("CARGO_PKG_VERSION")})
}

/// A time in OTLP's form.
pub(super) fn nanos(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

/// A text attribute.
pub(super) fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": short(value)}})
}

/// Protocol buffers write whole numbers as JSON strings.
fn number(key: &str, value: &impl ToString) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn short(value: &str) -> String {
    cut(value, LONGEST_TEXT).into_owned()
}

/// Eight bytes that are never all zero.
fn span_id(trace: &str, at: impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    (trace, at).hash(&mut hasher);
    format!("{:016x}", hasher.finish().max(1))
}

fn times(start: SystemTime, duration: Duration) -> (String, String) {
    (nanos(start), nanos(start + duration))
}
