//! Where dispatches leave their records, the leaving itself, and what can be read of it afterwards.

use std::ffi::OsString;
use std::time::SystemTime;

use ollm_catalog::TraceSettings;
use ollm_engine::trace::{Payload, Recorder};
use ollm_engine::{Done, Launcher, Outcome, trace};
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
pub use record::{HookRun, LeftOut, Record, Records, array, at};
pub use stats::{HookStats, SlowRun, TraceStats};

const FILE: &str = "trace.jsonl";

/// The records of all dispatches; none without a home to keep them in.
pub fn trail(context: &AppContext, settings: &TraceSettings) -> Option<RotatingLog> {
    let files = usize::try_from(settings.max_files).unwrap_or(usize::MAX);
    let bounds = Bounds { file: settings.max_size, files };
    Some(RotatingLog::new(context.own_home()?.join("trace"), FILE, bounds))
}

/// The records, if any are kept.
pub(crate) fn kept(context: &AppContext, settings: &TraceSettings) -> Option<RotatingLog> {
    trail(context, settings).filter(|_| settings.enabled)
}

/// Has the process that goes on with async hooks write down what came of them.
pub fn left_to(mut launcher: Launcher, context: &AppContext, settings: &TraceSettings) -> Launcher {
    if let Some(home) = context.own_home().filter(|_| settings.enabled) {
        let bounds = [settings.max_size, settings.max_files].map(|bound| bound.to_string().into());
        launcher.args.push(home.join("trace").into());
        launcher.args.extend(bounds);
    }
    launcher
}

/// Where that process leaves its records, as [`left_to`] has told it.
pub fn told(words: &[OsString]) -> Option<RotatingLog> {
    let [folder, size, files] = words else { return None };
    let bounds = Bounds { file: size.to_str()?.parse().ok()?, files: files.to_str()?.parse().ok()? };
    Some(RotatingLog::new(folder.into(), FILE, bounds))
}

/// Writes down what came of a hook that nobody waited for. Who would be told that it cannot be written has gone.
pub fn leave_late(trail: &RotatingLog, done: &Done) {
    let _ = trail.append(&trace::late(done, SystemTime::now(), env!("CARGO_PKG_VERSION")));
}

/// Has the hooks that run beside us leave their records as well, and tells whoever watches files that they have ended.
pub fn listen(app: &mut App) {
    let (trail, ends) = (app.trail.clone(), app.late_ends.clone());
    app.engine.on_late(move |late| {
        ends.add(&late.trace_id);
        if let Some(trail) = &trail {
            leave_late(trail, &late.done());
        }
    });
}

/// Writes down what came of an event. That it cannot be written is told in one line and changes nothing.
pub fn leave(app: &App, event: &Event, outcome: &Outcome, notices: &mut dyn Notices) {
    if let Err(why) = record(app, event, outcome, notices) {
        notices.tell(&why);
    }
}

/// Like [`leave`], for many events: why this one could not be written is for the caller to tell.
pub fn record(app: &App, event: &Event, outcome: &Outcome, notices: &mut dyn Notices) -> Result<(), String> {
    if let Some(telemetry) = &app.telemetry {
        telemetry.observe(event, outcome);
    }
    let Some(trail) = &app.trail else { return Ok(()) };
    let off = app.what_is_off();
    let payload = if app.trace.whole_payload { Payload::Whole } else { Payload::Short };
    let written = trail.append(&line(app, event, outcome, payload, off.as_deref()));
    written.map_err(|error| format!("this event leaves no trace: {error} (OLLM_TRACE_ENABLED=false does without)"))?;
    notices.detail(&|| format!("trace {} is in {}", outcome.trace_id, trail.path().display()));
    Ok(())
}

/// The record of an event, as one line of JSON.
pub(crate) fn line(app: &App, event: &Event, outcome: &Outcome, payload: Payload, off: Option<&str>) -> String {
    let environment = app.engine.environment();
    Recorder { environment, binary: env!("CARGO_PKG_VERSION"), off, payload }.record(event, outcome)
}
