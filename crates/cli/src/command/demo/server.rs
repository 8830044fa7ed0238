//! The MCP server of the demo: one tool, over standard input and output. The demo's own program serves it, so that
//! nothing needs to be installed.

use std::io::BufRead;

use serde_json::{Value, json};

use crate::error::{Failure, OK};
use crate::output::Output;

/// Longer lines do not come from our own client.
const LONGEST: usize = 1 << 20;

/// Answers requests until the input ends.
pub(crate) fn run(output: &mut Output) -> Result<u8, Failure> {
    for line in std::io::stdin().lock().lines().map_while(Result::ok).take_while(|line| line.len() <= LONGEST) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        // A message without an id wants no answer.
        let Some(id) = message.get("id") else { continue };
        let mut answer = json!({"jsonrpc": "2.0", "id": id});
        let (field, value) = match reply(&message) {
            Some(result) => ("result", result),
            None => ("error", json!({"code": -32601, "message": "there is no such method"})),
        };
        if let Some(answer) = answer.as_object_mut() {
            answer.insert(field.to_owned(), value);
        }
        output.json(&answer)?;
    }
    Ok(OK)
}

fn reply(message: &Value) -> Option<Value> {
    match message.get("method")?.as_str()? {
        "initialize" => Some(json!({
            "protocolVersion": message.pointer("/params/protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "tickets", "version": env!("CARGO_PKG_VERSION")},
        })),
        "ping" => Some(json!({})),
        "tools/list" => Some(json!({"tools": [{
            "name": "lookup",
            "description": "Look up a ticket by its id.",
            "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
            "annotations": {"readOnlyHint": true},
        }]})),
        "tools/call" => Some(called(message.pointer("/params/arguments/id").and_then(Value::as_str))),
        _ => None,
    }
}

fn called(id: Option<&str>) -> Value {
    let (text, is_error) = match id {
        Some("DEMO-7") => ("DEMO-7, open: The greeting has a typo. It should say Hello.", false),
        _ => ("there is no such ticket; there is DEMO-7", true),
    };
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}
