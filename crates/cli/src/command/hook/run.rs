//! `ollm hook run`: one event in, one verdict out. Other agents start this for every event.

use std::path::Path;
use std::time::Instant;

use ollm_app::dispatch::agent::{AgentQuestion, ends, without_folder};
use ollm_app::dispatch::{DispatchOptions, dispatch};
use ollm_app::{AppContext, outcome, refuse_too_deep};
use ollm_protocol::dialect::{OLLM, agent_named};

use super::{event, host};
use crate::arguments::hook::RunArguments;
use crate::error::{BLOCKED, Failure, OK};
use crate::output::Output;

/// Runs the command. `context_in` finds our surroundings; if our working folder is gone, the event's own folder is
/// used.
pub(crate) fn run<'a>(
    arguments: &RunArguments,
    context_in: impl FnOnce(Option<&Path>) -> Result<&'a AppContext, Failure>,
    output: &mut Output,
) -> Result<u8, Failure> {
    let started = Instant::now();
    output.keep_to_lines();
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
    let options = DispatchOptions { explain: arguments.explain, asked_by, ..DispatchOptions::default() };
    let told = request.as_ref().ok().and_then(|request| request.event.text("cwd"));
    let context = context_in(told.map(Path::new));
    let Some(from) = arguments.from else {
        let request = request?;
        let outcome = match context {
            Ok(context) => {
                refuse_too_deep("the event is not sent", context)?;
                dispatch(&request.event, options, context, output)?
            }
            Err(failure) => without_folder(&request.event, &failure.message, output),
        };
        output.json(&outcome::to_json(&outcome))?;
        return Ok(if outcome.continues() { OK } else { BLOCKED });
    };
    let asked = AgentQuestion { within: arguments.within, in_box: arguments.in_box, options, started };
    host::answer(from, request, context, arguments.event.as_deref(), &asked, output)
}
