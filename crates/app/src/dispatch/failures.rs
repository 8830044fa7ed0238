//! Tells the hooks for `error` and `notification` which hooks failed: each once, and never about failures at these two
//! events.

use std::time::{Duration, Instant};

use ollm_engine::{EVENT_VARIABLE, FAILURE_FIELDS, Outcome, TaskResult};
use ollm_mcp::{CallError, CallErrorKind};
use ollm_protocol::{Event, EventKind};
use serde_json::{Value, json};

use super::{Deadline, told};
use crate::app::App;
use crate::app_context::AppContext;
use crate::nested::is_too_deep;
use crate::port::Notices;
use crate::trace;
use crate::watch::has_listener;

/// How much longer these hooks may run when the answer is due. The asking agent waits a little longer than that.
const EXTRA: Duration = Duration::from_millis(100);

/// Tells the hooks for failures which hooks failed at an event.
pub(super) fn tell_failures(
    event: &Event,
    outcome: &Outcome,
    deadline: Option<Deadline<'_>>,
    context: &AppContext,
    notices: &mut dyn Notices,
) {
    let latest = Instant::now() + EXTRA;
    let deadline = deadline.map(|deadline| Deadline { due: deadline.due.max(latest), ..deadline });
    for failed in outcome.reports.iter().filter(|report| report.error.is_some()) {
        let events = failure_events(event, outcome.event, failed.failure(), failed.stack.as_deref());
        pass_all(&events, deadline, context, notices);
    }
}

/// Reports a background hook, if it failed; the sender of its event may be gone.
pub fn tell_late_failure(done: &TaskResult, context: &AppContext, notices: &mut dyn Notices) {
    let Some(error) = &done.error else { return };
    let message = format!("{} failed: {error}", done.label);
    notices.tell_failure(&message);
    let about = done.about.iter().map(|(name, value)| (name.as_str(), value.clone()));
    let event = Event::unchecked(done.event, about);
    pass_all(&failure_events(&event, done.event, Some(message), done.stack.as_deref()), None, context, notices);
}

/// Reports a server that a call found broken. A hook for failures that calls a server does not hear of its own failure.
pub fn tell_server_failure(label: &str, error: &CallError, context: &AppContext, notices: &mut dyn Notices) {
    let is_broken = matches!(error.kind, CallErrorKind::Lost(_) | CallErrorKind::Unavailable(_));
    let inside = context.variable(EVENT_VARIABLE).and_then(|name| EventKind::from_name(&name));
    if !is_broken || inside.is_some_and(is_about_failures) || is_too_deep(context) {
        return;
    }
    let event = Event::unchecked(EventKind::Error, [("cwd", context.cwd.display().to_string().into())]);
    let stack = Some(error.said.as_str()).filter(|said| !said.is_empty());
    let events = failure_pair(&event, ("server", "server"), &format!("{label}: {}", error.kind), stack);
    pass_all(&events, None, context, notices);
}

fn pass_all(events: &[Event], deadline: Option<Deadline<'_>>, context: &AppContext, notices: &mut dyn Notices) {
    for event in events {
        // The event itself already reported why loading failed.
        let Ok(app) = App::load_for(context, event, None) else { continue };
        if has_listener(&app, &[event.kind]) {
            pass(&app, event, deadline, context, notices);
        }
        std::mem::forget(app);
    }
}

fn pass(app: &App, event: &Event, deadline: Option<Deadline<'_>>, context: &AppContext, notices: &mut dyn Notices) {
    let children = app.engine.children();
    children.end_soon();
    let hold = children.hold_signals();
    let outcome = match deadline {
        Some(Deadline { due, missed }) => app.dispatch_by(event, due, missed),
        None => app.dispatch(event),
    };
    if let Some(mcp_tools) = &app.mcp_tools {
        mcp_tools.close(notices);
    }
    children.kill_adopted();
    trace::leave(app, event, &outcome, notices);
    drop(hold);
    told::tell(event, &outcome, context, notices);
}

/// The events about a hook's failure at an event of this kind; empty at the two events about failures.
pub(crate) fn failure_events(event: &Event, at: EventKind, message: Option<String>, stack: Option<&str>) -> Vec<Event> {
    match message.filter(|_| !is_about_failures(at)) {
        Some(message) => failure_pair(event, (at.name(), "hook"), &message, stack),
        None => Vec::new(),
    }
}

fn is_about_failures(kind: EventKind) -> bool {
    matches!(kind, EventKind::Error | EventKind::Notification)
}

fn failure_pair(event: &Event, (operation, code): (&str, &str), message: &str, stack: Option<&str>) -> Vec<Event> {
    let common = || FAILURE_FIELDS.into_iter().filter_map(|name| Some((name, event.data.get(name)?.clone())));
    let with = |kind, own: [(&'static str, Value); 2]| super::timed(&Event::unchecked(kind, common().chain(own)));
    let mut error = json!({"message": message, "code": code});
    if let (Some(stack), Some(error)) = (stack, error.as_object_mut()) {
        error.insert("stack".to_owned(), stack.into());
    }
    vec![
        with(EventKind::Error, [("error", error), ("operation", operation.into())]),
        with(EventKind::Notification, [("message", message.into()), ("event_type", "error".into())]),
    ]
}
