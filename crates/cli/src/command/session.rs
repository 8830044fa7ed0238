//! `ollm session`: lists, shows and resumes earlier conversations.

use std::fmt::Write as _;

use ollm_agent::{Message, Summary};
use ollm_app::AppContext;
use ollm_app::session::{no_transcript, sessions};
use ollm_protocol::Code;
use ollm_store::{cut, escape_for_people, one_line};
use serde_json::{Value, json};

use crate::arguments::agent::{AgentArguments, SessionCommand};
use crate::error::Failure;
use crate::output::Output;

pub(super) fn run(command: SessionCommand, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    match command {
        SessionCommand::List { json } => list(json, context, output),
        SessionCommand::Show { id, json } => show(&id, json, context, output),
        SessionCommand::Resume { id, agent } => {
            let id = match id {
                Some(id) => id,
                None => match super::chat::pick_session(output.asker(), context)? {
                    Some(id) => id,
                    None => return Err(no_choice()),
                },
            };
            super::chat::run(&AgentArguments { resume: Some(id), ..agent }, context, output)
        }
    }
}

fn no_choice() -> Failure {
    Failure::new(Code::UnknownSession, "no conversation was chosen")
        .hint("`ollm session list` lists them, `ollm session resume ID` goes on")
}

fn list(as_json: bool, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let listed = ollm_agent::list(&sessions(context));
    let (list, notes) = listed.map_err(|error| Failure::new(Code::Unreadable, error.to_string()))?;
    for note in &notes {
        output.tell(note);
    }
    if as_json {
        return output.json(&list.iter().map(summary).collect());
    }
    if list.is_empty() {
        output.tell("there are no conversations yet; `ollm run PROMPT` begins one");
    }
    let mut text = String::new();
    for one in &list {
        let header = &one.header;
        let first = one.first.as_deref().unwrap_or("(nothing was said)");
        let _ = writeln!(
            text,
            "{}  {}  {:>4} messages  {}  {}",
            header.id,
            header.started,
            one.messages,
            one_line(&header.cwd),
            one_line(&cut(first, 80))
        );
    }
    output.text(&text)
}

fn summary(one: &Summary) -> Value {
    let header = &one.header;
    json!({"id": header.id, "startTime": header.started, "cwd": header.cwd, "model": header.model,
        "messages": one.messages, "first": one.first})
}

fn show(id: &str, as_json: bool, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let loaded = ollm_agent::load(&sessions(context), id);
    let saved = loaded.map_err(|error| no_transcript(&error, context))?;
    for note in &saved.notes {
        output.tell(note);
    }
    let header = &saved.header;
    if as_json {
        return output.json(&json!({"id": header.id, "startTime": header.started, "cwd": header.cwd,
            "model": header.model, "messages": saved.messages.iter().map(Message::to_json).collect::<Vec<_>>(),
            "entries": saved.entries}));
    }
    let mut text =
        format!("{}  {}  {}  {}\n", header.id, header.started, one_line(&header.model), one_line(&header.cwd));
    for message in &saved.messages {
        let _ = write!(text, "\n[{}]\n{}\n", message.role(), escape_for_people(message.content()));
        if let Message::Assistant { calls, .. } = message {
            for call in calls {
                let _ = writeln!(text, "→ {} {}", one_line(&call.name), one_line(&call.arguments.text()));
            }
        }
    }
    output.text(&text)
}
