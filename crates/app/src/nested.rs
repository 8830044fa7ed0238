//! Events that hooks themselves send: their origin, and the limit on nesting.

use ollm_engine::{DEPTH_VARIABLE, EXTENSION_VARIABLE};
use ollm_protocol::{Code, Event, EventKind};

use crate::app_context::AppContext;
use crate::error::AppError;

/// The limit on hooks that send events to hooks that send events; deeper nesting is taken for a loop.
const DEEPEST: u32 = 3;

/// The event with the name of the extension whose hook sends it. The name informs people and hooks, and decides
/// nothing.
#[must_use]
pub fn sent_by_hook(mut event: Event, context: &AppContext) -> Event {
    let named = matches!(event.kind, EventKind::Custom | EventKind::UserTriggered);
    if let Some(extension) = context.variable(EXTENSION_VARIABLE).filter(|name| named && !name.is_empty()) {
        event.data.insert("source".to_owned(), extension.into());
    }
    event
}

/// Fails if an event for hooks would nest too deep in events that hooks sent. The error says that `what` does not
/// happen. Events of agents never count.
pub fn refuse_too_deep(what: &str, context: &AppContext) -> Result<(), AppError> {
    if !is_too_deep(context) {
        return Ok(());
    }
    let message = format!("{what}: it is inside {DEEPEST} events that hooks sent");
    Err(AppError::new(Code::TooDeep, message).hint("a hook that sends the event it waits for calls itself"))
}

pub(crate) fn is_too_deep(context: &AppContext) -> bool {
    let depth = context.variable(DEPTH_VARIABLE).and_then(|depth| depth.parse().ok()).unwrap_or(0);
    depth > DEEPEST
}
