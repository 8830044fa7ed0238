//! `ollm mcp call`: one tool, called once.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use ollm_mcp::{
    Call, CallError, LARGEST_RESULT, Offers, Progress, Spill, Taken, bound_result, show_result, split, write_result,
};
use ollm_protocol::units;

use super::{object, read_input, unanswered, with_server};
use crate::arguments::mcp::CallArguments;
use crate::error::{FINDING, Failure, OK};
use crate::output::Output;
use crate::servers::{Known, Live, Servers, taken, told};
use crate::world::World;

pub(super) fn run(arguments: &CallArguments, world: &World, output: &mut Output) -> Result<u8, Failure> {
    let args = match arguments.args.as_deref() {
        Some("-") => object(Some(&read_input()?))?,
        text => object(text)?,
    };
    let timeout = arguments.timeout.as_deref().map(time).transpose()?;
    let servers = Servers::load(world)?;
    servers.tell_problems(output);
    let taken = with_server(&servers, &arguments.server, output, |live, known, output| {
        let tool = raw_name(&arguments.tool, known, &servers, live, output);
        let call = Call { tool: tool.clone(), args, timeout, progress: None };
        let answer = ask(live, &arguments.server, call, output);
        take(answer, &tool, &servers.offers(known, &live.listed(&arguments.server)))
    })?;
    show(taken, arguments, world, output)
}

/// Calls, and streams what the server says about its progress.
fn ask(live: &Live, server: &str, call: Call, output: &mut Output) -> Result<serde_json::Value, CallError> {
    let (sender, steps) = channel();
    let progress: ollm_mcp::OnProgress = Arc::new(move |step: Progress| drop(sender.send(step)));
    let pending = live.fleet().call(server, Call { progress: Some(progress), ..call });
    let tell = |output: &mut Output| steps.try_iter().for_each(|step| output.tell(&told(&step)));
    live.wait(pending, tell, output)
}

/// The result, checked against what the tool promised.
fn take(answer: Result<serde_json::Value, CallError>, tool: &str, offers: &Offers) -> Result<Taken, Failure> {
    let promised = offers.tools.iter().find(|offer| offer.raw == tool).and_then(|offer| offer.tool.output.as_ref());
    taken(answer, promised).map_err(unanswered)
}

fn show(taken: Taken, arguments: &CallArguments, world: &World, output: &mut Output) -> Result<u8, Failure> {
    for note in &taken.notes {
        output.tell(&format!("tool `{}`: {note}", arguments.tool));
    }
    let most = if arguments.full { usize::MAX } else { LARGEST_RESULT };
    let bounded = bound_result(taken.result, most, &Spill::new(world.state().join("mcp-results")));
    bounded.notes.iter().for_each(|note| output.tell(note));
    let code = if bounded.result.is_error { FINDING } else { OK };
    if arguments.json {
        output.pretty_json(&write_result(&bounded.result))?;
    } else {
        output.line(&show_result(&bounded.result))?;
    }
    Ok(code)
}

/// The server's own name for a tool: as given, or found by the name models use.
fn raw_name(tool: &str, known: &Known, servers: &Servers<'_>, live: &Live, output: &mut Output) -> String {
    if split(tool).is_none() {
        return tool.to_owned();
    }
    let offers = if let Some(entry) = &known.cached {
        servers.offers(known, &entry.tools)
    } else {
        // Only the server knows; if it does not start, the call will say why.
        live.start(output);
        servers.offers(known, &live.listed(&known.spec.name))
    };
    offers.raw(tool).unwrap_or(tool).to_owned()
}

fn time(text: &str) -> Result<Duration, Failure> {
    let read = units::duration(text).or_else(|| text.parse().ok().map(Duration::from_millis));
    read.filter(|time| !time.is_zero())
        .ok_or_else(|| Failure::usage(format!("--timeout must be a time such as 90s, not {text}")))
}
