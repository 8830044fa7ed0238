//! The answer to another agent: one event in its form, and the verdict in its form, whatever goes wrong.

use std::time::{Duration, Instant};

use ollm_app::AppContext;
use ollm_app::connect::{TEST_EVENT, asker_of, into_box, remember_fired};
use ollm_engine::Outcome;
use ollm_protocol::dialect::agent_named;
use ollm_protocol::event::Power;
use ollm_protocol::{Dialect, Event, EventKind, Request, Verdict};

use super::event::Unread;
use super::run::{Manner, dispatch};
use crate::arguments::hook::RunArguments;
use crate::error::Failure;
use crate::output::Output;

/// How we were asked.
pub(super) struct Asked<'a> {
    pub(super) arguments: &'a RunArguments,
    pub(super) manner: Manner<'a>,
    pub(super) started: Instant,
}

/// Answers an agent.
pub(super) fn answer(
    host: &'static dyn Dialect,
    request: Result<Request, Unread>,
    context: Result<&AppContext, Failure>,
    asked: &Asked<'_>,
    output: &mut Output,
) -> Result<u8, Failure> {
    output.silence();
    let (host, request, verdict) = match request {
        Ok(request) => {
            let agent = agent_named(host.name());
            // Who reads the settings of another agent asks in its name.
            let asker = context.as_ref().ok().zip(agent).map(|(context, agent)| (asker_of(agent, context), context));
            if let Some((asker, context)) = asker.filter(|_| request.event.text("eventName") != Some(TEST_EVENT)) {
                remember_fired(asker, context);
            }
            let number = agent.and_then(|agent| agent.number(&request));
            let manner = Manner {
                deadline: deadline(host, &request, asked.arguments.within, asked.started),
                number: number.or_else(|| asker?.0.number(&request)),
                deaf: agent.filter(|agent| !agent.hears_refusals(&request)).map(|agent| agent.title),
                ..asked.manner
            };
            let verdict = match context {
                Ok(context) => {
                    let files = agent.map(|agent| agent.file_events(&request)).unwrap_or_default();
                    // Nothing can be refused any more about a file that was changed.
                    let told = Manner { deaf: agent.map(|agent| agent.title), ..manner };
                    // What keeps an event from being judged is told of the call itself.
                    let told = files.iter().filter_map(|file| dispatch(file, told, context, output).ok());
                    let told = told.map(|outcome| report(outcome.verdict)).fold(Verdict::default(), Verdict::then);
                    let judged = dispatch(&request.event, manner, context, output);
                    let verdict =
                        judged.map_or_else(|failure| unjudged(&failure.message, output), |found| found.verdict);
                    let can_change = agent.is_some_and(|agent| agent.capabilities(&request).modify.is_possible());
                    told.then(match &context.program {
                        Some(program) if asked.arguments.in_box && can_change => {
                            into_box(&request.event, verdict, program)
                        }
                        _ => verdict,
                    })
                }
                Err(failure) => without_folder(&request.event, &failure, output).verdict,
            };
            (host, request, verdict)
        }
        Err(Unread::Usage(failure)) => return Err(failure),
        // A newer host may know events that we do not: no hook can be for them.
        Err(Unread::UnknownEvent(_)) => (host, nameless(), Verdict::default()),
        Err(Unread::Broken(why)) => {
            let request = named(asked.arguments.event.as_deref(), host);
            let verdict = not_judged(&request.event, &why, output);
            (host, request, verdict)
        }
        Err(Unread::Misdirected(found)) => {
            let verdict = not_judged(&found.request.event, &found.why, output);
            // Others have an event of this name, too; the way in which it is refused without one is the most common.
            let request = if verdict.flow.refuses() { nameless() } else { found.request };
            (found.sender as &dyn Dialect, request, verdict)
        }
    };
    let reply = host.write_verdict(&request, &verdict);
    output.reply(&reply)
}

/// When an agent has its answer: every one of them lets the operation go on when its own patience ends.
fn deadline(host: &dyn Dialect, request: &Request, within: Option<Duration>, started: Instant) -> Option<Instant> {
    let patience = within.or_else(|| agent_named(host.name())?.patience(request))?;
    Some(ends(patience, started))
}

/// When an answer is due that somebody waits for this long.
pub(super) fn ends(patience: Duration, started: Instant) -> Instant {
    let margin = (patience / 10).clamp(Duration::from_millis(250), Duration::from_secs(5));
    started + patience.saturating_sub(margin)
}

/// What cannot be judged is refused: hosts go on when a hook merely fails, and a model can garble an event.
fn unjudged(why: &str, output: &mut Output) -> Verdict {
    let reason = format!("ollm cannot judge this event: {why}");
    output.tell(&reason);
    Verdict::block(reason)
}

/// What is left of a verdict that comes too late to decide anything: its words.
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

/// Without a folder no hook can be found and no path be judged. What can still be stopped is stopped.
pub(super) fn without_folder(event: &Event, failure: &Failure, output: &mut Output) -> Outcome {
    let told =
        event.text("cwd").map_or_else(String::new, |cwd| format!(", nor is `{cwd}`, the folder of the event, one"));
    let why = format!("{}{told}", failure.message);
    Outcome::of(event.kind, not_judged(event, &why, output))
}

/// What holds something up is refused where it cannot be judged; of anything else a person is only told.
fn not_judged(event: &Event, why: &str, output: &mut Output) -> Verdict {
    let refusal = unjudged(why, output);
    if holds_up(event) { refusal } else { report(refusal) }
}

/// Whether something does not happen when this event is refused. At the end of a turn the agent would only go on, again and
/// again; an event of which nothing is known might be any.
fn holds_up(event: &Event) -> bool {
    let ends_turn = matches!(event.kind, EventKind::AfterAgent | EventKind::SubagentStop);
    event.kind.row().power == Power::Stops && !ends_turn
}

/// The event of which only the name is known, if it is.
fn named(name: Option<&str>, host: &dyn Dialect) -> Request {
    name.and_then(|name| host.read_event_named(name, b"{}").ok()).unwrap_or_else(nameless)
}

fn nameless() -> Request {
    Request::new(Event::new(EventKind::Custom, []))
}
