//! `gate`: `{"event", "context", "metadata"}` in, `{"allow", "message", "metadata"}` out, protocol version 1.0.0.
//!
//! Strict: the answer must be one JSON object with a boolean `allow` and a clean exit. Anything else is a failure, and
//! a failure blocks. Written verdicts have `allow`, one message, and the metadata. A written event reads back the same,
//! with `session.id` and `changes.type` added. `changes.type` is `modified` here and `edited` elsewhere.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    Addressee, CHANGES, Defaults, Dialect, DialectError, HookAnswer, Output, Reply, Request, answer, call, kind_of,
    line, object, rename, request_object, schema, take_object, take_text,
};
use crate::event::{Event, EventKind};
use crate::hook::OnFailure;
use crate::json::{Object, scan};
use crate::verdict::{Verdict, joined};

const NATIVE: &[&str] = &["allow", "message", "metadata"];
const VERSION: &str = "1.0.0";
const OVERFLOW: &[&str] = &["size", "maxSize", "utilization"];

#[derive(Debug)]
pub(super) struct Gate;

impl Dialect for Gate {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn defaults(&self) -> Defaults {
        Defaults { timeout: Duration::from_secs(5), on_failure: OnFailure::Block, ..Defaults::USUAL }
    }

    fn names(&self) -> &'static [(EventKind, &'static str)] {
        &[
            (EventKind::SessionStart, "on-session-start"),
            (EventKind::SessionEnd, "on-session-end"),
            (EventKind::BeforeAgent, "pre-execution"),
            (EventKind::AfterAgent, "post-execution"),
            (EventKind::BeforeTool, "pre-tool-call"),
            (EventKind::AfterTool, "post-tool-call"),
            (EventKind::ContextOverflow, "on-context-overflow"),
            (EventKind::ApprovalRequest, "on-approval-request"),
            (EventKind::Error, "on-error"),
            (EventKind::FileCreated, "on-file-change"),
            (EventKind::FileEdited, "on-file-change"),
            (EventKind::FileDeleted, "on-file-change"),
            (EventKind::GitCommit, "on-git-commit"),
        ]
    }

    fn write_event(&self, event: &Event, hook: &Addressee<'_>) -> Vec<u8> {
        let mut context = event.data.clone();
        let mut metadata = Map::new();
        if let Some(timestamp) = context.shift_remove("timestamp") {
            metadata.insert("timestamp".to_owned(), timestamp);
        }
        metadata.insert("hookName".to_owned(), hook.name.into());
        metadata.insert("hookVersion".to_owned(), hook.version.into());
        if let Some(id) = context.shift_remove("session_id") {
            let session = context.entry("session").or_insert_with(|| Map::new().into());
            if let Some(session) = session.as_object_mut() {
                session.entry("id").or_insert_with(|| id.clone());
            }
            metadata.insert("sessionId".to_owned(), id);
        }
        spell_data(event.kind, &mut context);
        line(object([
            ("version", VERSION.into()),
            ("event", self.spell(event.kind).into()),
            ("context", context.into()),
            ("metadata", metadata.into()),
        ]))
    }

    fn read_verdict(&self, kind: EventKind, output: &Output<'_>) -> HookAnswer {
        let scan = scan(output.stdout);
        let answer = if let Some(object) = scan.sole() {
            read_object(object, kind)
        } else {
            let why = if scan.is_blank() { "the hook answered nothing" } else { "the answer is not one JSON object" };
            answer::failed(why.to_owned(), &scan, kind, Vec::new())
        };
        answer::with_plain_end(answer, output)
    }

    fn read_event(&self, bytes: &[u8]) -> Result<Request, DialectError> {
        let mut wire = request_object(bytes)?;
        if let Some(version) = wire.get("version") {
            supported(version).map_err(DialectError::Version)?;
        }
        let name = take_text(&mut wire, "event")?;
        if !wire.contains_key("context") {
            return Err(DialectError::Missing("context"));
        }
        let mut data = take_object(&mut wire, "context")?;
        let metadata = take_object(&mut wire, "metadata")?;
        let kind = kind_of(&name, &mut data)?;
        call::settle(kind, &mut data)?;
        self.take_in(&mut object([("metadata", metadata.into())]), &mut data);
        self.canonical(kind, &mut data);
        Ok(Request::new(Event { kind, data }))
    }

    fn canonical(&self, kind: EventKind, data: &mut Map<String, Value>) -> EventKind {
        match kind {
            EventKind::BeforeTool | EventKind::AfterTool => rename(data, "tool", "tool_name"),
            EventKind::ContextOverflow => {
                if let Some(Value::Object(sizes)) = data.shift_remove("context") {
                    data.extend(sizes);
                }
            }
            kind if kind.is_file() => {
                if data.get("file").is_some_and(Value::is_string) {
                    rename(data, "file", "path");
                }
                rename(data, "fileDetails", "file");
                name_change(data);
            }
            _ => {}
        }
        if !data.contains_key("session_id")
            && let Some(id) = data.get("session").and_then(|session| session.get("id")).cloned()
        {
            data.insert("session_id".to_owned(), id);
        }
        kind
    }

    fn take_in(&self, beside: &mut Map<String, Value>, data: &mut Map<String, Value>) {
        let Some(Value::Object(mut metadata)) = beside.shift_remove("metadata") else { return };
        rename(&mut metadata, "sessionId", "session_id");
        for field in ["session_id", "timestamp"] {
            if let Some(value) = metadata.shift_remove(field) {
                data.insert(field.to_owned(), value);
            }
        }
    }

    fn write_verdict(&self, _request: &Request, verdict: &Verdict) -> Reply {
        let mut wire = object([("allow", verdict.flow.continues().into())]);
        let texts = if verdict.flow.continues() { &verdict.messages } else { &verdict.reasons };
        if let Some(message) = joined(texts) {
            wire.insert("message".to_owned(), message.into());
        }
        if !verdict.metadata.is_empty() {
            wire.insert("metadata".to_owned(), verdict.metadata.clone().into());
        }
        Reply { stdout: line(wire), ..Reply::default() }
    }

    fn answer_schema(&self, kind: EventKind) -> Value {
        schema::answer(self, kind, schema::fields(NATIVE, &["allow"]))
    }
}

