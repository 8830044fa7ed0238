//! Passes one event through the hooks of this user and project, from loading to the trace. For processes that are
//! started for one event.

use std::time::{Instant, SystemTime};

use ollm_catalog::Problem;
use ollm_engine::Outcome;
use ollm_protocol::dialect::AgentDialect;
use ollm_protocol::units::iso;
use ollm_protocol::{Event, Request, Verdict};

use crate::app::App;
use crate::app_context::AppContext;
use crate::calls::Turn;
use crate::error::AppError;
use crate::port::Notices;
use crate::trace;
use crate::undeclared::undeclared_today;
use crate::watch::FileNote;

pub(crate) use failures::failure_events;
pub use failures::{tell_late_failure, tell_server_failure};

pub mod agent;
mod failures;
mod news;
mod told;

/// Options of a dispatch.
#[derive(Clone, Copy, Debug, Default)]
pub struct DispatchOptions<'a> {
    /// Whether the outcome also lists the hooks that do not fit.
    pub explain: bool,
    /// The agent that asks.
    pub asked_by: Option<&'static str>,
    /// The deadline at which running hooks are ended and their failure policies decide.
    pub deadline: Option<Deadline<'a>>,
    /// Identifies the event in its session. If another process decides about the same event, this one gives the same
    /// answer.
    pub number: Option<&'a str>,
    /// The agent that receives the verdict, if it is not our own.
    pub listener: Option<Listener<'a>>,
}

/// The deadline of an answer.
#[derive(Clone, Copy, Debug)]
pub struct Deadline<'a> {
    /// When it is due.
    pub due: Instant,
    /// The message about a hook that missed the deadline.
    pub missed: &'a str,
}

/// The agent that receives a verdict.
#[derive(Clone, Copy, Debug)]
pub enum Listener<'a> {
    /// The agent that sent this event.
    Asking(&'static AgentDialect, &'a Request),
    /// An agent that has already done what the verdict is about.
    Finished(&'static AgentDialect),
}

impl Listener<'_> {
    /// The part of a verdict that does not reach the agent.
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

/// Passes an event through the hooks of this user and project, and tells the person what they should know.
pub fn dispatch(
    event: &Event,
    options: DispatchOptions<'_>,
    context: &AppContext,
    notices: &mut dyn Notices,
) -> Result<Outcome, AppError> {
    let asked_by = options.asked_by;
    let app = if options.explain {
        App::load_to_explain(context, event, asked_by)
    } else {
        App::load_for(context, event, asked_by)
    };
    Ok(through(app?, event, options, context, notices))
}

/// Passes an event through the hooks of an application that is not needed afterwards.
pub fn through(
    app: App,
    event: &Event,
    options: DispatchOptions<'_>,
    context: &AppContext,
    notices: &mut dyn Notices,
) -> Outcome {
    context.tell_notices(notices);
    app.tell_problems(notices);
    told::tell_files(&app, context, notices);
    let timed = timed(event);
    let turn = match options {
        DispatchOptions { number: Some(number), explain: false, deadline, .. } => {
            app.turn(&timed, number, deadline.map(|deadline| deadline.due))
        }
        _ => Turn::Alone,
    };
    // From here on, a request to end waits until the hooks and their leftover processes have ended.
    let children = app.engine.children();
    children.end_soon();
    let hold = children.hold_signals();
    // With this note, a program that watches the project does not tell hooks of the same change again.
    let note = FileNote::begin(&timed, context);
    let is_ours = !options.explain && !matches!(turn, Turn::Decided(_));
    let mut outcome = match (turn, options) {
        (Turn::Decided(outcome), _) => *outcome,
        (_, DispatchOptions { explain: true, .. }) => app.dispatch_explained(&timed),
        (turn, DispatchOptions { deadline, .. }) => {
            let outcome = match deadline {
                Some(Deadline { due, missed }) => app.dispatch_by(&timed, due, missed),
                None => app.dispatch(&timed),
            };
            turn.share(&outcome);
            outcome
        }
    };
    drop(note);
    outcome.unheard = options.listener.and_then(|listener| listener.unheard(&outcome.verdict));
    // After a guard's refusal, nothing of the project is read, not even its folders.
    outcome.notes = if app.has_unread() { Vec::new() } else { undeclared_today(context) };
    outcome.notes.iter().for_each(|note| notices.tell(note));
    // These problems were already told when the files were read.
    outcome.notes.splice(0..0, app.problems.iter().map(Problem::to_string));
    if let Some(mcp_tools) = &app.mcp_tools {
        mcp_tools.close(notices);
    }
    children.kill_adopted();
    trace::leave(&app, event, &outcome, notices);
    drop(hold);
    app.engine.trust.remember();
    told::tell(event, &outcome, context, notices);
    if is_ours && !app.has_unread() {
        failures::tell_failures(event, &outcome, options.deadline, context, notices);
    }
    // Our children's guard process ends when we end; an orderly shutdown would only delay the host.
    std::mem::forget(app);
    outcome
}

/// The event with its time of arrival, unless its host says when it happened.
fn timed(event: &Event) -> Event {
    let mut event = event.clone();
    event.data.entry("timestamp").or_insert_with(|| iso(SystemTime::now()).into());
    event
}
