//! `ollm hook run`: one event in, one verdict out. Other agents start this for every event.

use std::path::Path;
use std::time::{Instant, SystemTime};

use ollm_app::watch::FileNote;
use ollm_app::{App, AppContext, LoadOptions, Turn, trace, undeclared_today};
use ollm_catalog::{Positions, Problem};
use ollm_engine::trace::iso;
use ollm_engine::{Outcome, Reason, Report};
use ollm_protocol::dialect::{AgentDialect, OLLM, agent_named};
use ollm_protocol::{Event, Request, Verdict};

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
    pub(crate) deadline: Option<Deadline<'a>>,
    /// What tells the event apart from others of its session: one that another process decides about gets the same answer.
    pub(crate) number: Option<&'a str>,
    /// Who hears the verdict, where that is another agent.
    pub(crate) listener: Option<Listener<'a>>,
}

/// When an answer is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline<'a> {
    pub(crate) due: Instant,
    /// What is said of a hook that was not done by then.
    pub(crate) missed: &'a str,
}

/// Who hears a verdict.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Listener<'a> {
    /// The agent that sent this event.
    Asking(&'static AgentDialect, &'a Request),
    /// An agent that did already what the verdict is about.
    Finished(&'static AgentDialect),
}

impl Listener<'_> {
    /// What of a verdict does not reach the agent.
    fn unheard(self, verdict: &Verdict) -> Option<String> {
        match self {
            Listener::Asking(agent, request) => agent.unheard(request, verdict),
            Listener::Finished(agent) => {
                let refused = !verdict.flow.continues();
                refused.then(|| format!("{} cannot be told of a refusal at this event, and went on", agent.title))
            }
        }
    }
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
        Manner { number: Some(number), explain: false, deadline, .. } => {
            app.turn(&timed, number, deadline.map(|deadline| deadline.due))
        }
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
                Some(Deadline { due, missed }) => app.dispatch_by(&timed, due, missed),
                None => app.dispatch(&timed),
            };
            turn.share(&outcome);
            outcome
        }
    };
    drop(note);
    outcome.unheard = manner.listener.and_then(|listener| listener.unheard(&outcome.verdict));
    outcome.notes = undeclared_today(context);
    outcome.notes.iter().for_each(|note| output.tell(note));
    // These were told when the files were read.
    outcome.notes.splice(0..0, app.problems.iter().map(Problem::to_string));
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
    for line in not_run(event, outcome) {
        output.tell(&line);
    }
    for failure in outcome.reports.iter().filter_map(Report::failure) {
        output.tell_failure(&failure);
    }
}

/// Which hooks did not run although a person may expect it, one line each.
pub(super) fn not_run(event: &Event, outcome: &Outcome) -> Vec<String> {
    unmatched(event, outcome).into_iter().chain(skipped(outcome)).collect()
}

/// Hooks that a person may want to run.
fn skipped(outcome: &Outcome) -> Vec<String> {
    let concerns = |reason| matches!(reason, Reason::Untrusted | Reason::Modified | Reason::Unsafe | Reason::Missing);
    let skipped: Vec<_> = outcome.skipped.iter().filter(|skip| concerns(skip.reason)).collect();
    let shown = skipped.iter().take(MOST_LINES);
    let shown = shown.map(|skip| format!("{} did not run: {}", skip.hook.spec.title(), skip.detail));
    let more = skipped.len().checked_sub(MOST_LINES).filter(|more| *more > 0);
    let more = more.map(|more| format!("{more} more hooks did not run; `ollm hook list` shows why"));
    shown.chain(more).collect()
}

/// An event that does not say what it is about: which hooks cannot tell whether they are for it.
fn unmatched(event: &Event, outcome: &Outcome) -> Option<String> {
    let field = event.missing_subject()?;
    let unmatched = outcome.skipped.iter().filter(|skip| skip.reason == Reason::Matcher);
    let labels: Vec<String> = unmatched.map(|skip| skip.hook.spec.label()).collect();
    let lacks = format!("the {} event has no `{field}`", event.kind.name());
    let (shown, more) = labels.split_at(MOST_LINES.min(labels.len()));
    match more.len() {
        0 if !shown.is_empty() => Some(format!("{lacks}, so these hooks did not run: {}", shown.join(", "))),
        0 if event.kind.is_tool_call() => Some(format!("{lacks}, so nothing that depends on the tool was judged")),
        0 => None,
        more => Some(format!("{lacks}, so these hooks did not run: {} and {more} more", shown.join(", "))),
    }
}
