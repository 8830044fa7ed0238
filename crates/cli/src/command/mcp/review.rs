//! `ollm mcp review`: a person reviews a server's changed tools, and offers them again.

use std::fmt::Write as _;

use ollm_app::servers::{Servers, WaitingTool, reason, waiting_digest};
use ollm_app::{AppContext, refuse_approval};
use ollm_protocol::Code;
use ollm_trust::{changed_lines, review_row};
use serde_json::{Value, json};

use crate::command::review;
use crate::error::{Failure, OK};
use crate::output::Output;

pub(super) fn run(
    name: &str,
    digest: Option<&str>,
    context: &AppContext,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    // A look alone approves nothing.
    let only_looks = as_json && digest.is_none();
    if !only_looks {
        refuse_approval("tools", digest, context)?;
    }
    context.need_home()?;
    let servers = Servers::load(context)?;
    servers.tell_problems_of(name, output);
    let Some(tools) = servers.find(name)?.review() else {
        output.tell(&format!("server `{name}` is the user's own; its tools need no review"));
        return if as_json { output.json(&to_json(name, &[])) } else { Ok(OK) };
    };
    let listed = listed(&servers, name, output)?;
    let waiting = tools.waiting(&listed).map_err(|why| Failure::new(Code::Unreadable, why))?;
    if only_looks {
        return output.json(&to_json(name, &waiting));
    }
    if waiting.is_empty() {
        output.tell(&format!("no tool of server `{name}` waits"));
        return if as_json { output.json(&to_json(name, &[])) } else { Ok(OK) };
    }
    match digest {
        Some(named) => review::check_digest(
            &format!("what waits of server `{name}`"),
            &waiting_digest(&waiting),
            named,
            "review it, then read the digest with `ollm mcp review NAME --json`".to_owned(),
        )?,
        None => ask_person(name, &waiting, output)?,
    }
    servers.trust.confirm().map_err(|error| review::unsigned(&error))?;
    tools
        .approve(&listed)
        .map_err(|error| Failure::new(Code::NotWritten, format!("the tools were not approved: {}", reason(&error))))?;
    output.tell(&format!("{} of server `{name}`: offered from now on", counted(&waiting)));
    if as_json {
        let offered: Vec<&str> = waiting.iter().map(|tool| tool.name.as_str()).collect();
        return output.json(&json!({"server": name, "offered": offered, "digest": digest}));
    }
    Ok(OK)
}

/// The tools as the server lists them now.
fn listed(servers: &Servers<'_>, name: &str, output: &mut Output) -> Result<Vec<Value>, Failure> {
    super::with_server(servers, name, output, |live, _, output| {
        let started = live.start(output);
        let listed = live.listed(name);
        match started.into_iter().find_map(|(_, outcome)| outcome.err()) {
            Some(error) if listed.is_empty() => Err(Failure::new(Code::ServerFailed, error.to_string())),
            _ => Ok(listed),
        }
    })
}

/// Shows everything that waits, and asks. Without a terminal nothing is approved.
fn ask_person(name: &str, waiting: &[WaitingTool], output: &mut Output) -> Result<(), Failure> {
    let them = if waiting.len() == 1 { "it" } else { "them" };
    let question = format!("Offer {} to models, as long as nothing of {them} changes?", counted(waiting));
    let change = format!("the change of server `{name}`");
    let by_script = "a script may approve by naming the digest that `--json` prints: `--digest sha256:…`".to_owned();
    review::ask_yes(&screen(name, waiting), &change, &question, [by_script], output)
}

fn screen(name: &str, waiting: &[WaitingTool]) -> String {
    let mut text = review_row("server", name);
    text.push_str(&review_row("digest", &waiting_digest(waiting).to_string()));
    for tool in waiting {
        let (what, shown) = match tool.before.as_deref() {
            None => ("new", format!("{}\n", tool.now)),
            Some("") => ("changed (what it was is too long to show)", format!("{}\n", tool.now)),
            Some(before) => ("changed", changed_lines(&format!("{before}\n"), &format!("{}\n", tool.now))),
        };
        let _ = write!(text, "\n--- {what}: {}\n{shown}---\n", tool.name);
    }
    text
}

fn counted(waiting: &[WaitingTool]) -> String {
    match waiting {
        [tool] => format!("tool `{}`", tool.name),
        tools => format!("{} tools", tools.len()),
    }
}

fn to_json(name: &str, waiting: &[WaitingTool]) -> Value {
    let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let tools = waiting.iter().map(|tool| {
        json!({
            "tool": tool.name,
            "change": if tool.before.is_some() { "changed" } else { "new" },
            "before": tool.before.as_deref().map(parsed),
            "now": parsed(&tool.now),
        })
    });
    let digest = (!waiting.is_empty()).then(|| waiting_digest(waiting).to_string());
    json!({"server": name, "waiting": tools.collect::<Vec<_>>(), "digest": digest})
}
