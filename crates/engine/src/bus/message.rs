//! The messages that listeners get.

use std::sync::Arc;
use std::time::SystemTime;

use ollm_protocol::{Event, Hook, joined};
use serde_json::{Map, Value, json};

use crate::report::Report;

pub(super) const START: &str = "hook_execution_start";
pub(super) const COMPLETE: &str = "hook_execution_complete";
pub(super) const ERROR: &str = "hook_execution_error";

/// A message: something that happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Message {
    /// Its number on the bus, counted from one; the bus sets it.
    pub sequence: u64,
    /// When it happened.
    pub timestamp: SystemTime,
    /// The session it belongs to, if known.
    pub session_id: Option<String>,
    /// The dispatch it belongs to, if it belongs to one.
    pub trace_id: Option<String>,
    /// What happened.
    pub body: MessageBody,
}

/// What happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MessageBody {
    /// An event.
    Event(Event),
    /// `hook_execution_start`: a hook starts.
    HookStart {
        /// The hook.
        hook: Arc<Hook>,
        /// The event in the spelling of the hook's dialect.
        hook_type: &'static str,
        /// The hook's command, as declared.
        hook_command: String,
        /// The event as the hook gets it.
        context: Event,
    },
    /// `hook_execution_complete`: a hook has answered, perhaps with a refusal.
    HookComplete {
        /// The hook.
        hook: Arc<Hook>,
        /// The event in the spelling of the hook's dialect.
        hook_type: &'static str,
        /// The hook's command, as declared.
        hook_command: String,
        /// How it went.
        result: Box<Report>,
    },
    /// `hook_execution_error`: a hook has failed, or did not answer in time.
    HookError {
        /// The hook.
        hook: Arc<Hook>,
        /// The event in the spelling of the hook's dialect.
        hook_type: &'static str,
        /// The hook's command, as declared.
        hook_command: String,
        /// What went wrong.
        error: String,
        /// How it went.
        result: Box<Report>,
    },
}

impl Message {
    /// A message about an event.
    pub fn event(event: Event, timestamp: SystemTime) -> Message {
        let session_id = event.session_id().map(str::to_owned);
        Message { sequence: 0, timestamp, session_id, trace_id: None, body: MessageBody::Event(event) }
    }

    /// The name of the message: an event's canonical name, or one of the three names of a hook's run.
    pub fn event_type(&self) -> &'static str {
        match &self.body {
            MessageBody::Event(event) => event.kind.name(),
            MessageBody::HookStart { .. } => START,
            MessageBody::HookComplete { .. } => COMPLETE,
            MessageBody::HookError { .. } => ERROR,
        }
    }

    /// The message as a flat JSON object, in the field names of the hook events.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("event_type".to_owned(), self.event_type().into());
        fields.insert("timestamp".to_owned(), ollm_protocol::units::iso(self.timestamp).into());
        fields.insert("session_id".to_owned(), self.session_id.clone().into());
        fields.insert("sequence".to_owned(), self.sequence.into());
        fields.insert("trace_id".to_owned(), self.trace_id.clone().into());
        fields.extend(self.body.fields());
        fields.into()
    }
}

impl MessageBody {
    fn fields(&self) -> Vec<(String, Value)> {
        let about = |kind: &str, command: &str, name: &str, value: Value| {
            vec![
                ("hook_type".to_owned(), kind.into()),
                ("hook_command".to_owned(), command.into()),
                (name.to_owned(), value),
            ]
        };
        match self {
            MessageBody::Event(event) => vec![("data".to_owned(), event.data.clone().into())],
            MessageBody::HookStart { hook_type, hook_command, context, .. } => {
                about(hook_type, hook_command, "context", context.data.clone().into())
            }
            MessageBody::HookComplete { hook_type, hook_command, result, .. } => {
                about(hook_type, hook_command, "result", result_of(result))
            }
            MessageBody::HookError { hook_type, hook_command, error, .. } => {
                about(hook_type, hook_command, "error", error.as_str().into())
            }
        }
    }
}

/// A report, with the field names of a hook's result.
fn result_of(report: &Report) -> Value {
    let process = report.process.as_ref();
    let spoken = process.and_then(|process| process.spoken.as_ref());
    let stdout = spoken.map_or("", |spoken| spoken.stdout.as_str());
    let flow = report.verdict.flow;
    json!({
        "success": report.error.is_none(),
        "exit_code": process.and_then(|process| process.exit),
        "stdout": stdout,
        "stderr": spoken.map_or("", |spoken| spoken.stderr.as_str()),
        "execution_time": report.duration.as_secs_f64(),
        "json_output": serde_json::from_str::<Map<String, Value>>(stdout).ok(),
        "should_continue": flow.continues(),
        "decision": decision(report),
        "reason": joined(&report.verdict.reasons),
    })
}

fn decision(report: &Report) -> &'static str {
    match report.verdict.flow {
        flow if flow.refuses() => "block",
        flow if !flow.continues() => "ask",
        _ if report.verdict.patch.is_empty() => "approve",
        _ => "modify",
    }
}
