//! `ollm mcp start` and `restart`: servers are tried, their tools remembered, and then they are ended; `restart` first
//! looks for conversations whose servers are meant.

use ollm_app::AppContext;
use ollm_app::control::ControlCommand;
use ollm_app::servers::{DeclaredServer, Servers, cache, remarks};
use ollm_mcp::{CallError, ServerState, ServerStatus};
use ollm_protocol::{Code, CodeClass};

use super::list::{Row, table};
use super::stop::order;
use crate::error::{ErrorKind, Failure, OK};
use crate::output::Output;

pub(super) fn run(names: &[String], context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let servers = Servers::load(context)?;
    try_all(&servers, names, as_json, output)
}

/// Restarts the servers of running conversations. Without any, deletes the cached data and starts the servers anew.
pub(super) fn again(names: &[String], context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let servers = Servers::load(context)?;
    servers.chosen(names)?;
    if let Some(code) = order(ControlCommand::Restart, names, context, as_json, output)? {
        return Ok(code);
    }
    output.tell("no conversation with servers runs in this project; the servers are tried anew instead");
    for digest in servers.chosen(names)?.iter().filter_map(|known| known.key.as_ref()) {
        let forgotten = cache(context).forget(digest);
        forgotten.map_err(|error| Failure::new(Code::NotWritten, format!("nothing was forgotten: {error}")))?;
    }
    let servers = Servers::load(context)?;
    try_all(&servers, names, as_json, output)
}

fn try_all(servers: &Servers<'_>, names: &[String], as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    servers.tell_problems(output);
    let chosen = servers.chosen(names)?;
    let (rows, code) = probe(servers, &chosen, !names.is_empty(), output)?;
    if as_json {
        output.pretty_json(&rows.iter().map(Row::entry).collect())?;
    } else {
        output.text(&table(&rows))?;
    }
    Ok(if names.is_empty() { code.max(super::code(servers)) } else { code })
}

/// Starts those that may be, and says how each is; the code is that of the worst.
fn probe<'a>(
    servers: &'a Servers<'a>,
    chosen: &[&'a DeclaredServer],
    named: bool,
    output: &mut Output,
) -> Result<(Vec<Row<'a>>, u8), Failure> {
    let mut code = OK;
    let mut rows: Vec<Row<'a>> = chosen.iter().map(|known| Row::resting(known, servers)).collect();
    let able: Vec<&DeclaredServer> = chosen.iter().copied().filter(|known| servers.refusal(known).is_none()).collect();
    for row in &mut rows {
        let Some(failure) = servers.refusal(row.known) else { continue };
        let missing = failure.code.class() == CodeClass::Environment;
        if missing {
            row.state = ServerState::Failed(String::new()).name();
        }
        if named || failure.code.class() != CodeClass::Configuration {
            output.tell(&failure.message);
        }
        // A server that is off or not approved is a failure only if it was named.
        if named || missing {
            code = code.max(ErrorKind::from(failure.code.class()) as u8);
        }
    }
    if able.is_empty() {
        return Ok((rows, code));
    }
    super::with_live(servers, &able, output, |live, output| {
        for (status, outcome) in live.start(output) {
            let Some(row) = rows.iter_mut().find(|row| row.known.spec.name == status.name) else { continue };
            row.state = status.state.name();
            row.transport = status.transport.map_or(std::mem::take(&mut row.transport), str::to_owned);
            row.error = problem(&status, outcome);
            if let ServerState::Degraded(why) = &status.state {
                output.tell_failure(&format!("{}: {why}", row.known.spec.label()));
                code = code.max(ErrorKind::Environment as u8);
            }
            if matches!(status.state, ServerState::Ready | ServerState::Degraded(_)) {
                let offers = row.known.offers(&live.listed(&status.name));
                for remark in remarks(&row.known.spec.label(), &status.warnings, &offers) {
                    output.tell(&remark);
                }
                row.tools = Some(offers.tools.len());
                continue;
            }
            let why = row.error.as_deref().unwrap_or(row.state);
            output.tell_failure(&format!("{}: {why}", row.known.spec.label()));
            code = code.max(ErrorKind::Environment as u8);
        }
        Ok(())
    })?;
    Ok((rows, code))
}

fn problem(status: &ServerStatus, outcome: Result<(), CallError>) -> Option<String> {
    status.state.problem().map(str::to_owned).or_else(|| outcome.err().map(|error| error.kind.to_string()))
}
