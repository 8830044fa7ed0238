//! `agent`: shell commands with templates, exit codes, and `decision` answers. The JSON on standard input has both the
//! names of this dialect's own document and Claude-Code-style names.
//!
//! Exit 0 continues. Exit 2 blocks with standard error as the reason, whatever the JSON says. Other codes and timeouts
//! warn. All matching hooks run. Written verdicts refuse by exit 2; a question that no person can answer is a refusal.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    Addressee, Defaults, Dialect, DialectError, End, HookAnswer, Output, Reply, Request, answer, call, kind_of, line,
    object, rename, request_object, schema, take_text,
};
use crate::event::{Event, EventKind};
use crate::hook::Reach;
use crate::json::scan;
use crate::verdict::{Flow, Verdict, joined};

const NATIVE: &[&str] = &[
    "continue",
    "decision",
    "reason",
    "metadata",
    "modified_args",
    "systemMessage",
    "stopReason",
    "hookSpecificOutput",
];

/// Wire names for each canonical field. The reader takes the first that is present; the writer writes all.
const TOOL: &[(&str, &str)] = &[
    ("tool_input", "args"),
    ("tool_args", "args"),
    ("tool_use_id", "call_id"),
    ("tool_response", "result"),
    ("result", "result"),
];
const STOP: &[(&str, &str)] = &[("last_assistant_message", "response")];
const NOTIFICATION: &[(&str, &str)] = &[("notification_type", "event_type"), ("event_type", "event_type")];
const COMPACT: &[(&str, &str)] = &[("compact_summary", "summary")];
const FILE: &[(&str, &str)] = &[("file_path", "path")];

/// The values of `event` in a FileChanged request.
const CHANGES: &[(EventKind, &str)] =
    &[(EventKind::FileCreated, "add"), (EventKind::FileEdited, "change"), (EventKind::FileDeleted, "unlink")];

#[derive(Debug)]
pub(super) struct Agent;

