//! `ollm mcp resources`: what a server has to read.

use ollm_store::escape_for_people;
use serde_json::Value;

use super::super::hook::columns;
use super::{unanswered, with_server};
use crate::error::Failure;
use crate::output::Output;
use crate::servers::{Live, Servers};
use crate::world::World;

pub(super) fn run(
    server: &str,
    uri: Option<String>,
    world: &World,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let servers = Servers::load(world)?;
    servers.tell_problems(output);
    with_server(&servers, server, output, |live, _, output| {
        let Some(uri) = uri else { return list(live, server, as_json, output) };
        let answer = live.wait(live.fleet().read(server, uri), |_| (), output).map_err(unanswered)?;
        if as_json { output.pretty_json(&answer) } else { output.text(&escape_for_people(&text(&answer))) }
    })
}

fn list(live: &Live, server: &str, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let listing = live.fleet().resources(server).map_err(unanswered)?;
    listing.warnings.iter().for_each(|warning| output.tell(&format!("server `{server}`: {warning}")));
    if as_json {
        return output.pretty_json(&Value::Array(listing.items));
    }
    output.text(&table(&listing.items))
}

fn table(items: &[Value]) -> String {
    if items.is_empty() {
        return "There are no resources.\n".to_owned();
    }
    let head = ["URI", "NAME", "TYPE", "DESCRIPTION"].map(str::to_owned);
    let body = items.iter().map(|item| {
        ["uri", "name", "mimeType", "description"]
            .map(|key| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned())
    });
    columns(&std::iter::once(head).chain(body).collect::<Vec<_>>())
}

/// The contents one after the other; bytes are only counted.
fn text(answer: &Value) -> String {
    let contents = answer.get("contents").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let part = |content: &Value| match (content.get("text").and_then(Value::as_str), content.get("blob")) {
        (Some(text), _) => format!("{text}\n"),
        (None, Some(blob)) => format!("[{} bytes in base64]\n", blob.as_str().map_or(0, str::len)),
        (None, None) => String::new(),
    };
    contents.iter().map(part).collect()
}
