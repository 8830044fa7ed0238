//! Tests whether a line of an agent reached us: an event with a unique word must appear in the trace.

use ollm_protocol::dialect::Addressee;
use ollm_protocol::{Dialect, Event};
use uuid::Uuid;

use crate::app_context::AppContext;
use crate::trace::{Records, trace_log};

/// How many of the newest records are searched: other agents may ask meanwhile.
const LOOKED_AT: usize = 200;

/// The prefix of the sessions of such events.
const TEST_SESSION: &str = "ollm-test-";

/// A unique word.
pub(super) fn nonce() -> String {
    format!("{TEST_SESSION}{}", Uuid::now_v7())
}

/// Whether a session belongs to the test of a connection.
pub(crate) fn is_test(session: &str) -> bool {
    session.starts_with(TEST_SESSION)
}

/// Whether the event has no record, although every event leaves one with its session.
///
/// If records are off, or the agent sends no session, the answer is unknown and therefore false.
pub(super) fn is_unheard(nonce: &str, event: &Event, dialect: &dyn Dialect, context: &AppContext) -> bool {
    let written = dialect.write_event(event, &Addressee::new("ollm", "1.0.0"));
    let read = dialect.read_event(&written).ok();
    if read.is_none_or(|request| request.event.session_id() != Some(nonce)) {
        return false;
    }
    let env = |name: &str| context.variable(name);
    let (config, _) = ollm_catalog::configuration(&context.places, &env, &context.overrides);
    let settings = config.trace();
    let Ok(records) = Records::open(trace_log(context, &settings)) else { return false };
    settings.enabled && !records.take(LOOKED_AT).flatten().any(|record| record.text("session") == nonce)
}
