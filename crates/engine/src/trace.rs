//! Makes the record of one dispatch: one line of JSON, bounded and without secrets. Pure: the caller writes it.
//!
//! ```
//! use std::time::SystemTime;
//! use ollm_engine::{Engine, Environment};
//! use ollm_engine::trace::{Payload, Recorder};
//! use ollm_trust::Trust;
//! use ollm_protocol::{Event, EventKind};
//!
//! let engine = Engine::new(Trust::new("trusted-hooks.json".into(), SystemTime::now), Environment::default());
//! let event = Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into())]);
//! let outcome = engine.dispatch(&event);
//! let recorder = Recorder { environment: engine.environment(), binary: "1.0.0", off: None, payload: Payload::Short };
//! let line = recorder.record(&event, &outcome);
//! let record: serde_json::Value = serde_json::from_str(&line)?;
//! assert_eq!(record["traceId"], outcome.trace_id);
//! assert_eq!(record["subject"], "shell");
//! assert_eq!(record["verdict"]["flow"], "no_opinion");
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ollm_protocol::units::iso;
use ollm_protocol::{Event, Hook, Verdict, joined};
use ollm_store::Redactor;
use serde_json::{Map, Value};

use crate::background::TaskResult;
use crate::environment::Environment;
use crate::present::redactor;
use crate::report::{Outcome, Process, Report, Skip};

mod line;

use line::{Line, Whole};

/// The version of the record format.
pub const VERSION: u64 = 1;
/// The most bytes of a record, without the whole data of its event.
pub const LONGEST: usize = 64 << 10;
/// The most bytes of JSON for an event's whole data and answer; longer ones are not kept whole.
pub const PAYLOAD: usize = 60 << 10;

/// The bounds of a record's parts, in bytes of JSON; their sum stays well below [`LONGEST`].
const PLAN: usize = 8 << 10;
const SKIPPED: usize = 12 << 10;
const HOOKS: usize = 20 << 10;
const DATA: usize = 8 << 10;
const NOTES: usize = 2 << 10;
/// The bounds of single texts, in bytes of JSON.
const NAME: usize = 256;
const TEXT: usize = 1 << 10;
/// The most warnings per hook; further ones are left out.
const WARNINGS: usize = 4;

/// How much of an event's data a record holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// A short form, for people.
    #[default]
    Short,
    /// The short form and all of the data, if it is not too long. Then the event can be dispatched again.
    Whole,
}

/// Makes records.
#[derive(Clone, Copy, Debug)]
pub struct Recorder<'a> {
    /// The record hides the secrets of this environment.
    pub environment: &'a Environment,
    /// The version of the program that writes the records.
    pub binary: &'a str,
    /// The protection that is switched off, if any, in one line.
    pub off: Option<&'a str>,
    /// How much of an event's data the record holds.
    pub payload: Payload,
}

impl Recorder<'_> {
    /// The record of a dispatch, as one line of JSON without a line end.
    ///
    /// Hides the secrets of the environment and those that the hooks declare in `env` and `passEnv`. If the record
    /// would grow too long, texts are cut and lists end early, each with a note.
    pub fn record(&self, event: &Event, outcome: &Outcome) -> String {
        let planned = outcome.plan.iter().flatten();
        let concerned = planned.chain(outcome.skipped.iter().map(|skip| &skip.hook));
        let redactor = redactor(concerned.map(Arc::as_ref), self.environment);
        let mut line = Line::new(&redactor);
        line.object(|line| {
            self.head(line, event, outcome);
            line.key("plan").list(PLAN, &outcome.plan, |line, stage| line.ids(stage));
            line.key("skipped").list(SKIPPED, &outcome.skipped, skip);
            line.key("hooks").list(HOOKS, &outcome.reports, |line, report| hook(line, report, outcome));
            verdict(line.key("verdict"), outcome);
            line.key("durationMs").plain(millis(outcome.duration));
            line.key("data").data(&event.data, DATA);
            if self.payload == Payload::Whole {
                whole(line, event, outcome);
            }
        });
        line.finish()
    }

    fn head(&self, line: &mut Line<'_>, event: &Event, outcome: &Outcome) {
        line.key("version").plain(VERSION);
        line.key("traceId").text(&outcome.trace_id, NAME);
        line.key("time").text(&iso(outcome.time), NAME);
        line.key("binary").text(self.binary, NAME);
        line.key("event").text(event.kind.name(), NAME);
        line.key("session").optional(event.session_id(), NAME);
        line.key("subject").optional(event.subject(), NAME);
        let cwd = event.text("cwd").map_or_else(|| self.environment.cwd.to_string_lossy(), Into::into);
        line.key("cwd").text(&cwd, TEXT);
        if let Some(off) = self.off {
            line.key("off").text(off, TEXT);
        }
        if let Some(why) = &outcome.unheard {
            line.key("unheard").text(why, TEXT);
        }
        if !outcome.notes.is_empty() {
            line.key("notes").list(NOTES, &outcome.notes, |line, note| line.text(note, TEXT));
        }
        if let Some(earlier) = &outcome.answered_by {
            line.key("answeredBy").text(earlier, NAME);
        }
    }
}

