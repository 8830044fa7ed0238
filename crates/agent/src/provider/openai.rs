//! OpenAI's chat completions, which most servers support, streamed.

use ollm_protocol::Tool;
use ollm_protocol::schema::{Api, lower};
use ollm_store::cut;
use serde_json::{Map, Value, json};

use super::client::KeyHeader;
use super::draft::{Draft, Fragment};
use super::endpoint::Endpoint;
use super::protocol::{Connection, Protocol, RemoteModel};
use super::refusal::Refusal;
use super::stream::StreamStep;
use super::{ModelError, Piece, Question};
use crate::cancel::Cancel;
use crate::message::{Arguments, Call, Message};

/// A model behind an OpenAI-compatible address.
pub type OpenAi = RemoteModel<ChatCompletions>;

/// The protocol.
#[derive(Debug)]
pub struct ChatCompletions {
    /// Whether the server accepts `stream_options`.
    counts: bool,
}

impl OpenAi {
    /// A model at an address like `http://127.0.0.1:8080/v1`.
    pub fn new(connection: Connection) -> OpenAi {
        let endpoint = Endpoint::new(connection, KeyHeader::Bearer);
        RemoteModel { endpoint, protocol: ChatCompletions { counts: true } }
    }

    /// The names of the models on the server.
    pub fn models(&self, cancel: &Cancel) -> Result<Vec<String>, ModelError> {
        let list = self.endpoint.client.json("/models", None, cancel)?;
        // A server without models returns `null`.
        let listed = list.get("data").and_then(Value::as_array).into_iter().flatten();
        Ok(listed.filter_map(|model| model.get("id")?.as_str()).map(str::to_owned).collect())
    }
}

impl Protocol for ChatCompletions {
    const PATH: &'static str = "/chat/completions";
    const WHOLE: bool = true;

    type Parts = ();

    fn body(&self, endpoint: &Endpoint, question: &Question<'_>) -> Value {
        let mut body = chat_body(endpoint, question, Api::Object, message);
        if self.counts {
            body.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
        endpoint.with_options(body)
    }

    fn adapt(&mut self, _: &mut Endpoint, refusal: &Refusal, _: &mut dyn FnMut(Piece<'_>)) -> bool {
        refusal.names("stream_options") && std::mem::replace(&mut self.counts, false)
    }

    fn take((): &mut (), draft: &mut Draft, event: &Value, hear: &mut dyn FnMut(Piece<'_>)) -> StreamStep {
        take(draft, event, hear)
    }
}

/// Handles one event of a stream, or a whole answer.
fn take(draft: &mut Draft, event: &Value, hear: &mut dyn FnMut(Piece<'_>)) -> StreamStep {
    if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
        draft.usage(usage);
    }
    let Some(choice) = event.pointer("/choices/0") else { return StreamStep::More };
    let message = choice.get("delta").or_else(|| choice.get("message")).unwrap_or(&Value::Null);
    let text = |field: &str| message.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(thought) = ["reasoning_content", "reasoning", "thinking"].iter().find_map(|field| text(field)) {
        draft.thought(thought, hear);
    }
    if let Some(words) = text("content") {
        draft.text(words, hear);
    }
    for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let text = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        draft.call(&Fragment {
            index: call.get("index").and_then(Value::as_u64),
            id: text("/id"),
            name: text("/function/name"),
            arguments: call.pointer("/function/arguments"),
        });
    }
    let reason = choice.get("finish_reason").filter(|reason| !reason.is_null());
    if reason.is_some_and(|reason| reason == "length") {
        draft.ran_out();
    }
    if reason.is_some() { StreamStep::Finished } else { StreamStep::More }
}

fn message(message: &Message) -> Value {
    match message {
        Message::Assistant { content, calls } if !calls.is_empty() => json!({
            "role": "assistant",
            "content": content,
            "tool_calls": calls.iter().map(call).collect::<Vec<_>>(),
        }),
        Message::Tool { call_id, content, .. } => json!({"role": "tool", "tool_call_id": call_id, "content": content}),
        other => json!({"role": other.role(), "content": other.content()}),
    }
}

fn call(call: &Call) -> Value {
    let arguments = Value::Object(sendable(&call.arguments)).to_string();
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

/// Arguments as an object, because invalid JSON in them makes servers refuse the whole conversation.
pub(super) fn sendable(arguments: &Arguments) -> Map<String, Value> {
    match arguments {
        Arguments::Object(map) => map.clone(),
        Arguments::Broken(text) => Map::from_iter([("unreadable".to_owned(), cut(text, 1000).into_owned().into())]),
    }
}

/// The fields that chat completions and Ollama share: the model, the messages and the tools.
pub(super) fn chat_body(
    endpoint: &Endpoint,
    question: &Question<'_>,
    api: Api,
    message: fn(&Message) -> Value,
) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".to_owned(), endpoint.model.clone().into());
    body.insert("messages".to_owned(), endpoint.messages(question).iter().map(message).collect());
    body.insert("stream".to_owned(), true.into());
    body.extend(endpoint.tools(question, |offered| tool(offered, api)));
    body
}

fn tool(tool: &Tool, api: Api) -> Value {
    let parameters = lower(&tool.input, api).schema;
    json!({
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_arguments_go_back_as_json() {
        let sent = call(&Call { id: "1".into(), name: "x".into(), arguments: Arguments::Broken("{".into()) });
        assert_eq!(sent["function"]["arguments"], "{\"unreadable\":\"{\"}");
    }

    #[test]
    fn thoughts_and_the_limit_of_tokens_are_read_under_every_name() {
        for field in ["reasoning_content", "reasoning", "thinking"] {
            let mut draft = Draft::new(100);
            take(&mut draft, &json!({"choices": [{"delta": {field: "hm"}}]}), &mut |_| {});
            let end = json!({"choices": [{"delta": {}, "finish_reason": "length"}]});
            assert_eq!(take(&mut draft, &end, &mut |_| {}), StreamStep::Finished);
            let answer = draft.finish(&mut |_| {});
            assert_eq!((answer.reasoning.as_str(), answer.cut), ("hm", Some(super::super::CutReason::Length)));
        }
    }
}
