//! Where dispatches leave their records, and the leaving itself.

use ollm_catalog::TraceSettings;
use ollm_engine::{Outcome, trace};
use ollm_protocol::Event;
use ollm_store::{Bounds, Trail};

use crate::app::App;
use crate::log::is_off;
use crate::output::Output;
use crate::world::World;

/// The records of all dispatches; none without a home to keep them in.
pub(crate) fn trail(world: &World, settings: &TraceSettings) -> Option<Trail> {
    let files = usize::try_from(settings.max_files).unwrap_or(usize::MAX);
    let bounds = Bounds { file: settings.max_size, files };
    Some(Trail::new(world.own_home()?.join("trace"), "trace.jsonl", bounds))
}

/// Whether records are kept: `OLLM_TRACE` decides, then the configuration.
pub(crate) fn is_on(world: &World, configured: bool) -> bool {
    world.variable("OLLM_TRACE").map_or(configured, |value| !is_off(&value))
}

/// Writes down what came of an event. That it cannot be written is told in one line and changes nothing.
pub(crate) fn leave(app: &App, event: &Event, outcome: &Outcome, world: &World, output: &mut Output) {
    if let Err(why) = record(app, event, outcome, world, output) {
        output.tell(&why);
    }
}

/// Like [`leave`], for many events: why this one could not be written is for the caller to tell.
pub(crate) fn record(
    app: &App,
    event: &Event,
    outcome: &Outcome,
    world: &World,
    output: &mut Output,
) -> Result<(), String> {
    let trail = trail(world, &app.trace).filter(|_| is_on(world, app.trace.enabled));
    let Some(trail) = trail else { return Ok(()) };
    let line = trace::record(event, outcome, app.engine.environment(), env!("CARGO_PKG_VERSION"));
    let written = trail.append(&line);
    written.map_err(|error| format!("this event leaves no trace: {error} (OLLM_TRACE=off does without)"))?;
    output.detail(|| format!("trace {} is in {}", outcome.trace_id, trail.path().display()));
    Ok(())
}