/// The result of a background hook, as one line of JSON without a line end. It belongs to the record with the same
/// `traceId`, wherever that stands. The error must already be without secrets.
pub fn late(done: &TaskResult, time: SystemTime, binary: &str) -> String {
    let redactor = Redactor::new(Vec::<(String, String)>::new());
    let process = done.process.as_ref();
    let mut line = Line::new(&redactor);
    line.object(|line| {
        line.key("version").plain(VERSION);
        line.key("traceId").text(&done.trace_id, NAME);
        line.key("time").text(&iso(time), NAME);
        line.key("binary").text(binary, NAME);
        line.key("event").text(done.event.name(), NAME);
        line.key("late").object(|line| {
            line.key("id").text(&done.hook, NAME);
            line.key("durationMs").plain(millis(done.duration));
            line.key("status").text(done.status.name(), NAME);
            remains(line, process);
            line.key("error").optional(done.error.as_deref(), TEXT);
            if let Some(stack) = &done.stack {
                line.key("stack").text(stack, TEXT);
            }
        });
    });
    line.finish()
}

fn skip(line: &mut Line<'_>, skip: &Skip) {
    line.object(|line| {
        line.key("id").text(skip.hook.id(), NAME);
        line.key("reason").text(skip.reason.name(), NAME);
        line.key("detail").text(&skip.detail, TEXT);
    });
}

fn hook(line: &mut Line<'_>, report: &Report, outcome: &Outcome) {
    let Hook { spec, dialect, .. } = report.hook.as_ref();
    let process = report.process.as_ref();
    line.object(|line| {
        line.key("id").text(&spec.id, NAME);
        line.key("name").text(&spec.name, NAME);
        line.key("source").text(spec.source.name(), NAME);
        line.key("dialect").text(dialect.name(), NAME);
        line.key("startMs").plain(millis(report.started.saturating_duration_since(outcome.started)));
        line.key("durationMs").plain(millis(report.duration));
        line.key("status").text(report.status.name(), NAME);
        line.key("flow").text(report.verdict.flow.name(), NAME);
        let parts = parts(&report.verdict);
        if !parts.is_empty() {
            line.key("parts").list(TEXT, &parts, |line, part| line.text(part, NAME));
        }
        remains(line, process);
        line.key("leaky").maybe(Some(report.leaky));
        line.key("async").maybe(Some(report.detached));
        line.key("error").optional(report.error.as_deref(), TEXT);
        let most = report.warnings.get(..WARNINGS).unwrap_or(&report.warnings);
        line.key("warnings").list(TEXT, most, |line, warning| line.text(warning, NAME));
    });
}

/// The parts of a verdict beside the decision, by their names in the full answer.
fn parts(verdict: &Verdict) -> Vec<&'static str> {
    let parts = [
        ("systemMessages", !verdict.system_messages.is_empty()),
        ("messages", !verdict.messages.is_empty()),
        ("context", !verdict.context.is_empty()),
        ("modifiedArgs", !verdict.patch.is_empty()),
        ("result", verdict.result.is_some()),
        ("tools", verdict.tools.is_some()),
        ("askAgent", !verdict.prompts.is_empty()),
    ];
    parts.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)).collect()
}

/// How a process ended, and how much it read and wrote; null if there was no process.
fn remains(line: &mut Line<'_>, process: Option<&Process>) {
    line.key("exit").maybe(process.and_then(|process| process.exit));
    line.key("signal").maybe(process.and_then(|process| process.signal));
    line.key("bytesIn").maybe(process.map(|process| process.bytes_in));
    line.key("bytesOut").maybe(process.map(|process| process.bytes_out));
    line.key("bytesErr").maybe(process.map(|process| process.bytes_err));
}

fn verdict(line: &mut Line<'_>, outcome: &Outcome) {
    line.object(|line| {
        line.key("flow").text(outcome.verdict.flow.name(), NAME);
        line.key("continue").maybe(Some(outcome.continues()));
        line.key("reason").optional(joined(&outcome.verdict.reasons).as_deref(), 2 * TEXT);
        line.key("modifiedArgs").maybe(Some(outcome.modified_args.is_some()));
    });
}

/// The event and the answer, both whole.
fn whole(line: &mut Line<'_>, event: &Event, outcome: &Outcome) {
    let kept = line.whole("payload", &event.data, PAYLOAD);
    match kept {
        None => line.key("payloadMissing").text("its data is too long to be kept as a whole", NAME),
        Some(Whole { redacted: true, .. }) => line.key("payloadRedacted").plain(true),
        Some(_) => {}
    }
    // Both together stay within the bound. If the answer does not fit, the record still has its reason.
    line.whole("answer", &answer(outcome), PAYLOAD.saturating_sub(kept.map_or(0, |kept| kept.bytes)));
}

/// The merged answer of all hooks, without empty fields.
fn answer(outcome: &Outcome) -> Map<String, Value> {
    let verdict = &outcome.verdict;
    let text = |texts: &[String]| joined(texts).map(Value::from);
    let fields = [
        ("reason", text(&verdict.reasons)),
        ("systemMessages", text(&verdict.system_messages)),
        ("messages", text(&verdict.messages)),
        ("context", text(&verdict.context)),
        ("modifiedArgs", outcome.modified_args.clone().map(Value::from)),
        ("result", verdict.result.clone()),
        ("tools", verdict.tools.clone().map(Value::from)),
        ("askAgent", text(&verdict.prompts)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Milliseconds, rounded to microseconds.
fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
