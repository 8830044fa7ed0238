//! The answer to another agent: what cannot be judged is refused, because every agent goes on when a hook merely fails.

use std::time::{Duration, Instant};

use ollm_engine::{Outcome, Report};
use ollm_process::after;
use ollm_protocol::dialect::{AgentDialect, agent_named};
use ollm_protocol::event::Power;
use ollm_protocol::{Dialect, Event, EventKind, Remedy, Request, Verdict};
use ollm_store::{Redactor, cut, one_line};

use super::told::not_run;
use super::{Deadline, Listener, Manner, dispatch};
use crate::app::App;
use crate::app_context::AppContext;
use crate::connect::{TEST_EVENT, asker_of, into_box, number_of, remember_fired};
use crate::port::Notices;
use crate::trace::{self, FailingHook};

/// More lines are only counted when a session begins.
const MOST_NEWS: usize = 10;
/// Longer lines are cut then.
const LONGEST_NEWS: usize = 500;

/// How an agent asks.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// How long it waits, where its line says so.
    pub within: Option<Duration>,
    /// Whether shell commands are to run in a box.
    pub in_box: bool,
    /// What else is known.
    pub manner: Manner<'a>,
    /// When it asked.
    pub started: Instant,
}

/// The answer to an event of another agent than the one that was named.
pub fn misdirected(
    sender: &'static AgentDialect,
    request: Request,
    why: &str,
    notices: &mut dyn Notices,
) -> (&'static dyn Dialect, Request, Verdict) {
    let verdict = not_judged(&request.event, why, notices);
    // Others have an event of this name, too; the way in which it is refused without one is the most common.
    let request = if verdict.flow.refuses() { nameless() } else { request };
    (sender, request, verdict)
}

/// What the hooks say to an event that could be read.
pub fn judged(
    host: &'static dyn Dialect,
    request: &Request,
    context: &AppContext,
    asked: &Asked<'_>,
    notices: &mut dyn Notices,
) -> Verdict {
    let Some(agent) = agent_named(host.name()) else {
        return dispatched(request, asked.manner, context, notices).0;
    };
    // Who reads the settings of another agent asks in its name.
    if request.event.text("eventName") != Some(TEST_EVENT) {
        remember_fired(asker_of(agent, context), context);
    }
    let patience = asked.within.or_else(|| agent.patience(request));
    let missed = patience.map(|patience| missed(agent, asked.within, patience)).unwrap_or_default();
    let due = patience.map(|patience| ends(patience, asked.started));
    let manner = Manner {
        deadline: due.map(|due| Deadline { due, missed: &missed }),
        number: number_of(agent, request),
        listener: Some(Listener::Asking(agent, request)),
        ..asked.manner
    };
    // Nothing can be refused any more about a file that was changed.
    let told = Manner { listener: Some(Listener::Finished(agent)), ..manner };
    let files = agent.file_events(request);
    // What keeps an event from being judged is told of the call itself.
    let told = files.iter().filter_map(|file| dispatch(file, told, context, notices).ok());
    let told = told.map(|outcome| report(outcome.verdict)).fold(Verdict::default(), Verdict::then);
    let (mut verdict, outcome) = dispatched(request, manner, context, notices);
    // A session that only became shorter was told before.
    let begins = request.event.kind == EventKind::SessionStart && request.event.text("source") != Some("compact");
    let can = agent.capabilities(request);
    // Where nothing can be shown to the person, the model hears it and can say it.
    let listener = match (can.message.is_possible(), can.context.is_possible()) {
        (true, _) => Some(&mut verdict.messages),
        (false, true) => Some(&mut verdict.context),
        (false, false) => None,
    };
    if let Some(listener) = listener.filter(|_| begins) {
        listener.extend(news(&request.event, outcome.as_ref(), context));
    }
    let can_change = can.modify.is_possible();
    told.then(match &context.program {
        Some(program) if asked.in_box && can_change => into_box(&request.event, verdict, program),
        _ => verdict,
    })
}

