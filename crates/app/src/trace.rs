//! The records of dispatches: their location, how to write them, and how to read them.

use std::ffi::OsString;
use std::time::SystemTime;

use ollm_catalog::TraceSettings;
use ollm_engine::trace::{Payload, Recorder};
use ollm_engine::{Launcher, Outcome, TaskResult, trace};
use ollm_protocol::Event;
use ollm_store::{Bounds, RotatingLog};

use crate::app::App;
use crate::app_context::AppContext;
use crate::port::Notices;

mod export;
mod failing;
mod filter;
mod record;
mod stats;

pub use export::{chrome, csv, html};
pub use failing::{FailingHook, failing};
pub use filter::TraceFilter;
pub(crate) use record::LateEnd;
pub use record::{HookRun, LeftOut, Record, Records, array, at, event_of};
pub use stats::{HookStats, SlowRun, TraceStats};

const FILE: &str = "trace.jsonl";

/// The log with the records of all dispatches; `None` without a home.
pub fn trace_log(context: &AppContext, settings: &TraceSettings) -> Option<RotatingLog> {
    let files = usize::try_from(settings.max_files).unwrap_or(usize::MAX);
    let bounds = Bounds { file: settings.max_size, files };
    Some(RotatingLog::new(context.own_home()?.join("trace"), FILE, bounds))
}

/// The log, if records are kept.
pub(crate) fn kept(context: &AppContext, settings: &TraceSettings) -> Option<RotatingLog> {
    trace_log(context, settings).filter(|_| settings.enabled)
}

/// Tells the process that takes over async hooks to record their results.
pub fn left_to(mut launcher: Launcher, context: &AppContext, settings: &TraceSettings) -> Launcher {
    if let Some(home) = context.own_home().filter(|_| settings.enabled) {
        let bounds = [settings.max_size, settings.max_files].map(|bound| bound.to_string().into());
        launcher.args.push(home.join("trace").into());
        launcher.args.extend(bounds);
    }
    launcher
}

/// The log for that process, from the arguments of [`left_to`].
pub fn told(words: &[OsString]) -> Option<RotatingLog> {
    let [folder, size, files] = words else { return None };
    let bounds = Bounds { file: size.to_str()?.parse().ok()?, files: files.to_str()?.parse().ok()? };
    Some(RotatingLog::new(folder.into(), FILE, bounds))
}

/// Records the result of a background hook. A failure to write is not reported, because the process that would report
/// it has ended.
pub fn leave_late(trace_log: &RotatingLog, done: &TaskResult) {
    let _ = trace_log.append(&trace::late(done, SystemTime::now(), env!("CARGO_PKG_VERSION")));
}

/// Records the results of background hooks too, and tells the file watchers that these have ended.
pub fn listen(app: &mut App) {
    let (trace_log, ends, telemetry) = (app.trace_log.clone(), app.late_ends.clone(), app.telemetry.clone());
    app.engine.on_late(move |late| {
        ends.add(&late.trace_id);
        if let Some(telemetry) = &telemetry {
            telemetry.observe_late(&late);
        }
        if let Some(trace_log) = &trace_log {
            leave_late(trace_log, &late.done());
        }
    });
}

/// Records the outcome of an event. If that fails, the person gets one line and nothing else changes.
pub fn leave(app: &App, event: &Event, outcome: &Outcome, notices: &mut dyn Notices) {
    if let Err(why) = record(app, event, outcome, notices) {
        notices.tell(&why);
    }
}

/// Like [`leave`], for many events: the caller reports why an event could not be recorded.
pub fn record(app: &App, event: &Event, outcome: &Outcome, notices: &mut dyn Notices) -> Result<(), String> {
    if let Some(telemetry) = &app.telemetry {
        telemetry.observe(event, outcome, || told_data(app, event, outcome));
    }
    let Some(trace_log) = &app.trace_log else { return Ok(()) };
    let off = app.what_is_off();
    let payload = if app.trace.whole_payload { Payload::Whole } else { Payload::Short };
    let written = trace_log.append(&line(app, event, outcome, payload, off.as_deref()));
    written.map_err(|error| format!("this event leaves no trace: {error} (OLLM_TRACE_ENABLED=false does without)"))?;
    notices.detail(&|| format!("trace {} is in {}", outcome.trace_id, trace_log.path().display()));
    Ok(())
}

/// An event's data as in its record: shortened, and without secrets.
fn told_data(app: &App, event: &Event, outcome: &Outcome) -> Option<String> {
    let record = Record::of_line(line(app, event, outcome, Payload::Short, None).as_bytes())?;
    Some(at(&record.value, "data").to_string())
}

/// The record of an event, as one line of JSON.
pub(crate) fn line(app: &App, event: &Event, outcome: &Outcome, payload: Payload, off: Option<&str>) -> String {
    let environment = app.engine.environment();
    Recorder { environment, binary: env!("CARGO_PKG_VERSION"), off, payload }.record(event, outcome)
}
