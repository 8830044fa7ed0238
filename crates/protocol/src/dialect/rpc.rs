//! `rpc`: a JSON-RPC request `execute` in, a result or an error out.
//!
//! An error answer is a failed hook and never stops the operation. Written verdicts have the joined prompts, the data,
//! the metadata, and a refusal with its reason as fields of the result. Timestamps are Unix milliseconds.

use serde_json::{Map, Value, json};

use super::{
    Addressee, Defaults, Dialect, DialectError, HookAnswer, Output, Reply, Request, answer, call, from_millis, kind_of,
    line, object, rename, request_object, schema, take_object, take_text, to_millis,
};
use crate::event::{Event, EventKind};
use crate::json::{Object, scan};
use crate::verdict::{Verdict, joined};

const NATIVE: &[&str] = &["action", "prompt", "metadata", "data"];
const CONTEXT: &[&str] = &["agent", "user", "file"];

#[derive(Debug)]
pub(super) struct Rpc;

impl Dialect for Rpc {
    fn name(&self) -> &'static str {
        "rpc"
    }

    fn defaults(&self) -> Defaults {
        Defaults::USUAL
    }

    fn names(&self) -> &'static [(EventKind, &'static str)] {
        &[
            (EventKind::BeforeAgent, "promptSubmit"),
            (EventKind::AfterAgent, "agentStop"),
            (EventKind::FileCreated, "fileCreated"),
            (EventKind::FileEdited, "fileEdited"),
            (EventKind::FileDeleted, "fileDeleted"),
            (EventKind::UserTriggered, "userTriggered"),
        ]
    }

    fn write_event(&self, event: &Event, _hook: &Addressee<'_>) -> Vec<u8> {
        let mut data = event.data.clone();
        if event.kind.is_file() {
            swap_path(&mut data, "absolutePath", "path");
        }
        let context = CONTEXT.iter().filter_map(|field| Some(((*field).to_owned(), data.shift_remove(*field)?)));
        let context: Map<String, Value> = context.collect();
        let mut wire = object([("type", self.spell(event.kind).into())]);
        if let Some(millis) = data.get("timestamp").and_then(to_millis) {
            data.shift_remove("timestamp");
            wire.insert("timestamp".to_owned(), millis.into());
        }
        if event.kind.is_file() {
            rename(&mut data, "changes", "changeInfo");
            rename(&mut data, "diff", "changes");
        }
        wire.insert("data".to_owned(), data.into());
        let params = object([("event", wire.into()), ("context", context.into())]);
        line(object([
            ("jsonrpc", "2.0".into()),
            ("method", "execute".into()),
            ("params", params.into()),
            ("id", 1.into()),
        ]))
    }

    fn read_verdict(&self, kind: EventKind, output: &Output<'_>) -> HookAnswer {
        let scan = scan(output.stdout);
        let mut warnings = Vec::new();
        let answer = if scan.is_blank() {
            HookAnswer { failure: Some("the hook answered nothing".to_owned()), ..HookAnswer::default() }
        } else {
            match answer::one_object(&scan, &mut warnings) {
                Err(why) => answer::failed(format!("malformed answer: {why}"), &scan, kind, warnings),
                Ok(object) => read_response(object, kind, warnings),
            }
        };
        answer::with_plain_end(answer, output)
    }

    fn read_event(&self, bytes: &[u8]) -> Result<Request, DialectError> {
        let mut wire = request_object(bytes)?;
        let id = wire.get("id").cloned().unwrap_or_default();
        if wire.get("method").and_then(Value::as_str) != Some("execute") {
            return Err(DialectError::WrongType { field: "method", expected: "`execute`" });
        }
        let mut params = take_object(&mut wire, "params")?;
        let mut event = take_object(&mut params, "event")?;
        let name = take_text(&mut event, "type")?;
        let mut data = take_object(&mut event, "data")?;
        let kind = kind_of(&name, &mut data)?;
        call::settle(kind, &mut data)?;
        let mut beside = object([("context", take_object(&mut params, "context")?.into())]);
        beside.extend(event.shift_remove_entry("timestamp"));
        self.take_in(&mut beside, &mut data);
        let kind = self.canonical(kind, &mut data);
        if kind.is_file() {
            swap_path(&mut data, "path", "absolutePath");
        }
        Ok(Request { id, ..Request::new(Event::from_loose(kind, data.into())) })
    }

    fn canonical(&self, kind: EventKind, data: &mut Map<String, Value>) -> EventKind {
        if let Some(timestamp) = data.get("timestamp").and_then(Value::as_i64).and_then(from_millis) {
            data.insert("timestamp".to_owned(), timestamp.into());
        }
        kind
    }

    fn take_in(&self, beside: &mut Map<String, Value>, data: &mut Map<String, Value>) {
        data.extend(beside.shift_remove_entry("timestamp").filter(|(_, timestamp)| timestamp.is_i64()));
        let Some(Value::Object(mut context)) = beside.shift_remove("context") else { return };
        data.extend(CONTEXT.iter().filter_map(|field| context.shift_remove_entry(*field)));
    }

    fn write_verdict(&self, request: &Request, verdict: &Verdict) -> Reply {
        let mut result = Map::new();
        if let Some(prompt) = joined(&verdict.prompts) {
            result.insert("action".to_owned(), "askAgent".into());
            result.insert("prompt".to_owned(), prompt.into());
        }
        if !verdict.flow.continues() {
            result.insert("continue".to_owned(), false.into());
            result.extend(verdict.reason().map(|reason| ("reason".to_owned(), reason.into())));
        }
        for (field, map) in [("data", answer::data(verdict)), ("metadata", verdict.metadata.clone())] {
            if !map.is_empty() {
                result.insert(field.to_owned(), map.into());
            }
        }
        let wire = object([("jsonrpc", "2.0".into()), ("result", result.into()), ("id", request.id.clone())]);
        Reply { stdout: line(wire), ..Reply::default() }
    }

    fn answer_schema(&self, kind: EventKind) -> Value {
        let mut result = schema::fields(&["action", "prompt", "metadata", "data", "continue", "reason"], &[]);
        if let Some(result) = result.as_object_mut() {
            // The `ask_agent` action needs a prompt.
            result.insert("dependentRequired".to_owned(), json!({"action": ["prompt"]}));
        }
        let error = json!({
            "type": "object",
            "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": {}},
            "required": ["code", "message"],
        });
        let body = json!({
            "type": "object",
            "properties": {"jsonrpc": {"const": "2.0"}, "id": {}, "result": result, "error": error},
            "required": ["jsonrpc", "id"],
            "oneOf": [{"required": ["result"]}, {"required": ["error"]}],
        });
        schema::answer(self, kind, body)
    }
}

