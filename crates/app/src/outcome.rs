//! The answer of `ollm hook run` as JSON. Other programs rely on every field of it.

use ollm_engine::{Outcome, Report, Skip};
use ollm_protocol::{Source, joined};
use serde_json::{Map, Value, json};

/// The outcome of an event, as `ollm hook run` prints it.
pub fn to_json(outcome: &Outcome) -> Value {
    let verdict = &outcome.verdict;
    json!({
        "event": outcome.event.name(),
        "continue": outcome.continues(),
        "flow": verdict.flow.name(),
        "reason": verdict.reason().filter(|_| !outcome.continues()),
        "systemMessage": joined(&verdict.system_messages),
        "messages": said(outcome, |report| &report.verdict.messages, "text"),
        "context": joined(&verdict.context),
        "data": verdict.data,
        "modifiedArgs": outcome.modified_args,
        "result": verdict.result,
        "tools": verdict.tools,
        "askAgent": said(outcome, |report| &report.verdict.prompts, "prompt"),
        "hooks": outcome.reports.iter().filter(|report| is_shown(report)).map(report).collect::<Vec<_>>(),
        "skipped": outcome.skipped.iter().map(skip).collect::<Vec<_>>(),
        "traceId": outcome.trace_id,
    })
}

/// Whether to show a report: a built-in is shown only if it stops the operation.
pub fn is_shown(report: &Report) -> bool {
    report.hook.spec.source != Source::Builtin || !report.verdict.flow.continues()
}

fn said(outcome: &Outcome, texts: fn(&Report) -> &Vec<String>, field: &str) -> Vec<Value> {
    let said = outcome.reports.iter().flat_map(|report| texts(report).iter().map(move |text| (report, text)));
    said.map(|(report, text)| json!({"hook": report.hook.id(), field: text})).collect()
}

fn report(report: &Report) -> Value {
    let hook = &report.hook;
    let mut value = json!({
        "id": hook.id(),
        "name": hook.spec.name,
        "extension": hook.spec.extension,
        "source": hook.spec.source.name(),
        "dialect": hook.dialect.name(),
        "status": report.status.name(),
        "durationMs": (report.duration.as_secs_f64() * 1e6).round() / 1e3,
        "error": report.error,
        "metadata": metadata(report),
    });
    if let Some(map) = value.as_object_mut() {
        if report.detached {
            map.insert("async".to_owned(), true.into());
        }
        if report.leaky {
            map.insert("leaky".to_owned(), true.into());
        }
        if !report.warnings.is_empty() {
            map.insert("warnings".to_owned(), report.warnings.clone().into());
        }
    }
    value
}

fn metadata(report: &Report) -> Option<&Map<String, Value>> {
    Some(&report.verdict.metadata).filter(|metadata| !metadata.is_empty())
}

fn skip(skip: &Skip) -> Value {
    json!({
        "id": skip.hook.id(),
        "name": skip.hook.spec.name,
        "extension": skip.hook.spec.extension,
        "reason": skip.reason.name(),
        "detail": skip.detail,
    })
}
