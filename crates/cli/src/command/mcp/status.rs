//! `ollm mcp status`: shows how servers are declared, and their state in running conversations.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use ollm_app::AppContext;
use ollm_app::control::{Chat, ControlCommand, FoundChats, ask};
use ollm_app::servers::{DeclaredServer, LastFailure, Servers, last_failures, tokens};
use ollm_catalog::Address;
use ollm_mcp::{Grant, granted};
use ollm_protocol::units::iso;
use serde_json::{Value, json};

use super::list::{Row, table};
use super::tools::{rows, told_row};
use crate::error::{Failure, OK};
use crate::output::Output;
use crate::table;

pub(super) fn run(names: &[String], context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let servers = Servers::load(context)?;
    servers.tell_problems(output);
    let kept = Kept::find(context);
    let chosen = servers.chosen(names)?;
    let rows = chosen.iter().map(|known| Row::resting(known, &servers).failed_before(&kept.failures));
    let rows: Vec<Row<'_>> = rows.collect();
    let FoundChats { chats, troubles } = ask(context, ControlCommand::Status, names);
    for trouble in &troubles {
        output.tell(trouble);
    }
    if as_json {
        output.pretty_json(&rows.iter().map(|row| entry(row, &chats, &kept)).collect())?;
    } else {
        output.text(&table(&rows))?;
        for row in &rows {
            kept.tell(row.known, output);
        }
        if chats.is_empty() && !troubles.is_empty() {
            output.tell("whether servers run is not known: what was asked did not answer");
        } else if chats.is_empty() {
            output.tell("no server runs in a conversation of this project; `ollm mcp start` tries servers");
        } else {
            output.text(&format!("\n{}", running(&chats)))?;
        }
    }
    Ok(if names.is_empty() { super::code(&servers) } else { OK })
}

/// A server as `--json` prints it, and the tools that are known of it: name, arguments and description of each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerOverview {
    pub(crate) entry: Value,
    pub(crate) tools: Vec<[String; 3]>,
}

/// All servers, and the conversations that could not be asked about them.
pub(crate) fn overview(servers: &Servers<'_>) -> (Vec<ServerOverview>, Vec<String>) {
    let FoundChats { chats, troubles } = ask(servers.context, ControlCommand::Status, &[]);
    let kept = Kept::find(servers.context);
    let one = |known: &DeclaredServer| ServerOverview {
        entry: entry(&Row::resting(known, servers), &chats, &kept),
        tools: known_tools(known, &chats),
    };
    (servers.all.iter().map(one).collect(), troubles)
}

/// The tools that are known of a server, by a conversation or from an earlier time: name, arguments and description of each.
fn known_tools(known: &DeclaredServer, chats: &[Chat]) -> Vec<[String; 3]> {
    let live = chats.iter().rev().filter_map(|chat| chat.server(&known.spec.name)?.get("toolList")?.as_array());
    match live.into_iter().find(|tools| !tools.is_empty()) {
        Some(tools) => tools.iter().filter_map(told_row).collect(),
        None => known.cached.as_ref().map(|cached| rows(&known.offers(cached.listed()))).unwrap_or_default(),
    }
}

/// The stored data about servers that do not run.
struct Kept {
    failures: BTreeMap<String, LastFailure>,
    /// The file with the tokens of logins.
    tokens: PathBuf,
}

impl Kept {
    fn find(context: &AppContext) -> Kept {
        Kept { failures: last_failures(context), tokens: tokens(context) }
    }

    fn failure(&self, known: &DeclaredServer) -> Option<&LastFailure> {
        self.failures.get(&known.key.as_ref()?.to_string())
    }

    /// Whether a person logged in to a server on the web; its address may hold variables, which are not filled in here.
    fn login(&self, known: &DeclaredServer) -> Option<Grant> {
        match &known.spec.address {
            Address::Url { url, .. } => granted(url, &self.tokens),
            Address::Command { .. } => None,
        }
    }

    fn tell(&self, known: &DeclaredServer, output: &mut Output) {
        let label = known.spec.label();
        if let Some(failure) = self.failure(known) {
            output.tell(&format!("{label} failed at {}: {}", time(failure), failure.why));
        }
        if let Some(grant) = self.login(known) {
            output.tell(&format!("{label}: you are logged in at {}", grant.issuer));
        }
    }
}

fn time(failure: &LastFailure) -> String {
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(failure.at));
    iso(at.unwrap_or(SystemTime::UNIX_EPOCH))
}

/// The list's entry with a coarser word beside the state. It has the declared state, and the present state in each
/// conversation. The newest conversation gives the server's own state.
fn entry(row: &Row<'_>, chats: &[Chat], kept: &Kept) -> Value {
    let name = &row.known.spec.name;
    let live: Vec<(&Chat, &Value)> = chats.iter().filter_map(|chat| Some((chat, chat.server(name)?))).collect();
    let mut entry = row.entry();
    let Some(object) = entry.as_object_mut() else { return entry };
    let word = if row.error.is_some() { "error" } else { "disconnected" };
    object.insert("status".to_owned(), word.into());
    let tools = known_tools(row.known, chats).into_iter();
    let tools = tools.map(
        |[name, arguments, description]| json!({"name": name, "arguments": arguments, "description": description}),
    );
    object.insert("toolList".to_owned(), tools.collect());
    object.insert("revision".to_owned(), json!(row.known.cached.as_ref().and_then(|entry| entry.revision.as_ref())));
    if let Some((_, server)) = live.last() {
        for key in ["state", "status", "tools", "error", "revision"] {
            object.insert(key.to_owned(), server.get(key).cloned().unwrap_or_default());
        }
    }
    let failure = kept.failure(row.known);
    let failure = failure.map(|failure| json!({"at": time(failure), "message": failure.why}));
    object.insert("lastFailure".to_owned(), failure.into());
    let login = kept.login(row.known);
    let login =
        login.map(|grant| json!({"issuer": grant.issuer, "scopes": grant.scopes, "renewable": grant.renewable}));
    object.insert("login".to_owned(), login.into());
    let running = live.iter().any(|(_, server)| server.get("status").and_then(Value::as_str) == Some("connected"));
    object.insert("running".to_owned(), running.into());
    object.insert("chats".to_owned(), live.iter().map(|(chat, server)| told(chat, server)).collect());
    entry
}

fn told(chat: &Chat, server: &Value) -> Value {
    let mut told = json!({"pid": chat.process, "session": chat.session});
    if let Some(object) = told.as_object_mut() {
        for key in ["state", "status", "tools", "revision", "process", "error"] {
            object.insert(key.to_owned(), server.get(key).cloned().unwrap_or_default());
        }
    }
    told
}

fn running(chats: &[Chat]) -> String {
    let head = ["SERVER", "STATE", "STATUS", "TOOLS", "PROCESS", "CONVERSATION", "PROBLEM"];
    let servers = chats.iter().flat_map(|chat| chat.servers.iter().map(move |server| (chat, server)));
    let body = servers.map(|(chat, server)| {
        let word = |key: &str| match server.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        let [name, state, status, tools, error] = ["name", "state", "status", "tools", "error"].map(word);
        [name, state, status, tools, chat.process.to_string(), chat.session.clone(), error]
    });
    table::table(head, body)
}
