//! `ollm mcp logs`: what a server said on its standard error, in the conversations that run or when it last ran.

use ollm_app::AppContext;
use ollm_app::control::{Chat, ControlCommand, FoundChats, ask};
use ollm_app::servers::{Servers, log_file};
use ollm_protocol::Code;
use ollm_store::{escape_for_people, read_bounded};
use serde_json::{Value, json};

use crate::error::{Failure, OK};
use crate::output::{Output, shown};

const LARGEST_LOG: u64 = 1 << 20;

pub(super) fn run(server: &str, context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let servers = Servers::load(context)?;
    let known = servers.find(server)?;
    let FoundChats { chats, troubles } = ask(context, ControlCommand::Logs, std::slice::from_ref(&known.spec.name));
    for trouble in &troubles {
        output.tell(trouble);
    }
    let path = log_file(context, known);
    let bytes = read_bounded(&path, LARGEST_LOG).map_err(|error| Failure::new(Code::Unreadable, error.to_string()))?;
    let text = bytes.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    if as_json {
        let last: Vec<&str> = text.lines().collect();
        let live: Vec<Value> = chats.iter().map(|chat| entry(chat, server)).collect();
        let answer = json!({"server": known.spec.name, "file": shown(&path), "lines": last, "chats": live});
        return output.pretty_json(&answer);
    }
    for chat in &chats {
        output.tell(&format!("conversation {} (process {}):", chat.session, chat.process));
        output.text(&format!("{}\n", escape_for_people(&lines(chat, server).join("\n"))))?;
    }
    match (chats.is_empty(), bytes.is_some()) {
        (true, true) => output.text(&escape_for_people(&text)),
        (true, false) => {
            output.tell(&format!("server `{server}` has said nothing yet"));
            Ok(OK)
        }
        (false, _) => Ok(OK),
    }
}

fn lines<'a>(chat: &'a Chat, server: &str) -> Vec<&'a str> {
    let lines = chat.server(server).and_then(|server| server.get("lines")).and_then(Value::as_array);
    lines.map(|lines| lines.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}

fn entry(chat: &Chat, server: &str) -> Value {
    json!({"pid": chat.process, "session": chat.session, "lines": lines(chat, server)})
}
