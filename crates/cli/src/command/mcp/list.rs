//! `ollm mcp list`: every server there is, without starting any.

use ollm_app::AppContext;
use ollm_app::servers::{ServerEntry, Servers};
use ollm_protocol::CodeClass;
use serde_json::{Value, json};

use crate::error::Failure;
use crate::output::Output;
use crate::problem;
use crate::table;

pub(super) fn run(context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let servers = Servers::load(context)?;
    let rows: Vec<Row<'_>> = servers.all.iter().map(|known| Row::resting(known, &servers)).collect();
    if as_json {
        servers.tell_problems(output);
        output.pretty_json(&rows.iter().map(Row::entry).collect())?;
        return Ok(super::code(&servers));
    }
    context.tell_notices(output);
    output.text(&table(&rows))?;
    for problem in servers.problems() {
        output.explain(&problem::render(problem));
    }
    Ok(super::code(&servers))
}

/// How a server is, for a list.
pub(super) struct Row<'a> {
    pub(super) known: &'a ServerEntry,
    /// How it is spoken to: as declared, or as it was reached.
    pub(super) transport: String,
    pub(super) state: &'static str,
    /// How many tools it offers, as far as that is known.
    pub(super) tools: Option<usize>,
    pub(super) error: Option<String>,
}

impl<'a> Row<'a> {
    /// A server that does not run, and what would keep it from running.
    pub(super) fn resting(known: &'a ServerEntry, servers: &Servers<'_>) -> Row<'a> {
        let bundled = known.bundle.as_ref().and_then(|bundle| bundle.obstacle.as_ref());
        let off = bundled.is_some_and(|(code, _)| code.class() == CodeClass::Configuration);
        let on = servers.settings.enabled && known.spec.enabled && !off;
        // Who switched a server off knows it; whose extension is off may not.
        let told = on || off || !servers.settings.enabled;
        let error = servers.obstacle(known).filter(|_| told).map(|(_, why)| why);
        let tools = known.cached.as_ref().map(|entry| known.offers(entry.listed()).tools.len());
        let reached = known.cached.as_ref().and_then(|entry| entry.transport.clone());
        let transport = reached.unwrap_or_else(|| known.spec.address.transport().to_owned());
        Row { known, transport, state: if on { "configured" } else { "stopped" }, tools, error }
    }

    pub(super) fn entry(&self) -> Value {
        let spec = &self.known.spec;
        json!({
            "name": spec.name,
            "transport": self.transport,
            "state": self.state,
            "tools": self.tools,
            "error": self.error,
            "source": spec.source.name(),
            "trust": self.known.trust(),
            "digest": self.known.digest.as_ref().map(ToString::to_string),
        })
    }
}

/// What is wrong, without the last words of the server: they are told beside the table.
fn gist(error: &str) -> &str {
    let line = error.lines().next().unwrap_or_default();
    line.strip_suffix("; its last words:").unwrap_or(line)
}

pub(super) fn table(rows: &[Row<'_>]) -> String {
    if rows.is_empty() {
        return "There are no servers. Add one, for instance:\n  ollm mcp add time -- uvx mcp-server-time\n".to_owned();
    }
    let head = ["NAME", "STATE", "TRUST", "TOOLS", "TRANSPORT", "SOURCE", "PROBLEM"];
    let body = rows.iter().map(|row| {
        let spec = &row.known.spec;
        [
            spec.name.clone(),
            row.state.to_owned(),
            row.known.trust().to_owned(),
            row.tools.map_or_else(|| "?".to_owned(), |tools| tools.to_string()),
            row.transport.clone(),
            spec.source.name().to_owned(),
            row.error.as_deref().map(gist).unwrap_or_default().to_owned(),
        ]
    });
    table::table(head, body)
}
