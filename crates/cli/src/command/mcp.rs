//! `ollm mcp …`.

use std::io::Read;

use ollm_app::AppContext;
use ollm_app::approving::Uncovered;
use ollm_app::servers::{DeclaredServer, LiveServers, Servers};
use ollm_mcp::CallError;
use ollm_store::one_line;
use serde_json::{Map, Value};

use crate::arguments::mcp::McpCommand;
use crate::error::{ErrorKind, Failure, OK};
use crate::interrupt::Stop;
use crate::output::Output;
use crate::problem::json_input;

use offered::Sort;
use ollm_protocol::Code;

mod add;
mod call;
mod line;
mod list;
mod login;
mod logs;
mod offered;
mod review;
mod start;
mod status;
mod stop;
mod tools;
mod trust;

pub(crate) use status::{ServerOverview, overview};

/// The limit of standard input.
const LARGEST_INPUT: u64 = 16 << 20;

pub(super) fn run_command(command: McpCommand, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    match command {
        McpCommand::List { json } => list::run(context, json, output),
        McpCommand::Add(arguments) => add::add(&arguments, context, output),
        McpCommand::Remove { name, project } => add::remove(&name, project, context, output),
        McpCommand::Status { names, json } => status::run(&names, context, json, output),
        McpCommand::Start { names, json } => start::run(&names, context, json, output),
        McpCommand::Stop { names, json } => stop::run(&names, context, json, output),
        McpCommand::Restart { names, json } => start::again(&names, context, json, output),
        McpCommand::Tools { names, refresh, json } => tools::run(&names, refresh, context, json, output),
        McpCommand::Call(arguments) => call::run(&arguments, context, output),
        McpCommand::Resources { server, uri, json } => {
            offered::run(Sort::Resources, &server, (uri, Map::new()), context, json, output)
        }
        McpCommand::Prompts { server, prompt, args, json } => {
            offered::run(Sort::Prompts, &server, (prompt, object("--args", args.as_deref())?), context, json, output)
        }
        McpCommand::Trust { name, digest, uncovered } => {
            trust::approve(&name, digest.as_deref(), Uncovered::of_flag(uncovered), context, output)
        }
        McpCommand::Review { name, digest, json } => review::run(&name, digest.as_deref(), context, json, output),
        McpCommand::Untrust { names } => trust::withdraw(&names, context, output),
        McpCommand::Login(arguments) => login::run(&arguments, context, output),
        McpCommand::Logout { name, json } => login::out(&name, json, context, output),
        McpCommand::Logs { server, json } => logs::run(&server, context, json, output),
    }
}

/// Prepares one server that may be started, asks its questions, and ends the server in every case.
fn with_server<T>(
    servers: &Servers<'_>,
    name: &str,
    output: &mut Output,
    question: impl FnOnce(&LiveServers, &DeclaredServer, &mut Output) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let known = servers.find(name)?;
    if let Some(error) = servers.refusal(known) {
        return Err(error.into());
    }
    with_live(servers, &[known], output, |live, output| question(live, known, output))
}

/// Prepares these servers and ends them in every case; a signal decides our exit code.
fn with_live<T>(
    servers: &Servers<'_>,
    chosen: &[&DeclaredServer],
    output: &mut Output,
    work: impl FnOnce(&LiveServers, &mut Output) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let stop = Stop::listen_beside(output.asker());
    output.busy(&match chosen {
        [one] => format!("waiting for {}", one_line(&one.spec.label())),
        several => format!("waiting for {} servers", several.len()),
    });
    let live = LiveServers::new(servers, chosen, stop.cancel(), output)?;
    let done = work(&live, output);
    live.close(output);
    output.idle();
    stop.failure().map_or(done, Err)
}

/// The exit code of a look at all servers: a failure if a file cannot be understood.
fn code(servers: &Servers<'_>) -> u8 {
    if servers.unloaded().is_some() { ErrorKind::Configuration as u8 } else { OK }
}

/// The failure for a server that gave no answer.
#[expect(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
fn unanswered(error: CallError) -> Failure {
    let text = error.to_string();
    let failure = Failure::new(Code::ServerFailed, &text);
    // A server that said nothing has no log.
    if !text.contains("its last words:") {
        return failure;
    }
    failure.hint(format!("`ollm mcp logs {}` shows all that it said", ollm_shell::shell_word(&error.server)))
}

/// Standard input as text, up to the limit.
fn read_input() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(LARGEST_INPUT).read_to_string(&mut text);
    read.map_err(|error| Failure::new(Code::Unreadable, format!("cannot read standard input: {error}")))?;
    Ok(text)
}

/// Arguments that a person typed: a JSON object, or empty.
fn object(name: &str, text: Option<&str>) -> Result<Map<String, Value>, Failure> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(Map::new()) };
    if let Value::Object(object) = json_input(name, text, Code::InvalidArguments)? {
        return Ok(object);
    }
    let message = format!("{name} must be a JSON object such as '{{\"text\": \"hi\"}}'");
    Err(Failure::new(Code::InvalidArguments, message))
}