/// The verdict about an event, and all that is known about it, if it could be judged.
fn dispatched(
    request: &Request,
    manner: Manner<'_>,
    context: &AppContext,
    notices: &mut dyn Notices,
) -> (Verdict, Option<Outcome>) {
    match dispatch(&request.event, manner, context, notices) {
        Ok(outcome) => (outcome.verdict.clone(), Some(outcome)),
        Err(error) => (not_judged(&request.event, &error.message, notices), None),
    }
}

/// What the person who begins a session should know, as far as the agent shows it nowhere else: files that cannot be read, and
/// hooks that do not run or failed.
fn news(event: &Event, outcome: Option<&Outcome>, context: &AppContext) -> Vec<String> {
    let Some(outcome) = outcome else { return Vec::new() };
    let own = outcome.reports.iter().filter_map(Report::failure);
    let ran = |failing: &FailingHook| outcome.reports.iter().any(|report| report.hook.id() == failing.id);
    let app = App::load(context).ok();
    let earlier = app.iter().flat_map(|app| {
        let failing = trace::failing(app).into_iter().filter(|failing| !ran(failing));
        failing.map(|failing| failing.line(app)).collect::<Vec<_>>()
    });
    let mut news: Vec<String> =
        outcome.notes.iter().cloned().chain(not_run(event, outcome, context)).chain(own).chain(earlier).collect();
    if let Some(more) = news.len().checked_sub(MOST_NEWS).filter(|more| *more > 0) {
        news.truncate(MOST_NEWS);
        news.push(format!("{more} more lines; {}", context.tell(&Remedy::FindFaults)));
    }
    let redactor = Redactor::new(context.secrets());
    let shown = |line: &String| format!("ollm: {}", cut(&one_line(&redactor.redact_str(line)), LONGEST_NEWS));
    news.iter().map(shown).collect()
}

/// What is said of a hook that was not done when the answer was due.
fn missed(agent: &AgentDialect, within: Option<Duration>, patience: Duration) -> String {
    let waits = format!("was still running when the answer was due: {} waits {patience:?}", agent.title);
    match within {
        Some(_) => format!("{waits}, as `--within` of its line says; raise that and the `timeout` beside it"),
        None => format!("{waits} at this event; have the hook do less, or make it `async`"),
    }
}

/// When an answer is due that somebody waits for this long.
pub fn ends(patience: Duration, started: Instant) -> Instant {
    let margin = (patience / 10).clamp(Duration::from_millis(250), Duration::from_secs(5));
    after(started, patience.saturating_sub(margin))
}

/// What cannot be judged is refused: hosts go on when a hook merely fails, and a model can garble an event.
fn unjudged(why: &str, notices: &mut dyn Notices) -> Verdict {
    let reason = format!("ollm cannot judge this event: {why}");
    notices.tell(&reason);
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
pub fn without_folder(event: &Event, why: &str, notices: &mut dyn Notices) -> Outcome {
    let told =
        event.text("cwd").map_or_else(String::new, |cwd| format!(", nor is `{cwd}`, the folder of the event, one"));
    let why = format!("{why}{told}");
    Outcome::of(event.kind, not_judged(event, &why, notices))
}

/// What holds something up is refused where it cannot be judged; of anything else a person is only told.
pub fn not_judged(event: &Event, why: &str, notices: &mut dyn Notices) -> Verdict {
    let refusal = unjudged(why, notices);
    if holds_up(event) { refusal } else { report(refusal) }
}

/// Whether something does not happen when this event is refused. At the end of a turn the agent would only go on, again and
/// again; an event of which nothing is known might be any.
fn holds_up(event: &Event) -> bool {
    let ends_turn = matches!(event.kind, EventKind::AfterAgent | EventKind::SubagentStop);
    event.kind.row().power == Power::Stops && !ends_turn
}

/// The event of which only the name is known, if it is.
pub fn named(name: Option<&str>, host: &dyn Dialect) -> Request {
    name.and_then(|name| host.read_event_named(name, b"{}").ok()).unwrap_or_else(nameless)
}

/// An event of which nothing is known.
pub fn nameless() -> Request {
    Request::new(Event::unchecked(EventKind::Custom, []))
}
