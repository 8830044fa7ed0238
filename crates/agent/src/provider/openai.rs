//! OpenAI's chat completions, which most servers support, streamed.

use ollm_protocol::Tool;
use ollm_protocol::schema::{Api, lower};
use ollm_store::cut;
use serde_json::{Map, Value, json};

use super::client::KeyHeader;
use super::draft::{Draft, Fragment};
use super::endpoint::{Endpoint, OPENAI};
use super::http::Reply;
use super::protocol::{Connection, Protocol};
use super::refusal::{Refusal, complaint, plain};
use super::stream::{Framing, StreamStep};
use super::{ModelAnswer, ModelError, Piece, Question};
use crate::cancel::Cancel;
use crate::message::{Arguments, Call, Message};

/// A model behind an OpenAI-compatible address.
#[derive(Debug)]
pub struct OpenAi {
    endpoint: Endpoint,
    /// Whether the server accepts `stream_options`.
    counts: bool,
}

impl OpenAi {
    /// A model at an address like `http://127.0.0.1:8080/v1`.
    pub fn new(connection: Connection) -> OpenAi {
        OpenAi { endpoint: Endpoint::new(connection, KeyHeader::Bearer), counts: true }
    }

    /// The names of the models on the server.
    pub fn models(&self, cancel: &Cancel) -> Result<Vec<String>, ModelError> {
        let list = self.endpoint.client.json("/models", None, cancel)?;
        // A server without models returns `null`.
        let listed = list.get("data").and_then(Value::as_array).into_iter().flatten();
        Ok(listed.filter_map(|model| model.get("id")?.as_str()).map(str::to_owned).collect())
    }

    fn whole(
        &self,
        mut reply: Reply<'_>,
        most: usize,
        hear: &mut dyn FnMut(Piece<'_>),
    ) -> Result<ModelAnswer, ModelError> {
        let body = reply.body(most.saturating_mul(2).saturating_add(1 << 20))?;
        let whole: Value = serde_json::from_slice(&body).map_err(|error| {
            let page = body.starts_with(b"<").then(|| format!("it is no JSON, but {}", plain(&body)));
            self.endpoint.client.malformed(&page.unwrap_or_else(|| error.to_string()))
        })?;
        if let Some(complaint) = complaint(&whole) {
            return Err(self.endpoint.client.dropped(&complaint));
        }
        let mut draft = Draft::new(most);
        take(&mut draft, &whole, hear);
        Ok(draft.finish(hear))
    }
}

impl Protocol for OpenAi {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn body(&self, question: &Question<'_>) -> Value {
        let mut body = chat_body(&self.endpoint, question, Api::Object, message);
        if self.counts {
            body.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
        self.endpoint.with_options(body)
    }

    fn adapt(&mut self, refusal: &Refusal, _: &mut dyn FnMut(Piece<'_>)) -> bool {
        refusal.names("stream_options") && std::mem::replace(&mut self.counts, false)
    }

    fn hint(&self, refusal: &Refusal) -> String {
        refusal.hint(refusal.url.starts_with(OPENAI).then_some("OPENAI_API_KEY"))
    }

    fn read(
        &mut self,
        reply: Reply<'_>,
        most: usize,
        hear: &mut dyn FnMut(Piece<'_>),
    ) -> Result<ModelAnswer, ModelError> {
        // A server that does not stream sends the whole answer at once.
        if reply.head.is_json {
            return self.whole(reply, most, hear);
        }
        self.endpoint.client.read(reply, (Framing::events(), most), hear, &mut take)
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
