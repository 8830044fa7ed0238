//! The answer to another agent: one event in its form, and the verdict in its form, whatever goes wrong.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use ollm_app::connect::{TEST_EVENT, asker_of, into_box, number_of, remember_fired};
use ollm_app::trace::{self, FailingHook};
use ollm_app::{App, AppContext};
use ollm_catalog::Positions;
use ollm_engine::{Outcome, Report};
use ollm_protocol::dialect::agents::sender_of;
use ollm_protocol::dialect::{AGENT, AgentDialect, agent_named, by_name};
use ollm_protocol::event::Power;
use ollm_protocol::{Dialect, Event, EventKind, Request, Verdict};
use ollm_store::{Redactor, cut, one_line};

use super::event::{self, Unread};
use super::run::{Deadline, Listener, Manner, dispatch, not_run};
use crate::arguments::hook::RunArguments;
use crate::error::Failure;
use crate::output::Output;

/// More lines are only counted when a session begins.
const MOST_NEWS: usize = 10;
/// Longer lines are cut then.
const LONGEST_NEWS: usize = 500;

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
    let (host, request, verdict) = match (request, context) {
        (Ok(request), Ok(context)) => {
            let verdict = judged(host, &request, context, asked, output);
            (host, request, verdict)
        }
        (Ok(request), Err(failure)) => {
            let verdict = without_folder(&request.event, &failure, output).verdict;
            (host, request, verdict)
        }
        (Err(Unread::Usage(failure)), _) => return Err(failure),
        // A newer host may know events that we do not: no hook can be for them.
        (Err(Unread::UnknownEvent(_)), _) => (host, nameless(), Verdict::default()),
        (Err(Unread::Broken(why)), _) => {
            let request = named(asked.arguments.event.as_deref(), host);
            let verdict = not_judged(&request.event, &why, output);
            (host, request, verdict)
        }
        (Err(Unread::Misdirected(found)), _) => misdirected(found.sender, found.request, &found.why, output),
    };
    let reply = host.write_verdict(&request, &verdict);
    output.reply(&reply)
}

/// Answers an agent whose line makes no sense, in its form: every agent goes on when a hook merely fails. Where nobody sent an
/// event, or no agent is named, the failure stays one.
pub(crate) fn misused(words: &[OsString], failure: Failure, output: &mut Output) -> Result<u8, Failure> {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let Some(from) = from(&words).filter(|_| !std::io::stdin().is_terminal()) else { return Err(failure) };
    let agent = agent_named(from);
    let is_event = |word: &&str| agent.is_some_and(|agent| agent.events.iter().any(|event| event.name == *word));
    let event = words.iter().copied().find(is_event);
    let patience = agent.and_then(|agent| agent.patience_at(event));
    let due = patience.map(|patience| ends(patience, Instant::now()));
    let Some(received) = event::received_or_nothing(due) else { return Err(failure) };
    output.silence();
    let why = format!("the line that asks makes no sense: {}", failure.message);
    let (host, request, verdict) = match by_name(from) {
        Some(host) => {
            let read = received.ok().and_then(|bytes| match event {
                Some(event) => host.read_event_named(event, &bytes).ok(),
                None => host.read_event(&bytes).ok(),
            });
            let request = read.unwrap_or_else(|| named(event, host));
            let verdict = not_judged(&request.event, &why, output);
            (host, request, verdict)
        }
        None => match received.ok().and_then(|bytes| sender_of(&bytes)) {
            Some((sender, request)) => misdirected(sender, request, &why, output),
            None => (AGENT, nameless(), not_judged(&nameless().event, &why, output)),
        },
    };
    let reply = host.write_verdict(&request, &verdict);
    output.reply(&reply)
}

