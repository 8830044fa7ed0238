//! `ollm mcp tools`: the tools of all servers in one list.

use ollm_app::AppContext;
use ollm_app::servers::{DeclaredServer, Servers, remarks};
use ollm_mcp::{Offer, Offers, ServerState};
use ollm_store::one_line;
use serde_json::{Map, Value, json};

use crate::error::{ErrorKind, Failure, OK};
use crate::output::Output;
use crate::table;

/// A description is cut to this many characters in a table.
const GIST: usize = 80;
/// The names of arguments are cut to this many characters.
const LONGEST_ARGUMENTS: usize = 48;

pub(super) fn run(
    names: &[String],
    refresh: bool,
    context: &AppContext,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let servers = Servers::load(context)?;
    servers.tell_problems(output);
    let chosen = servers.chosen(names)?;
    let (lists, code) = gather(&servers, &chosen, refresh, output)?;
    if as_json {
        output.pretty_json(&lists.iter().flat_map(|(known, offers, state)| entries(known, offers, state)).collect())?;
    } else {
        output.text(&table(&lists))?;
    }
    // A request for all servers shows all that can be had. An empty result is a failure, unless all servers are off.
    Ok(match code {
        code if !names.is_empty() => code,
        code if lists.is_empty() && code != ErrorKind::Configuration as u8 => code.max(super::code(&servers)),
        _ => super::code(&servers),
    })
}

type Listed<'a> = (&'a DeclaredServer, Offers, &'static str);

/// The tools of each server: as remembered, or as it lists them now.
fn gather<'a>(
    servers: &'a Servers<'a>,
    chosen: &[&'a DeclaredServer],
    refresh: bool,
    output: &mut Output,
) -> Result<(Vec<Listed<'a>>, u8), Failure> {
    let mut code = OK;
    let mut lists: Vec<Listed<'a>> = Vec::new();
    let mut unknown: Vec<&DeclaredServer> = Vec::new();
    for known in chosen {
        if let Some(failure) = servers.refusal(known) {
            output.tell(&failure.message);
            code = code.max(ErrorKind::from(failure.code.class()) as u8);
            continue;
        }
        match known.cached.as_ref().filter(|_| !refresh) {
            Some(entry) => {
                let offers = known.offers(entry.listed());
                tell(known, &entry.warnings, &offers, output);
                lists.push((known, offers, "configured"));
            }
            None => unknown.push(known),
        }
    }
    if !unknown.is_empty() {
        super::with_live(servers, &unknown, output, |live, output| {
            for (status, outcome) in live.start(output) {
                let Some(known) = unknown.iter().find(|known| known.spec.name == status.name) else { continue };
                if let ServerState::Degraded(why) = &status.state {
                    output.tell_failure(&format!("{}: {why}", known.spec.label()));
                }
                if status.tools > 0 || status.state == ServerState::Ready {
                    let offers = known.offers(&live.listed(&status.name));
                    tell(known, &status.warnings, &offers, output);
                    lists.push((known, offers, status.state.name()));
                } else {
                    outcome.err().into_iter().for_each(|error| output.tell_failure(&error.to_string()));
                    code = code.max(ErrorKind::Environment as u8);
                }
            }
            Ok(())
        })?;
    }
    lists.sort_by_key(|(known, _, _)| chosen.iter().position(|other| other.spec.name == known.spec.name));
    Ok((lists, code))
}

fn tell(known: &DeclaredServer, warnings: &[String], offers: &Offers, output: &mut Output) {
    for remark in remarks(&known.spec.label(), warnings, offers) {
        output.tell(&remark);
    }
}

fn entries<'a>(known: &'a DeclaredServer, offers: &'a Offers, state: &'a str) -> impl Iterator<Item = Value> + 'a {
    offers.tools.iter().map(move |offer| {
        json!({
            "server": known.spec.name,
            "name": offer.tool.name,
            "tool": offer.raw,
            "description": offer.tool.description,
            "inputSchema": offer.tool.input.0,
            "state": state,
        })
    })
}

const HEAD: [&str; 3] = ["NAME", "ARGUMENTS", "DESCRIPTION"];

fn table(lists: &[Listed<'_>]) -> String {
    let rows: Vec<[String; 3]> = lists.iter().flat_map(|(_, offers, _)| rows(offers)).collect();
    if rows.is_empty() { "There are no tools.\n".to_owned() } else { table::table(HEAD, rows) }
}

/// Name, arguments and description of each tool, as far as a table has room.
pub(super) fn rows(offers: &Offers) -> Vec<[String; 3]> {
    offers.tools.iter().map(|Offer { tool, .. }| row(&tool.name, &tool.description, &tool.input.0)).collect()
}

/// The same of a tool that a conversation tells of.
pub(super) fn told_row(tool: &Value) -> Option<[String; 3]> {
    let text = |key: &str| tool.get(key).and_then(Value::as_str);
    Some(row(text("name")?, text("description")?, tool.get("inputSchema")?.as_object()?))
}

fn row(name: &str, description: &str, schema: &Map<String, Value>) -> [String; 3] {
    let text = one_line(description);
    let gist: String = text.chars().take(GIST).collect();
    let gist = if gist.len() < text.len() { format!("{gist}…") } else { gist };
    [name.to_owned(), arguments(schema), gist]
}

/// The arguments that a tool takes, those it needs first; an optional one has a question mark.
fn arguments(schema: &Map<String, Value>) -> String {
    let properties = schema.get("properties").and_then(Value::as_object);
    let needed: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let all = || properties.into_iter().flat_map(Map::keys).map(String::as_str);
    let optional = all().filter(|name| !needed.contains(name)).map(|name| format!("{name}?"));
    let names: Vec<String> = all().filter(|name| needed.contains(name)).map(str::to_owned).chain(optional).collect();
    let shown = one_line(&names.join(" "));
    let cut: String = shown.chars().take(LONGEST_ARGUMENTS).collect();
    if cut.len() < shown.len() { format!("{cut}…") } else { cut }
}
