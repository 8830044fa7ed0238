//! `ollm hook run`: one event in, one verdict out. Other agents start this for every event.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use ollm_app::connect::{TEST_EVENT, asker_of, into_box, remember_fired};
use ollm_app::watch::FileNote;
use ollm_app::{App, AppContext, LoadOptions, Turn, trace, undeclared_today};
use ollm_catalog::Positions;
use ollm_engine::trace::iso;
use ollm_engine::{Outcome, Reason, Report};
use ollm_protocol::dialect::{OLLM, agent_named};
use ollm_protocol::event::Power;
use ollm_protocol::{Dialect, Event, EventKind, Request, Verdict};

use super::details;
use super::event::{self, Unread};
use crate::arguments::hook::RunArguments;
use crate::error::{BLOCKED, Failure, OK};
use crate::output::Output;

/// More hooks that did not run are only counted.
const MOST_LINES: usize = 20;

/// How an event is passed through the hooks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner<'a> {
    /// The outcome lists also the hooks that do not fit.
    pub(crate) explain: bool,
    /// The agent that asks.
    pub(crate) asked_by: Option<&'static str>,
    /// When the hooks that still run are ended, and their failure policies decide.
    pub(crate) deadline: Option<Instant>,
    /// What tells the event apart from others of its session: one that another process decides about gets the same answer.
    pub(crate) number: Option<&'a str>,
    /// The agent that asks, where it cannot be told of a refusal at this event.
    pub(crate) deaf: Option<&'static str>,
}

