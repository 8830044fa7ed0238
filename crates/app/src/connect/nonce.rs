//! Whether a line of an agent really led to us: an event with a word that nobody else knows must be in the trace.

use ollm_protocol::dialect::Addressee;
use ollm_protocol::{Dialect, Event};
use uuid::Uuid;

use crate::app_context::AppContext;
use crate::trace::{Records, trail};

/// So many of the newest records are looked at: other agents may ask meanwhile.
const LOOKED_AT: usize = 200;

/// A word that nobody else knows.
pub(super) fn nonce() -> String {
    format!("ollm-test-{}", Uuid::now_v7())
}

/// Whether the event was not heard, though every event that is heard leaves a record with its session.
///
/// Where records are off, or the agent tells no session, that cannot be known.
pub(super) fn is_unheard(nonce: &str, event: &Event, dialect: &dyn Dialect, context: &AppContext) -> bool {
    let written = dialect.write_event(event, &Addressee { name: "ollm", version: "1.0.0" });
    let read = dialect.read_event(&written).ok();
    if read.is_none_or(|request| request.event.session_id() != Some(nonce)) {
        return false;
    }
    let env = |name: &str| context.variable(name);
    let (config, _) = ollm_catalog::configuration(&context.places, &env, &context.overrides);
    let settings = config.trace();
    let Ok(records) = Records::open(trail(context, &settings)) else { return false };
    settings.enabled && !records.take(LOOKED_AT).flatten().any(|record| record.text("session") == nonce)
}
