//! `ollm mcp prompts`: what a server suggests to ask.

use ollm_store::escape_for_people;
use serde_json::Value;

use super::super::hook::columns;
use super::{object, unanswered, with_server};
use crate::error::Failure;
use crate::output::Output;
use crate::servers::{Live, Servers};
use crate::world::World;

pub(super) fn run(
    server: &str,
    prompt: Option<String>,
    args: Option<&str>,
    world: &World,
    as_json: bool,
    output: &mut Output,
) -> Result<u8, Failure> {
    let args = object(args)?;
    let servers = Servers::load(world)?;
    servers.tell_problems(output);
    with_server(&servers, server, output, |live, _, output| {
        let Some(prompt) = prompt else { return list(live, server, as_json, output) };
        let answer = live.wait(live.fleet().prompt(server, prompt, args), |_| (), output).map_err(unanswered)?;
        if as_json { output.pretty_json(&answer) } else { output.text(&escape_for_people(&text(&answer))) }
    })
}

fn list(live: &Live, server: &str, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    let listing = live.fleet().prompts(server).map_err(unanswered)?;
    listing.warnings.iter().for_each(|warning| output.tell(&format!("server `{server}`: {warning}")));
    if as_json {
        return output.pretty_json(&Value::Array(listing.items));
    }
    output.text(&table(&listing.items))
}

fn table(items: &[Value]) -> String {
    if items.is_empty() {
        return "There are no prompts.\n".to_owned();
    }
    let head = ["NAME", "ARGUMENTS", "DESCRIPTION"].map(str::to_owned);
    let word = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let body = items.iter().map(|item| {
        let arguments = item.get("arguments").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let names: Vec<String> = arguments.iter().map(|argument| word(argument, "name")).collect();
        [word(item, "name"), names.join(", "), word(item, "description")]
    });
    columns(&std::iter::once(head).chain(body).collect::<Vec<_>>())
}

fn text(answer: &Value) -> String {
    let messages = answer.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let line = |message: &Value| {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        let content = message.get("content").unwrap_or(&Value::Null);
        let text = content.get("text").and_then(Value::as_str).map_or_else(|| content.to_string(), str::to_owned);
        format!("{role}: {text}\n")
    };
    messages.iter().map(line).collect()
}
