//! `ollm mcp stop` and `status`: servers run inside a chat, or for the time of one command; between commands none runs.

use serde_json::{Value, json};

use super::list::{Row, table};
use crate::error::{Failure, OK};
use crate::output::Output;
use crate::servers::Servers;
use crate::world::World;

const NOTHING_RUNS: &str = "no server runs: this program starts servers for one command and ends them with it";

pub(super) fn run(names: &[String], world: &World, output: &mut Output) -> Result<u8, Failure> {
    let servers = Servers::load(world)?;
    servers.chosen(names)?;
    output.tell(&format!("there is nothing to stop; {NOTHING_RUNS}"));
    Ok(OK)
}

pub(super) fn status(names: &[String], world: &World, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let servers = Servers::load(world)?;
    servers.tell_problems(output);
    let rows: Vec<Row<'_>> = servers.chosen(names)?.iter().map(|known| Row::resting(known, &servers)).collect();
    if as_json {
        return output.pretty_json(&rows.iter().map(entry).collect());
    }
    output.text(&table(&rows))?;
    output.tell(&format!("{NOTHING_RUNS}; `ollm mcp start` tries them"));
    Ok(OK)
}

/// The entry of the list, with the coarser word beside the state.
fn entry(row: &Row<'_>) -> Value {
    let mut entry = row.entry();
    if let Some(object) = entry.as_object_mut() {
        let word = if row.error.is_some() { "error" } else { "disconnected" };
        object.insert("status".to_owned(), word.into());
        object
            .insert("revision".to_owned(), json!(row.known.cached.as_ref().and_then(|entry| entry.revision.as_ref())));
        object.insert("running".to_owned(), false.into());
    }
    entry
}
