//! `ollm`: `{"event", "data"}` in, `{"continue", "systemMessage", "data", "error"}` out.
//!
//! A failure never stops the operation, and the readable parts of a half-wrong answer count. Written verdicts have
//! `continue`, the texts for the conversation, and the data; this dialect has no place for the rest.

use serde_json::Value;

use super::{
    Addressee, Defaults, Dialect, DialectError, HookAnswer, Output, RPC, Reply, Request, answer, by_spelling, call,
    kind_of, line, object, request_object, schema, take_text,
};
use crate::event::{Event, EventKind};
use crate::json::scan;
use crate::verdict::{Verdict, joined};

const NATIVE: &[&str] = &["continue", "systemMessage", "data", "error"];

#[derive(Debug)]
pub(super) struct Ollm;

impl Dialect for Ollm {
    fn name(&self) -> &'static str {
        "ollm"
    }

    fn defaults(&self) -> Defaults {
        Defaults::USUAL
    }

    fn names(&self) -> &'static [(EventKind, &'static str)] {
        &[]
    }

    fn write_event(&self, event: &Event, _hook: &Addressee<'_>) -> Vec<u8> {
        let mut data = event.data.clone();
        if let Some(id) = event.data.get("session_id") {
            data.insert("sessionId".to_owned(), id.clone());
        }
        line(object([("event", self.spell(event.kind).into()), ("data", Value::Object(data))]))
    }

    fn read_verdict(&self, kind: EventKind, output: &Output<'_>) -> HookAnswer {
        let scan = scan(output.stdout);
        let mut warnings = Vec::new();
        let answer = if scan.is_blank() {
            warnings.push("the hook answered nothing".to_owned());
            HookAnswer { warnings, ..HookAnswer::default() }
        } else {
            match answer::one_object(&scan, &mut warnings) {
                Err(why) => answer::failed(format!("malformed answer: {why}"), &scan, kind, warnings),
                Ok(object) => {
                    let mut reading = answer::read(object, NATIVE, kind);
                    warnings.append(&mut reading.warnings);
                    reading.warnings = warnings;
                    match object.fields.get("error") {
                        Some(Value::String(error)) if !error.is_empty() => reading.faults.push(error.clone()),
                        Some(Value::Null | Value::String(_)) | None => {}
                        Some(other) => reading.faults.push(other.to_string()),
                    }
                    if !reading.decided && reading.faults.is_empty() {
                        reading.faults.push("the answer has no `continue`".to_owned());
                    }
                    reading.into_answer()
                }
            }
        };
        answer::with_plain_end(answer, output)
    }

    fn read_event(&self, bytes: &[u8]) -> Result<Request, DialectError> {
        let mut wire = request_object(bytes)?;
        // A whole request of the `rpc` dialect identifies itself.
        if wire.contains_key("jsonrpc") && !wire.contains_key("event") {
            return RPC.read_event(bytes);
        }
        // So do the parameters of such a request.
        if wire.get("event").and_then(|event| event.get("type")).is_some_and(Value::is_string) {
            let whole = object([("method", "execute".into()), ("params", wire.into())]);
            return RPC.read_event(&line(whole));
        }
        let name = take_text(&mut wire, "event")?;
        // If the name is in another dialect's spelling, the fields are as well.
        let dialect = by_spelling(&name);
        let is_beside = dialect.name() == RPC.name() && wire.get("data").is_some_and(|data| !is_empty(data));
        let context = if is_beside { None } else { wire.shift_remove("context") };
        let data = match (wire.shift_remove("data"), context) {
            (Some(data), Some(context)) if data != context && !is_empty(&context) && !is_empty(&data) => {
                return Err(DialectError::Contradiction { first: "data", second: "context" });
            }
            (Some(data), Some(context)) if is_empty(&data) => context,
            (Some(data), _) | (None, Some(data)) => data,
            // Some programs write the fields beside the name.
            (None, None) => std::mem::take(&mut wire).into(),
        };
        let mut event = Event::from_loose(EventKind::Custom, data);
        let kind = kind_of(&name, &mut event.data)?;
        call::settle(kind, &mut event.data)?;
        dialect.take_in(&mut wire, &mut event.data);
        let kind = dialect.canonical(kind, &mut event.data);
        Ok(Request::new(Event::from_loose(kind, Value::Object(event.data))))
    }

    fn write_verdict(&self, _request: &Request, verdict: &Verdict) -> Reply {
        let mut wire = object([("continue", verdict.flow.continues().into())]);
        if let Some(text) = joined(&conversation(verdict)) {
            wire.insert("systemMessage".to_owned(), text.into());
        }
        let data = answer::data(verdict);
        if !data.is_empty() {
            wire.insert("data".to_owned(), Value::Object(data));
        }
        Reply { stdout: line(wire), ..Reply::default() }
    }

    fn answer_schema(&self, kind: EventKind) -> Value {
        schema::answer(self, kind, schema::fields(NATIVE, &["continue"]))
    }
}

/// Whether the data is empty.
fn is_empty(data: &Value) -> bool {
    data.is_null() || data.as_object().is_some_and(serde_json::Map::is_empty)
}

/// All texts for the conversation, including a refusal's reason.
fn conversation(verdict: &Verdict) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let reasons = verdict.reasons.iter().filter(|_| !verdict.flow.continues());
    for text in reasons.chain(&verdict.system_messages).chain(&verdict.context) {
        if !texts.contains(text) {
            texts.push(text.clone());
        }
    }
    texts
}
