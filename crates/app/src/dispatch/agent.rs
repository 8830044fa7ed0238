//! Answers another agent. An event that cannot be judged is refused, because every agent goes on when a hook merely
//! fails.

use std::time::{Duration, Instant};

use ollm_engine::Outcome;
use ollm_process::after;
use ollm_protocol::dialect::{AgentDialect, agent_named};
use ollm_protocol::event::Power;
use ollm_protocol::{Dialect, Event, EventKind, Request, Verdict};

use super::news::{begins_session, news};
use super::{Deadline, DispatchOptions, Listener, dispatch};
use crate::app_context::AppContext;
use crate::connect::{TEST_EVENT, asker_of, into_box, number_of, remember_fired};
use crate::port::Notices;

/// The details of an agent's question.
#[derive(Clone, Copy, Debug)]
pub struct AgentQuestion<'a> {
    /// How long it waits, if its line says so.
    pub within: Option<Duration>,
    /// Whether shell commands are to run in a box.
    pub in_box: bool,
    /// The options of the dispatch.
    pub options: DispatchOptions<'a>,
    /// The time of the question.
    pub started: Instant,
}

/// The answer to an event of another agent than the named one.
pub fn misdirected(
    sender: &'static AgentDialect,
    request: Request,
    why: &str,
    notices: &mut dyn Notices,
) -> (&'static dyn Dialect, Request, Verdict) {
    let verdict = not_judged(&request.event, why, notices);
    // Other agents have an event with this name too. Without a name, the refusal takes the most common form.
    let request = if verdict.flow.refuses() { nameless() } else { request };
    (sender, request, verdict)
}

/// The answer of the hooks to an event that could be read.
pub fn judged(
    host: &'static dyn Dialect,
    request: &Request,
    context: &AppContext,
    asked: &AgentQuestion<'_>,
    notices: &mut dyn Notices,
) -> Verdict {
    let Some(agent) = agent_named(host.name()) else {
        return dispatched(request, asked.options, context, notices).0;
    };
    // An agent that reads another agent's settings asks in that agent's name.
    if request.event.text("eventName") != Some(TEST_EVENT) {
        remember_fired(asker_of(agent, context), context);
    }
    let patience = asked.within.or_else(|| agent.patience(request));
    let missed = patience.map(|patience| missed(agent, asked.within, patience)).unwrap_or_default();
    let due = patience.map(|patience| ends(patience, asked.started));
    let options = DispatchOptions {
        deadline: due.map(|due| Deadline { due, missed: &missed }),
        number: number_of(agent, request),
        listener: Some(Listener::Asking(agent, request)),
        ..asked.options
    };
    // The file has already changed, so nothing can be refused any more.
    let told = DispatchOptions { listener: Some(Listener::Finished(agent)), ..options };
    let files = agent.file_events(request);
    // The dispatch of the call itself reports why an event cannot be judged.
    let told = files.iter().filter_map(|file| dispatch(file, told, context, notices).ok());
    let told = told.map(|outcome| report(outcome.verdict)).fold(Verdict::default(), Verdict::then);
    let (mut verdict, outcome) = dispatched(request, options, context, notices);
    let can = agent.capabilities(request);
    // If nothing can be shown to the person, the model gets the message and can repeat it.
    let listener = match (can.message.is_possible(), can.context.is_possible()) {
        (true, _) => Some(&mut verdict.messages),
        (false, true) => Some(&mut verdict.context),
        (false, false) => None,
    };
    if let Some(listener) = listener.filter(|_| begins_session(agent, &request.event, context)) {
        listener.extend(news(&request.event, outcome.as_ref(), context));
    }
    let can_change = can.modify.is_possible();
    told.then(match &context.program {
        Some(program) if asked.in_box && can_change => into_box(&request.event, verdict, program),
        _ => verdict,
    })
}

/// The verdict about an event with its outcome, if the event could be judged.
fn dispatched(
    request: &Request,
    options: DispatchOptions<'_>,
    context: &AppContext,
    notices: &mut dyn Notices,
) -> (Verdict, Option<Outcome>) {
    match dispatch(&request.event, options, context, notices) {
        Ok(outcome) => (outcome.verdict.clone(), Some(outcome)),
        Err(error) => (not_judged(&request.event, &error.message, notices), None),
    }
}

/// The message about a hook that missed the deadline.
fn missed(agent: &AgentDialect, within: Option<Duration>, patience: Duration) -> String {
    let waits = format!("was still running when the answer was due: {} waits {patience:?}", agent.title);
    match within {
        Some(_) => format!("{waits}, as `--within` of its line says; raise that and the `timeout` beside it"),
        None => format!("{waits} at this event; have the hook do less, or make it `async`"),
    }
}

/// The deadline of an answer, if the agent waits this long.
pub fn ends(patience: Duration, started: Instant) -> Instant {
    let margin = (patience / 10).clamp(Duration::from_millis(250), Duration::from_secs(5));
    after(started, patience.saturating_sub(margin))
}

/// The refusal of an event that cannot be judged: hosts go on when a hook merely fails, and a model can garble an
/// event.
fn unjudged(why: &str, notices: &mut dyn Notices) -> Verdict {
    let reason = format!("ollm cannot judge this event: {why}");
    notices.tell(&reason);
    Verdict::block(reason)
}

/// The messages of a verdict that comes too late to decide anything.
fn report(late: Verdict) -> Verdict {
    let refusal = if late.flow.continues() { Vec::new() } else { late.reasons };
    Verdict {
        messages: refusal.into_iter().chain(late.messages).collect(),
        system_messages: late.system_messages,
        context: late.context,
        prompts: late.prompts,
        ..Verdict::default()
    }
}

/// The outcome without a folder: no hook can be found and no path can be judged. Events that can still be stopped are
/// refused.
pub fn without_folder(event: &Event, why: &str, notices: &mut dyn Notices) -> Outcome {
    let told =
        event.text("cwd").map_or_else(String::new, |cwd| format!(", nor is `{cwd}`, the folder of the event, one"));
    let why = format!("{why}{told}");
    Outcome::of(event.kind, not_judged(event, &why, notices))
}

/// The verdict about an event that cannot be judged: a refusal if it can stop something, otherwise a message to the
/// person.
pub fn not_judged(event: &Event, why: &str, notices: &mut dyn Notices) -> Verdict {
    let refusal = unjudged(why, notices);
    if holds_up(event) { refusal } else { report(refusal) }
}

/// Whether a refusal of this event prevents something. At the end of a turn the agent would only go on, again and
/// again. An unknown event counts as one that can be stopped.
fn holds_up(event: &Event) -> bool {
    let ends_turn = matches!(event.kind, EventKind::AfterAgent | EventKind::SubagentStop);
    event.kind.row().power == Power::Stops && !ends_turn
}

/// An event of which at most the name is known.
pub fn named(name: Option<&str>, host: &dyn Dialect) -> Request {
    name.and_then(|name| host.read_event_named(name, b"{}").ok()).unwrap_or_else(nameless)
}

/// An event of which nothing is known.
pub fn nameless() -> Request {
    Request::new(Event::unchecked(EventKind::Custom, []))
}
