//! `ollm mcp resources` and `prompts`: shows the resources and the prompts that a server offers.

use ollm_app::AppContext;
use ollm_app::servers::{LiveServers, Servers};
use ollm_mcp::{CallError, CallErrorKind};
use ollm_protocol::Code;
use ollm_store::escape_for_people;
use serde_json::{Map, Value};

use super::{unanswered, with_server};
use crate::error::{FINDING, Failure};
use crate::output::Output;
use crate::table;

/// Further faults of one answer are not told.
const MOST_FAULTS: usize = 5;

/// The sort of items to show.
#[derive(Clone, Copy)]
pub(super) enum Sort {
    Resources,
    Prompts,
}

/// Lists all items of a sort, or shows the named one; a prompt is filled in.
pub(super) fn run(
    sort: Sort,
    server: &str,
    (named, args): (Option<String>, Map<String, Value>),
    context: &AppContext,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let servers = Servers::load(context)?;
    servers.tell_problems(output);
    with_server(&servers, server, output, |live, _, output| {
        let Some(name) = named else { return list(sort, live, server, as_json, output) };
        let asked = match sort {
            Sort::Resources => live.fleet().read(server, name),
            Sort::Prompts => live.fleet().prompt(server, name, args),
        };
        let answer = match live.wait(asked, |_| (), output) {
            Ok(answer) => answer,
            Err(error) if matches!(error.kind, CallErrorKind::Refused { .. }) => {
                if as_json {
                    let failure = Failure::new(Code::ServerFailed, error.to_string());
                    output.pretty_json(&failure.document(FINDING))?;
                }
                output.tell(&error.to_string());
                return Ok(FINDING);
            }
            Err(error) => return Err(unanswered(error)),
        };
        let faults = sort.faults(&answer).map_err(|why| malformed(server, &why))?;
        for fault in &faults {
            output.tell(&format!("MCP server `{server}`: {fault}"));
        }
        let shown =
            if as_json { output.pretty_json(&answer) } else { output.text(&escape_for_people(&sort.text(&answer))) };
        if faults.is_empty() { shown } else { shown.map(|_| FINDING) }
    })
}

/// The failure for an answer that cannot be understood.
fn malformed(server: &str, why: &str) -> Failure {
    Failure::new(Code::ServerFailed, format!("MCP server `{server}`: {why}"))
        .hint("this is a fault of the server; a newer version of it may do better")
}

fn list(sort: Sort, live: &LiveServers, server: &str, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let listing = match sort {
        Sort::Resources => live.fleet().resources(server),
        Sort::Prompts => live.fleet().prompts(server),
    };
    let mut listing = live.wait(listing, |_| (), output).map_err(unanswered)?;
    if matches!(sort, Sort::Resources) {
        match live.wait(live.fleet().templates(server), |_| (), output) {
            Ok(templates) => {
                listing.items.extend(templates.items);
                listing.warnings.extend(templates.warnings);
            }
            // Many servers have no such items and do not know the request.
            Err(CallError { kind: CallErrorKind::Refused { .. }, .. }) => {}
            Err(error) => return Err(unanswered(error)),
        }
    }
    listing.warnings.iter().for_each(|warning| output.tell(&format!("server `{server}`: {warning}")));
    if as_json {
        return output.pretty_json(&Value::Array(listing.items));
    }
    output.text(&sort.table(&listing.items))
}

impl Sort {
    fn table(self, items: &[Value]) -> String {
        if items.is_empty() {
            let name = if matches!(self, Sort::Resources) { "resources" } else { "prompts" };
            return format!("There are no {name}.\n");
        }
        let head = match self {
            Sort::Resources => ["URI", "NAME", "TYPE", "DESCRIPTION"],
            Sort::Prompts => ["NAME", "ARGUMENTS", "TITLE", "DESCRIPTION"],
        };
        let rows = items.iter().map(|item| self.row(item));
        table::table(head, rows)
    }