/// The agent that a call of `hook run` names.
fn from<'w>(words: &[&'w str]) -> Option<&'w str> {
    let hook = words.iter().position(|word| *word == "hook")?;
    let mut words = words.iter().skip(hook + 1).filter(|word| !matches!(**word, "-v" | "--verbose"));
    words.next().filter(|word| **word == "run")?;
    let named = words.by_ref().find_map(|word| word.strip_prefix("--from"))?;
    match named.strip_prefix('=') {
        Some(name) => Some(name),
        None => Some(words.next().copied().unwrap_or_default()),
    }
}

/// The answer to an event of another agent than the one that was named.
fn misdirected(
    sender: &'static AgentDialect,
    request: Request,
    why: &str,
    output: &mut Output,
) -> (&'static dyn Dialect, Request, Verdict) {
    let verdict = not_judged(&request.event, why, output);
    // Others have an event of this name, too; the way in which it is refused without one is the most common.
    let request = if verdict.flow.refuses() { nameless() } else { request };
    (sender, request, verdict)
}

/// What the hooks say to an event that could be read.
fn judged(
    host: &'static dyn Dialect,
    request: &Request,
    context: &AppContext,
    asked: &Asked<'_>,
    output: &mut Output,
) -> Verdict {
    let Some(agent) = agent_named(host.name()) else {
        return dispatched(request, asked.manner, context, output).0;
    };
    // Who reads the settings of another agent asks in its name.
    if request.event.text("eventName") != Some(TEST_EVENT) {
        remember_fired(asker_of(agent, context), context);
    }
    let patience = asked.arguments.within.or_else(|| agent.patience(request));
    let missed = patience.map(|patience| missed(agent, asked.arguments.within, patience)).unwrap_or_default();
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
    let told = files.iter().filter_map(|file| dispatch(file, told, context, output).ok());
    let told = told.map(|outcome| report(outcome.verdict)).fold(Verdict::default(), Verdict::then);
    let (mut verdict, outcome) = dispatched(request, manner, context, output);
    // A session that only became shorter was told before.
    let begins = request.event.kind == EventKind::SessionStart && request.event.text("source") != Some("compact");
    if begins && agent.capabilities(request).message.is_possible() {
        verdict.messages.extend(news(&request.event, outcome.as_ref(), context));
    }
    let can_change = agent.capabilities(request).modify.is_possible();
    told.then(match &context.program {
        Some(program) if asked.arguments.in_box && can_change => into_box(&request.event, verdict, program),
        _ => verdict,
    })
}

/// The verdict about an event, and all that is known about it, if it could be judged.
fn dispatched(
    request: &Request,
    manner: Manner<'_>,
    context: &AppContext,
    output: &mut Output,
) -> (Verdict, Option<Outcome>) {
    match dispatch(&request.event, manner, context, output) {
        Ok(outcome) => (outcome.verdict.clone(), Some(outcome)),
        Err(failure) => (not_judged(&request.event, &failure.message, output), None),
    }
}

/// What the person who begins a session should know, as far as the agent shows it nowhere else: files that cannot be read, and
/// hooks that do not run or failed.
fn news(event: &Event, outcome: Option<&Outcome>, context: &AppContext) -> Vec<String> {
    let Some(outcome) = outcome else { return Vec::new() };
    let own = outcome.reports.iter().filter_map(Report::failure);
    let ran = |failing: &FailingHook| outcome.reports.iter().any(|report| report.hook.id() == failing.id);
    let app = App::load(context, Positions::OnDemand).ok();
    let earlier = app.iter().flat_map(|app| {
        let failing = trace::failing(app).into_iter().filter(|failing| !ran(failing));
        failing.map(|failing| failing.line(app)).collect::<Vec<_>>()
    });
    let mut news: Vec<String> =
        outcome.notes.iter().cloned().chain(not_run(event, outcome)).chain(own).chain(earlier).collect();
    if let Some(more) = news.len().checked_sub(MOST_NEWS).filter(|more| *more > 0) {
        news.truncate(MOST_NEWS);
        news.push(format!("{more} more lines; `ollm doctor` shows what is wrong"));
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