impl Dialect for Agent {
    fn name(&self) -> &'static str {
        "agent"
    }

    fn defaults(&self) -> Defaults {
        Defaults {
            runs_on_after_refusal: true,
            timeout_unit: Duration::from_secs(1),
            reach: Reach::Main,
            detached: &[EventKind::Notification],
            ..Defaults::USUAL
        }
    }

    fn names(&self) -> &'static [(EventKind, &'static str)] {
        &[
            (EventKind::SessionStart, "SessionStart"),
            (EventKind::SessionEnd, "SessionEnd"),
            (EventKind::BeforeAgent, "UserPromptSubmit"),
            (EventKind::AfterAgent, "Stop"),
            (EventKind::BeforeTool, "PreToolUse"),
            (EventKind::AfterTool, "PostToolUse"),
            (EventKind::PreCompress, "PreCompact"),
            (EventKind::PostCompress, "PostCompact"),
            (EventKind::Notification, "Notification"),
            (EventKind::ApprovalRequest, "PermissionRequest"),
            (EventKind::FileCreated, "FileChanged"),
            (EventKind::FileEdited, "FileChanged"),
            (EventKind::FileDeleted, "FileChanged"),
            (EventKind::SubagentStart, "SubagentStart"),
            (EventKind::SubagentStop, "SubagentStop"),
        ]
    }

    fn write_event(&self, event: &Event, _hook: &Addressee<'_>) -> Vec<u8> {
        let mut wire = object([("hook_event_name", self.spell(event.kind).into())]);
        let fields = wire_names(event.kind);
        for (name, value) in &event.data {
            if !fields.iter().any(|(_, canonical)| canonical == name) {
                wire.insert(name.clone(), value.clone());
            }
        }
        for (name, canonical) in fields {
            if let Some(value) = event.data.get(*canonical) {
                wire.insert((*name).to_owned(), value.clone());
            }
        }
        if let Some(attempt) = event.data.get("attempt").and_then(Value::as_u64) {
            wire.insert("stop_hook_active".to_owned(), (attempt > 0).into());
        }
        if let Some((_, change)) = CHANGES.iter().find(|(kind, _)| *kind == event.kind) {
            wire.insert("event".to_owned(), (*change).into());
        }
        wire.insert("hook_event_name".to_owned(), self.spell(event.kind).into());
        line(wire)
    }

    fn read_verdict(&self, kind: EventKind, output: &Output<'_>) -> HookAnswer {
        let scan = scan(output.stdout);
        let mut warnings = Vec::new();
        let mut answer = match answer::one_object(&scan, &mut warnings) {
            Ok(object) => {
                let mut reading = answer::read(object, NATIVE, kind);
                reading.warnings.splice(0..0, warnings);
                reading.into_answer()
            }
            // Plain text is a valid answer here. Text that begins like an object was meant as JSON.
            Err(_) if scan.objects.is_empty() && !output.stdout.trim_ascii_start().starts_with(b"{") => {
                HookAnswer::default()
            }
            Err(why) => answer::failed(format!("malformed answer: {why}"), &scan, kind, warnings),
        };
        if output.end == End::Exited(2) {
            answer::block_by_status(&mut answer, output.stderr);
            return answer;
        }
        answer::with_end(answer, output)
    }

    fn read_event(&self, bytes: &[u8]) -> Result<Request, DialectError> {
        let mut data = request_object(bytes)?;
        let name = take_text(&mut data, "hook_event_name")?;
        let kind = kind_of(&name, &mut data)?;
        call::settle(kind, &mut data)?;
        let kind = self.canonical(kind, &mut data);
        Ok(Request::new(Event::from_loose(kind, data.into())))
    }

    fn canonical(&self, mut kind: EventKind, data: &mut Map<String, Value>) -> EventKind {
        if kind.is_file()
            && let Some(Value::String(change)) = data.shift_remove("event")
        {
            kind = CHANGES.iter().find(|(_, word)| *word == change).map_or(kind, |(kind, _)| *kind);
        }
        for (name, canonical) in wire_names(kind).iter().rev() {
            rename(data, name, canonical);
        }
        data.shift_remove("stop_hook_active").filter(|_| !data.contains_key("attempt")).map(|active| {
            let attempt = u8::from(active == Value::Bool(true));
            data.insert("attempt".to_owned(), attempt.into())
        });
        kind
    }

    fn write_verdict(&self, request: &Request, verdict: &Verdict) -> Reply {
        if !verdict.flow.continues() {
            let reason = verdict.reason().unwrap_or_else(|| "refused by a hook".to_owned());
            return Reply { stderr: format!("{reason}\n").into_bytes(), exit: 2, ..Reply::default() };
        }
        let mut wire: Map<String, Value> = Map::new();
        if !verdict.patch.is_empty() {
            wire.insert("decision".to_owned(), "modify".into());
            wire.insert("modified_args".to_owned(), verdict.patch.clone().into());
        } else if verdict.flow == Flow::Allow {
            wire.insert("decision".to_owned(), "approve".into());
        }
        let texts = [("reason", &verdict.messages), ("systemMessage", &verdict.system_messages)];
        for (field, texts) in texts {
            wire.extend(joined(texts).map(|text| (field.to_owned(), text.into())));
        }
        if !verdict.metadata.is_empty() {
            wire.insert("metadata".to_owned(), verdict.metadata.clone().into());
        }
        let mut nested: Map<String, Value> = Map::new();
        nested.extend(joined(&verdict.context).map(|context| ("additionalContext".to_owned(), context.into())));
        if request.event.kind == EventKind::AfterTool {
            nested.extend(verdict.result.clone().map(|result| ("updatedToolOutput".to_owned(), result)));
        }
        if !nested.is_empty() {
            nested.insert("hookEventName".to_owned(), self.spell(request.event.kind).into());
            wire.insert("hookSpecificOutput".to_owned(), nested.into());
        }
        if wire.is_empty() {
            return Reply::default();
        }
        wire.insert("continue".to_owned(), true.into());
        Reply { stdout: line(wire), ..Reply::default() }
    }

    fn answer_schema(&self, kind: EventKind) -> Value {
        schema::answer(self, kind, schema::fields(NATIVE, &[]))
    }
}

fn wire_names(kind: EventKind) -> &'static [(&'static str, &'static str)] {
    match kind {
        EventKind::BeforeTool | EventKind::AfterTool => TOOL,
        EventKind::AfterAgent => STOP,
        EventKind::Notification => NOTIFICATION,
        EventKind::PostCompress => COMPACT,
        kind if kind.is_file() => FILE,
        _ => &[],
    }
}