    fn row(self, item: &Value) -> [String; 4] {
        match self {
            Sort::Resources => {
                let [uri, rest @ ..] = ["uri", "name", "mimeType", "description"].map(|key| word(item, key));
                let [name, kind, description] = rest;
                [if uri.is_empty() { word(item, "uriTemplate") } else { uri }, name, kind, description]
            }
            Sort::Prompts => {
                let names: Vec<String> = parts(item, "arguments").iter().map(argument).collect();
                [word(item, "name"), names.join(", "), word(item, "title"), word(item, "description")]
            }
        }
    }

    /// The parts of an answer that cannot be read; fails if no part can.
    fn faults(self, answer: &Value) -> Result<Vec<String>, String> {
        let (key, method) = match self {
            Sort::Resources => ("contents", "resources/read"),
            Sort::Prompts => ("messages", "prompts/get"),
        };
        let parts = match answer.get(key) {
            Some(Value::Array(parts)) => parts,
            None => return Err(format!("its answer to `{method}` has no `{key}`")),
            Some(_) => return Err(format!("`{key}` in its answer to `{method}` must be a list")),
        };
        let faults: Vec<String> = parts.iter().enumerate().filter_map(|(at, part)| self.fault(key, at, part)).collect();
        if !parts.is_empty() && faults.len() == parts.len() {
            return Err(format!("nothing in its answer to `{method}` can be read: {}", some(&faults)));
        }
        if faults.is_empty() {
            return Ok(faults);
        }
        Ok(vec![format!("a part of its answer to `{method}` cannot be read: {}", some(&faults))])
    }

    fn fault(self, key: &str, at: usize, part: &Value) -> Option<String> {
        let text = |key: &str| part.get(key).is_some_and(Value::is_string);
        let wanted = match self {
            _ if !part.is_object() => return Some(format!("`{key}[{at}]` must be an object")),
            Sort::Resources if text("text") || text("blob") => return None,
            Sort::Resources => "neither a `text` nor a `blob` that is text",
            Sort::Prompts if !text("role") => "no `role` that is text",
            Sort::Prompts if part.get("content").is_some_and(Value::is_object) => return None,
            Sort::Prompts => "no `content` that is an object",
        };
        Some(format!("`{key}[{at}]` has {wanted}"))
    }

    /// An answer as text for a person; bytes are only counted.
    fn text(self, answer: &Value) -> String {
        let part = |content: &Value| match (content.get("text").and_then(Value::as_str), content.get("blob")) {
            (Some(text), _) => format!("{text}\n"),
            (None, Some(blob)) => format!("[{} bytes in base64]\n", blob.as_str().map_or(0, str::len)),
            (None, None) => String::new(),
        };
        let line = |message: &Value| {
            if self.fault("messages", 0, message).is_some() {
                return String::new();
            }
            let content = message.get("content").unwrap_or(&Value::Null);
            let text = content.get("text").and_then(Value::as_str).map_or_else(|| content.to_string(), str::to_owned);
            format!("{}: {text}\n", word(message, "role"))
        };
        match self {
            Sort::Resources => parts(answer, "contents").iter().map(part).collect(),
            Sort::Prompts => parts(answer, "messages").iter().map(line).collect(),
        }
    }
}

/// The name of an argument, marked if it must be given.
fn argument(item: &Value) -> String {
    let mark = if item.get("required") == Some(&Value::Bool(true)) { " (required)" } else { "" };
    format!("{}{mark}", word(item, "name"))
}

/// The first of many faults.
fn some(faults: &[String]) -> String {
    let more = faults.len().saturating_sub(MOST_FAULTS);
    let told = faults.iter().take(MOST_FAULTS).map(String::as_str).collect::<Vec<_>>().join("; ");
    if more == 0 { told } else { format!("{told}; and {more} more") }
}

fn word(item: &Value, key: &str) -> String {
    item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn parts<'a>(item: &'a Value, key: &str) -> &'a [Value] {
    item.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
