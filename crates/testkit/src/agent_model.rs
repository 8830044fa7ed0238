//! A model for other people's agents. It calls some tools, then says that it is done, in the wire form of the asking
//! agent.

use serde_json::{Value, json};

use crate::model_server::{Asked, ModelReply, ModelReplyEnd, answer_events};

/// A call of a [`reply_to_agent`].
#[derive(Clone, Debug)]
pub struct ScriptedCall {
    /// The tool, as the agent offers it.
    pub tool: &'static str,
    /// Its arguments.
    pub arguments: Value,
}

/// What is said in a turn.
enum Turn<'a> {
    /// A call, and its number.
    Call(&'a ScriptedCall, usize),
    Text(&'a str),
}

/// One way to talk to a model.
struct Wire {
    /// A part of the path that only this one has.
    path: &'static str,
    /// Whether a value in a request is what became of a call.
    is_result: fn(&Value) -> bool,
    /// The events of a turn.
    events: fn(&Turn<'_>) -> Vec<Value>,
    /// The last words of a stream.
    end: &'static str,
}

static WIRES: &[Wire] = &[
    Wire { path: "/chat/completions", is_result: |it| it["role"] == "tool", events: chat, end: "data: [DONE]\n\n" },
    Wire { path: "/responses", is_result: |it| it["type"] == "function_call_output", events: responses, end: "" },
    Wire { path: "/messages", is_result: |it| it["type"] == "tool_result", events: messages, end: "" },
    Wire { path: "enerateContent", is_result: |it| !it["functionResponse"].is_null(), events: gemini, end: "" },
];

/// The reply to an agent's request: one call after the other, each as long as its tool is offered, then a last word. None where
/// the request is not for a model's answer.
pub fn reply_to_agent(asked: &Asked, calls: &[ScriptedCall]) -> Option<ModelReply> {
    let wire = WIRES.iter().find(|wire| asked.path.contains(wire.path))?;
    let done = count(&asked.body, &|it| (wire.is_result)(it));
    let is_offered = |call: &&ScriptedCall| {
        asked.body.get("tools").is_some_and(|tools| count(tools, &|it| it["name"] == call.tool) > 0)
    };
    let turn = calls.get(done).filter(is_offered).map_or(Turn::Text("done"), |call| Turn::Call(call, done + 1));
    Some(stream(&(wire.events)(&turn), wire.end))
}

/// For how many values in a value, and the value itself, something holds.
fn count(value: &Value, what: &dyn Fn(&Value) -> bool) -> usize {
    let inside = match value {
        Value::Array(items) => items.iter().map(|item| count(item, what)).sum(),
        Value::Object(map) => map.values().map(|item| count(item, what)).sum(),
        _ => 0,
    };
    inside + usize::from(what(value))
}

/// Server-sent events, each named by its type where it has one.
fn stream(events: &[Value], end: &str) -> ModelReply {
    let line = |event: &Value| match event["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    let text = events.iter().map(line).collect::<Vec<_>>().concat() + end;
    ModelReply::bytes(text.as_bytes(), 1 << 16, ModelReplyEnd::Whole)
}

/// `OpenAI`'s chat completions.
fn chat(turn: &Turn<'_>) -> Vec<Value> {
    let mut events = match turn {
        Turn::Call(call, number) => {
            answer_events("", &[(&format!("call_{number}"), call.tool, &call.arguments.to_string())], 1 << 16)
        }
        Turn::Text(text) => answer_events(text, &[], 1 << 16),
    };
    for event in &mut events {
        event["id"] = json!("chat_1");
        event["object"] = json!("chat.completion.chunk");
        event["created"] = json!(0);
        event["model"] = json!("scripted");
    }
    events
}

/// `OpenAI`'s responses.
fn responses(turn: &Turn<'_>) -> Vec<Value> {
    let item = match turn {
        Turn::Call(call, number) => json!({
            "type": "function_call", "id": "item_1", "call_id": format!("call_{number}"), "name": call.tool,
            "arguments": call.arguments.to_string(),
        }),
        Turn::Text(text) => json!({
            "type": "message", "id": "item_1", "role": "assistant", "content": [{"type": "output_text", "text": text}],
        }),
    };
    let usage = json!({"input_tokens": 5, "output_tokens": 2, "total_tokens": 7});
    vec![
        json!({"type": "response.created", "response": {"id": "response_1"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "response_1", "usage": usage}}),
    ]
}

/// Anthropic's messages.
fn messages(turn: &Turn<'_>) -> Vec<Value> {
    let (block, delta, reason) = match turn {
        Turn::Call(call, number) => (
            json!({"type": "tool_use", "id": format!("call_{number}"), "name": call.tool, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": call.arguments.to_string()}),
            "tool_use",
        ),
        Turn::Text(text) => {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}), "end_turn")
        }
    };
    let message = json!({
        "id": "message_1", "type": "message", "role": "assistant", "model": "scripted", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 5, "output_tokens": 1},
    });
    let end = json!({"stop_reason": reason, "stop_sequence": null});
    vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": end, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ]
}

/// Google's content.
fn gemini(turn: &Turn<'_>) -> Vec<Value> {
    let part = match turn {
        Turn::Call(call, _) => json!({"functionCall": {"name": call.tool, "args": call.arguments}}),
        Turn::Text(text) => json!({"text": text}),
    };
    let candidate = json!({"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0});
    let usage = json!({"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7});
    vec![json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"})]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_is_called_where_it_is_offered_and_nothing_came_back_yet() {
        let call = ScriptedCall { tool: "shell", arguments: json!({"command": "ls"}) };
        let tools = json!([{"functionDeclarations": [{"name": "shell"}]}, {"name": "other"}]);
        for (path, result) in [
            ("/v1/chat/completions", json!({"role": "tool"})),
            ("/v1/responses", json!({"type": "function_call_output"})),
            ("/v1/messages?beta=true", json!({"type": "tool_result"})),
            ("/v1beta/models/m:streamGenerateContent?alt=sse", json!({"functionResponse": {"name": "shell"}})),
        ] {
            let calls = |tools: &Value, history: &Value| {
                let body = json!({"tools": tools, "history": [{"role": "user", "parts": [history]}]});
                let headers = Vec::new();
                let asked = Asked { path: path.to_owned(), headers, authorization: None, body, connection: 0 };
                let Some(ModelReply::Pieces { pieces, .. }) = reply_to_agent(&asked, std::slice::from_ref(&call))
                else {
                    return false;
                };
                String::from_utf8_lossy(&pieces.concat()).contains(r#""shell""#)
            };
            assert!(calls(&tools, &json!({})), "{path}");
            assert!(!calls(&json!([]), &json!({})), "{path}");
            assert!(!calls(&tools, &result), "{path}");
        }
    }
}