/// Converts the path of a file. Requests name a file by its path in the project, our events by its absolute path. If
/// `path` equals the file's value under `from`, it becomes the value under `to`.
fn swap_path(data: &mut Map<String, Value>, from: &str, to: &str) {
    let Some(file) = data.get("file") else { return };
    if let (Some(was), Some(path)) = (file.get(from), file.get(to))
        && data.get("path") == Some(was)
    {
        let path = path.clone();
        data.insert("path".to_owned(), path);
    }
}

fn read_response(object: &Object, kind: EventKind, warnings: Vec<String>) -> HookAnswer {
    // Fields beside the envelope's own can only be another dialect's answer.
    let mut reading = answer::read_fields(object, &[], kind);
    reading.warnings.splice(0..0, warnings);
    if object.fields.get("id").is_some_and(|id| id.as_u64() != Some(1)) {
        reading.warnings.push("the answer's `id` is not the request's".to_owned());
    }
    let mut errors = object.values("error").filter(|error| !error.is_null());
    match errors.next() {
        Some(Value::Object(error)) => reading.faults.push(error_text(error)),
        Some(other) => reading.faults.push(other.to_string()),
        None => {}
    }
    // A refusal counts even beside an error.
    match (object.inside("result"), object.fields.get("result")) {
        (Some(result), _) => {
            let inner = answer::read_fields(&result, NATIVE, kind);
            reading.verdict = reading.verdict.then(inner.verdict);
            reading.faults.extend(inner.faults);
            reading.warnings.extend(inner.warnings);
        }
        (None, Some(Value::Null)) => {}
        (None, Some(other)) => reading.faults.push(format!("`result` is {other}, expected an object")),
        (None, None) if reading.decided || !reading.faults.is_empty() => {}
        (None, None) => reading.faults.push("the answer has neither `result` nor `error`".to_owned()),
    }
    reading.into_answer()
}

fn error_text(error: &Map<String, Value>) -> String {
    let message = error.get("message").and_then(Value::as_str).unwrap_or("the hook reported an error");
    let reason = error.get("data").and_then(|data| data.get("reason")).and_then(Value::as_str);
    let code = error.get("code").map(|code| format!(" (code {code})")).unwrap_or_default();
    reason.map_or_else(|| format!("{message}{code}"), |reason| format!("{message}: {reason}{code}"))
}