/// `context_in` finds our surroundings; where the folder that we were started in is gone, the event's own folder counts.
pub(crate) fn run<'a>(
    arguments: &RunArguments,
    context_in: impl FnOnce(Option<&Path>) -> Result<&'a AppContext, Failure>,
    output: &mut Output,
) -> Result<u8, Failure> {
    let started = Instant::now();
    let request = match (arguments.from, arguments.event.as_deref()) {
        (Some(host), Some(_)) if agent_named(host.name()).is_none() => {
            let message = format!("events of `{}` say themselves what they are; leave out the name", host.name());
            return Err(Failure::usage(message));
        }
        (Some(host), name) => {
            let agent = agent_named(host.name());
            // Before it is read, only its name says how long the agent waits, if it is told.
            let patience = arguments.within.or_else(|| agent?.patience_at(name));
            event::sent(name, host, patience.map(|patience| ends(patience, started)))
        }
        (None, Some(name)) => event::given(name, arguments.data.as_deref()),
        (None, None) => event::sent(None, OLLM, None),
    };
    let asked_by = arguments.from.and_then(|host| agent_named(host.name())).map(|agent| agent.name);
    let manner = Manner { explain: arguments.explain, asked_by, ..Manner::default() };
    let told = request.as_ref().ok().and_then(|request| request.event.text("cwd"));
    let context = context_in(told.map(Path::new));
    let Some(host) = arguments.from else {
        let request = request?;
        let outcome = match context {
            Ok(context) => dispatch(&request.event, manner, context, output)?,
            Err(failure) => without_folder(&request.event, &failure, output),
        };
        output.json(&super::to_json(&outcome))?;
        return Ok(if outcome.continues() { OK } else { BLOCKED });
    };
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
                deadline: deadline(host, &request, arguments.within, started),
                number: number.or_else(|| asker?.0.number(&request)),
                deaf: agent.filter(|agent| !agent.hears_refusals(&request)).map(|agent| agent.title),
                ..manner
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
                        Some(program) if arguments.in_box && can_change => into_box(&request.event, verdict, program),
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
            let request = named(arguments.event.as_deref(), host);
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
fn ends(patience: Duration, started: Instant) -> Instant {
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
fn without_folder(event: &Event, failure: &Failure, output: &mut Output) -> Outcome {
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

/// Passes an event through the hooks of this user and project, and tells the person what they should know.
pub(crate) fn dispatch(
    event: &Event,
    manner: Manner<'_>,
    context: &AppContext,
    output: &mut Output,
) -> Result<Outcome, Failure> {
    let asked_by = manner.asked_by;
    let app = if manner.explain {
        let mut options = LoadOptions::short(context);
        options.asked_by = asked_by;
        App::load_with(context, Positions::OnDemand, options)
    } else {
        App::load_for(context, event, asked_by)
    };
    Ok(through(app?, event, manner, context, output))
}

/// Passes an event through the hooks of an engine that is not needed any more.
pub(super) fn through(
    app: App,
    event: &Event,
    manner: Manner<'_>,
    context: &AppContext,
    output: &mut Output,
) -> Outcome {
    context.tell_notices(output);
    app.tell_problems(output);
    details::tell_files(&app, context, output);
    let timed = timed(event);
    let turn = match manner {
        Manner { number: Some(number), explain: false, deadline, .. } => app.turn(&timed, number, deadline),
        _ => Turn::Alone,
    };
    // Whoever asks us to end from now on waits until the hooks and what they left have ended.
    let children = app.engine.children();
    children.end_soon();
    let hold = children.hold_signals();
    // Who watches the project does not tell hooks of the same change again.
    let note = FileNote::begin(&timed, context);
    let mut outcome = match (turn, manner) {
        (Turn::Decided(outcome), _) => *outcome,
        (_, Manner { explain: true, .. }) => app.dispatch_explained(&timed),
        (turn, Manner { deadline, .. }) => {
            let outcome = match deadline {
                Some(deadline) => app.dispatch_until(&timed, &|| Instant::now() >= deadline),
                None => app.dispatch(&timed),
            };
            turn.share(&outcome);
            outcome
        }
    };
    drop(note);
    outcome.unheard = manner
        .deaf
        .filter(|_| !outcome.continues())
        .map(|agent| format!("{agent} cannot be told of a refusal at this event, and went on"));
    outcome.notes = undeclared_today(context);
    outcome.notes.iter().for_each(|note| output.tell(note));
    if let Some(mcp_tools) = &app.mcp_tools {
        mcp_tools.close(output);
    }
    children.kill_adopted();
    trace::leave(&app, event, &outcome, output);
    drop(hold);
    app.engine.trust.remember();
    tell(event, &outcome, output);
    details::tell(&outcome, output);
    // The guard of our children ends by itself when we do; taking everything down in order would only hold up the host.
    std::mem::forget(app);
    outcome
}

/// The same event with the time it came to us, where its host does not say when it happened.
fn timed(event: &Event) -> Event {
    let mut event = event.clone();
    event.data.entry("timestamp").or_insert_with(|| iso(SystemTime::now()).into());
    event
}

/// What a person should know about the run, one line each.
fn tell(event: &Event, outcome: &Outcome, output: &mut Output) {
    tell_unmatched(event, outcome, output);
    let concerns = |reason| matches!(reason, Reason::Untrusted | Reason::Modified | Reason::Unsafe | Reason::Missing);
    let skipped: Vec<_> = outcome.skipped.iter().filter(|skip| concerns(skip.reason)).collect();
    for skip in skipped.iter().take(MOST_LINES) {
        output.tell(&format!("{} did not run: {}", skip.hook.spec.title(), skip.detail));
    }
    if let Some(more) = skipped.len().checked_sub(MOST_LINES).filter(|more| *more > 0) {
        output.tell(&format!("{more} more hooks did not run; `ollm hook list` shows why"));
    }
    for failure in outcome.reports.iter().filter_map(Report::failure) {
        output.tell_failure(&failure);
    }
}

/// An event that does not say what it is about: which hooks cannot tell whether they are for it.
fn tell_unmatched(event: &Event, outcome: &Outcome, output: &mut Output) {
    let Some(field) = event.missing_subject() else { return };
    let unmatched = outcome.skipped.iter().filter(|skip| skip.reason == Reason::Matcher);
    let labels: Vec<String> = unmatched.map(|skip| skip.hook.spec.label()).collect();
    let lacks = format!("the {} event has no `{field}`", event.kind.name());
    let (shown, more) = labels.split_at(MOST_LINES.min(labels.len()));
    match more.len() {
        0 if !shown.is_empty() => {
            output.tell(&format!("{lacks}, so these hooks did not run: {}", shown.join(", ")));
        }
        0 if event.kind.is_tool_call() => {
            output.tell(&format!("{lacks}, so nothing that depends on the tool was judged"));
        }
        0 => {}
        more => output.tell(&format!("{lacks}, so these hooks did not run: {} and {more} more", shown.join(", "))),
    }
}
