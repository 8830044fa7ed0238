//! One event through the hooks of this user and project, from loading to the trace: for whoever is started for it.

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

pub mod agent;
mod told;

/// How an event is passed through the hooks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner<'a> {
    /// The outcome lists also the hooks that do not fit.
    pub explain: bool,
    /// The agent that asks.
    pub asked_by: Option<&'static str>,
    /// When the hooks that still run are ended, and their failure policies decide.
    pub deadline: Option<Deadline<'a>>,
    /// What tells the event apart from others of its session: one that another process decides about gets the same answer.
    pub number: Option<&'a str>,
    /// Who hears the verdict, where that is another agent.
    pub listener: Option<Listener<'a>>,
}

/// When an answer is due.
#[derive(Clone, Copy, Debug)]
pub struct Deadline<'a> {
    /// When it is due.
    pub due: Instant,
    /// What is said of a hook that was not done by then.
    pub missed: &'a str,
}

/// Who hears a verdict.
#[derive(Clone, Copy, Debug)]
pub enum Listener<'a> {
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

/// Passes an event through the hooks of this user and project, and tells the person what they should know.
pub fn dispatch(
    event: &Event,
    manner: Manner<'_>,
    context: &AppContext,
    notices: &mut dyn Notices,
) -> Result<Outcome, AppError> {
    let asked_by = manner.asked_by;
    let app = if manner.explain {
        App::load_to_explain(context, event, asked_by)
    } else {
        App::load_for(context, event, asked_by)
    };
    Ok(through(app?, event, manner, context, notices))
}

/// Passes an event through the hooks of an engine that is not needed any more.
pub fn through(
    app: App,
    event: &Event,
    manner: Manner<'_>,
    context: &AppContext,
    notices: &mut dyn Notices,
) -> Outcome {
    context.tell_notices(notices);
    app.tell_problems(notices);
    told::tell_files(&app, context, notices);
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
    // After the refusal of a guard nothing of the project is read, its folders neither.
    outcome.notes = if app.has_unread() { Vec::new() } else { undeclared_today(context) };
    outcome.notes.iter().for_each(|note| notices.tell(note));
    // These were told when the files were read.
    outcome.notes.splice(0..0, app.problems.iter().map(Problem::to_string));
    if let Some(mcp_tools) = &app.mcp_tools {
        mcp_tools.close(notices);
    }
    children.kill_adopted();
    trace::leave(&app, event, &outcome, notices);
    drop(hold);
    app.engine.trust.remember();
    told::tell(event, &outcome, context, notices);
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
