//! `ollm hook run`: one event in, one verdict out. Other agents start this for every event.

use std::path::Path;
use std::time::{Instant, SystemTime};

use ollm_app::watch::FileNote;
use ollm_app::{App, AppContext, LoadOptions, Turn, trace, undeclared_today};
use ollm_catalog::Positions;
use ollm_engine::trace::iso;
use ollm_engine::{Outcome, Reason, Report};
use ollm_protocol::Event;
use ollm_protocol::dialect::{OLLM, agent_named};

use super::host::{self, Asked};
use super::{details, event};
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
            event::sent(name, host, patience.map(|patience| host::ends(patience, started)))
        }
        (None, Some(name)) => event::given(name, arguments.data.as_deref()),
        (None, None) => event::sent(None, OLLM, None),
    };
    let asked_by = arguments.from.and_then(|host| agent_named(host.name())).map(|agent| agent.name);
    let manner = Manner { explain: arguments.explain, asked_by, ..Manner::default() };
    let told = request.as_ref().ok().and_then(|request| request.event.text("cwd"));
    let context = context_in(told.map(Path::new));
    let Some(from) = arguments.from else {
        let request = request?;
        let outcome = match context {
            Ok(context) => dispatch(&request.event, manner, context, output)?,
            Err(failure) => host::without_folder(&request.event, &failure, output),
        };
        output.json(&super::to_json(&outcome))?;
        return Ok(if outcome.continues() { OK } else { BLOCKED });
    };
    host::answer(from, request, context, &Asked { arguments, manner, started }, output)
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
