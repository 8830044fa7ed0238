//! `ollm mcp stop`, and `restart` where a conversation runs: orders to the conversations of this project.

use ollm_app::control::{Chat, ControlCommand, FoundChats, ask};
use ollm_app::servers::Servers;
use ollm_app::{AppContext, refuse_agents};
use serde_json::{Value, json};

use crate::error::{ErrorKind, FINDING, Failure, OK};
use crate::output::Output;

pub(super) fn run(names: &[String], context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let servers = Servers::load(context)?;
    servers.chosen(names)?;
    if let Some(code) = order(ControlCommand::Stop, names, context, as_json, output)? {
        return Ok(code);
    }
    output.tell("there is nothing to stop: no `ollm chat` or `ollm run` with servers runs in this project");
    if as_json {
        output.pretty_json(&json!([]))?;
    }
    Ok(FINDING)
}

/// Has all conversations of this project do something, and says what came of it; nothing where there are none.
pub(super) fn order(
    deed: ControlCommand,
    names: &[String],
    context: &AppContext,
    as_json: bool,
    output: &mut Output,
) -> Result<Option<u8>, Failure> {
    refuse_agents(context, "stop servers of a conversation")?;
    let FoundChats { chats, troubles } = ask(context, deed, names);
    for trouble in &troubles {
        output.tell(trouble);
    }
    if chats.is_empty() {
        // A conversation that did not obey still counts as one.
        return Ok((!troubles.is_empty()).then_some(ErrorKind::Environment as u8));
    }
    let mut failed = !troubles.is_empty();
    let mut rows = Vec::new();
    for (chat, server) in chats.iter().flat_map(|chat| chat.servers.iter().map(move |server| (chat, server))) {
        failed |= server.get("failed").and_then(Value::as_bool).unwrap_or(true);
        output.tell(&told(chat, server));
        rows.push(row(chat, server));
    }
    if as_json {
        output.pretty_json(&rows.into())?;
    }
    Ok(Some(if failed { ErrorKind::Environment as u8 } else { OK }))
}

fn told(chat: &Chat, server: &Value) -> String {
    let text = |key: &str| server.get(key).and_then(Value::as_str).unwrap_or_default();
    let problem = server.get("error").and_then(Value::as_str).map(|why| format!(": {why}")).unwrap_or_default();
    let (name, state) = (text("name"), text("state"));
    format!("conversation {} (process {}): server `{name}` is {state}{problem}", chat.session, chat.process)
}

fn row(chat: &Chat, server: &Value) -> Value {
    let mut row = json!({"pid": chat.process, "session": chat.session});
    if let (Some(row), Some(server)) = (row.as_object_mut(), server.as_object()) {
        row.extend(server.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    row
}