fn read_object(object: &Object, kind: EventKind) -> HookAnswer {
    let mut reading = answer::read(object, NATIVE, kind);
    if let Some(Err(version)) = object.fields.get("version").map(supported) {
        reading.faults.push(format!("protocol version `{version}` is not supported"));
    }
    if !object.fields.contains_key("allow") {
        reading.faults.push("the answer has no `allow`".to_owned());
    }
    reading.into_answer()
}

/// Accepts every version 1.x.
fn supported(version: &Value) -> Result<(), String> {
    let text = version.as_str().map_or_else(|| version.to_string(), str::to_owned);
    if text == "1" || text.starts_with("1.") { Ok(()) } else { Err(text) }
}

/// Renames the change of a file to the field of other dialects. Some programs write only the word.
fn name_change(data: &mut Map<String, Value>) {
    let Some(changes) = data.get_mut("changes") else { return };
    let word = changes.get("type").unwrap_or(changes).as_str();
    let Some((kind, _)) = CHANGES.iter().find(|(_, change)| word == Some(change)) else { return };
    let verb = Value::from(kind.change());
    match changes.as_object_mut() {
        Some(changes) => drop(changes.insert("type".to_owned(), verb)),
        None => *changes = object([("type", verb)]).into(),
    }
}

fn spell_data(kind: EventKind, context: &mut Map<String, Value>) {
    match kind {
        EventKind::BeforeTool | EventKind::AfterTool => rename(context, "tool_name", "tool"),
        EventKind::ContextOverflow => {
            let sizes = OVERFLOW.iter().filter_map(|field| Some(((*field).to_owned(), context.shift_remove(*field)?)));
            let sizes: Map<String, Value> = sizes.collect();
            context.insert("context".to_owned(), sizes.into());
        }
        kind if kind.is_file() => {
            rename(context, "file", "fileDetails");
            rename(context, "path", "file");
            let word = CHANGES.iter().find(|(change, _)| *change == kind).map(|(_, word)| *word);
            let changes = context.entry("changes").or_insert_with(|| Map::new().into());
            if let (Some(changes), Some(word)) = (changes.as_object_mut(), word) {
                changes.insert("type".to_owned(), word.into());
            }
        }
        _ => {}
    }
}
