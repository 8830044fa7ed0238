//! `ollm mcp list`: every server there is, without starting any.

use std::collections::BTreeMap;

use ollm_app::AppContext;
use ollm_app::servers::{DeclaredServer, LastFailure, Servers, last_failures};
use ollm_protocol::CodeClass;
use serde_json::{Value, json};

use crate::error::Failure;
use crate::output::Output;
use crate::table;

pub(super) fn run(context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let servers = Servers::load(context)?;
    let failures = last_failures(context);
    let rows = servers.all.iter().map(|known| Row::resting(known, &servers).failed_before(&failures));
    let rows: Vec<Row<'_>> = rows.collect();
    if as_json {
        servers.tell_problems(output);
        output.pretty_json(&rows.iter().map(Row::entry).collect())?;
        return Ok(super::code(&servers));
    }
    context.tell_notices(output);
    output.text(&table(&rows))?;
    for problem in servers.problems() {
        output.problem(problem);
    }
    Ok(super::code(&servers))
}

/// A server's row in a list.
pub(super) struct Row<'a> {
    pub(super) known: &'a DeclaredServer,
    /// Its transport: the declared one, or the one by which it was reached.
    pub(super) transport: String,
    pub(super) state: &'static str,
    /// How many tools it offers, as far as that is known.
    pub(super) tools: Option<usize>,
    pub(super) error: Option<String>,
    /// The reason why its last run failed.
    pub(super) failed: Option<String>,
}

impl<'a> Row<'a> {
    /// The row of a server that does not run, with the obstacle to its start.
    pub(super) fn resting(known: &'a DeclaredServer, servers: &Servers<'_>) -> Row<'a> {
        let bundled = known.bundle.as_ref().and_then(|bundle| bundle.obstacle.as_ref());
        let off = bundled.is_some_and(|(code, _)| code.class() == CodeClass::Configuration);
        let on = servers.settings.enabled && known.spec.enabled && !off;
        // A person who switched a server off knows it; a person whose extension is off may not.
        let told = on || off || !servers.settings.enabled;
        let error = servers.obstacle(known).filter(|_| told).map(|(_, why)| why);
        let tools = known.cached.as_ref().map(|entry| known.offers(entry.listed()).tools.len());
        let reached = known.cached.as_ref().and_then(|entry| entry.transport.clone());
        let transport = reached.unwrap_or_else(|| known.spec.address.transport().to_owned());
        Row { known, transport, state: if on { "configured" } else { "stopped" }, tools, error, failed: None }
    }

    /// The row with the server's last failure.
    pub(super) fn failed_before(mut self, failures: &BTreeMap<String, LastFailure>) -> Row<'a> {
        let failure = self.known.key.as_ref().and_then(|key| failures.get(&key.to_string()));
        self.failed = failure.map(|failure| format!("failed the last time: {}", failure.why));
        self
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

/// The error without the server's last words, which are shown beside the table.
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
            row.error.as_deref().or(row.failed.as_deref()).map(gist).unwrap_or_default().to_owned(),
        ]
    });
    table::table(head, body)
}
