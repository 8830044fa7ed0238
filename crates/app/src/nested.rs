//! Events that hooks send themselves: whose they are, and how deep they may nest.

use ollm_engine::{DEPTH_VARIABLE, EXTENSION_VARIABLE};
use ollm_protocol::{Code, Event, EventKind};

use crate::app_context::AppContext;
use crate::error::AppError;

/// A hook may send an event whose hook sends another one, and so on; further down it is a loop.
const DEEPEST: u32 = 3;

/// The event as a hook of an extension sends it: it carries the extension's name. That is for people and hooks to know, and
/// decides nothing.
#[must_use]
pub fn sent_by_hook(mut event: Event, context: &AppContext) -> Event {
    let named = matches!(event.kind, EventKind::Custom | EventKind::UserTriggered);
    if let Some(extension) = context.variable(EXTENSION_VARIABLE).filter(|name| named && !name.is_empty()) {
        event.data.insert("source".to_owned(), extension.into());
    }
    event
}

/// Fails where an event would be too deep inside others. Only events that hooks send are counted, never those of agents.
pub fn refuse_too_deep(context: &AppContext) -> Result<(), AppError> {
    let depth = context.variable(DEPTH_VARIABLE).and_then(|depth| depth.parse().ok()).unwrap_or(0);
    if depth <= DEEPEST {
        return Ok(());
    }
    let message = format!("the event is not sent: it is inside {DEEPEST} others that hooks sent");
    Err(AppError::new(Code::TooDeep, message).hint("a hook that sends the event it waits for calls itself"))
}
