//! Chat completions as OpenAI defined them and most servers speak them, streamed.

use ollm_protocol::Tool;
use ollm_protocol::schema::{Api, lower};
use ollm_store::cut;
use serde_json::{Map, Value, json};

use super::client::{Client, KeyHeader};
use super::draft::{Draft, Fragment};
use super::http::Reply;
use super::protocol::{Connection, Protocol, ask};
use super::refusal::{Refusal, complaint};
use super::shape::{Form, shaped};
use super::stream::{Framing, Taken};
use super::{Answer, Model, ModelError, Piece, Question};
use crate::cancel::Cancel;
use crate::message::{Arguments, Call, Message};

/// How the addresses of OpenAI's own servers begin.
pub(super) const OPENAI: &str = "https://api.openai.com/";

/// Where servers tell how many tokens the model can look at.
const WINDOW_FIELDS: &[&str] =
    &["/meta/n_ctx", "/max_model_len", "/context_length", "/context_window", "/max_context_length"];

/// A model behind an OpenAI-compatible address.
#[derive(Debug)]
pub struct OpenAi {
    client: Client,
    model: String,
    options: Map<String, Value>,
    form: Form,
    /// Whether the server takes `stream_options`.
    counts: bool,
    /// The window, if the server tells it.
    window: Option<u64>,
    /// Whether the server was asked for it.
    asked: bool,
}

impl OpenAi {
    /// A model at an address like `http://127.0.0.1:8080/v1`.
    pub fn new(connection: Connection) -> OpenAi {
        OpenAi {
            client: Client::new(&connection, KeyHeader::Bearer),
            options: connection.settings(),
            model: connection.model,
            form: Form::default(),
            counts: true,
            window: None,
            asked: false,
        }
    }

    /// The names of the models the server offers.
    pub fn models(&self, cancel: &Cancel) -> Result<Vec<String>, ModelError> {
        let list = self.client.json("/models", None, cancel)?;
        // A server without models says `null`.
        let listed = list.get("data").and_then(Value::as_array).into_iter().flatten();
        Ok(listed.filter_map(|model| model.get("id")?.as_str()).map(str::to_owned).collect())
    }

    fn whole(&self, mut reply: Reply<'_>, most: usize, hear: &mut dyn FnMut(Piece<'_>)) -> Result<Answer, ModelError> {
        let body = reply.body(most.saturating_mul(2).saturating_add(1 << 20))?;
        let whole: Value = serde_json::from_slice(&body).map_err(|error| self.client.malformed(&error.to_string()))?;
        if let Some(complaint) = complaint(&whole) {
            return Err(self.client.dropped(&complaint));
        }
        let mut draft = Draft::new(most);
        take(&mut draft, &whole, hear);
        Ok(draft.finish())
    }

    /// What the server tells of itself: in its list of models, or as llama-server does; an error if it may tell later.
    fn ask_window(&self, cancel: &Cancel) -> Result<Option<u64>, ModelError> {
        // It does not tell, is far away, and has room.
        if self.client.base_url.starts_with(OPENAI) {
            return Ok(None);
        }
        let list = match self.client.json("/models", None, cancel) {
            Ok(list) => list,
            Err(ModelError::Refused { status, .. }) if status != 503 => Value::Null,
            Err(error) => return Err(error),
        };
        let models = list.get("data").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let named = models.iter().find(|model| model.get("id").and_then(Value::as_str) == Some(&self.model));
        let only = models.first().filter(|_| models.len() == 1);
        let told = named.or(only).and_then(|model| {
            WINDOW_FIELDS.iter().find_map(|field| model.pointer(field)?.as_u64()).filter(|window| *window > 0)
        });
        Ok(told.or_else(|| self.props(cancel)))
    }

    /// llama-server tells what it was started with beside the API.
    fn props(&self, cancel: &Cancel) -> Option<u64> {
        let props = self.client.json_beside("/props", cancel)?;
        props.pointer("/default_generation_settings/n_ctx")?.as_u64().filter(|window| *window > 0)
    }
}

impl Protocol for OpenAi {
    fn client(&self) -> &Client {
        &self.client
    }

    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn body(&self, question: &Question<'_>) -> Value {
        let mut body = chat_body((&self.model, self.form), question, Api::Object, message);
        if self.counts {
            body.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
        for (name, value) in &self.options {
            body.entry(name).or_insert_with(|| value.clone());
        }
        body.into()
    }

    fn adapt(&mut self, refusal: &Refusal, question: &Question<'_>, hear: &mut dyn FnMut(Piece<'_>)) -> bool {
        if self.form.adapt(&self.model, refusal, question, hear) {
            return true;
        }
        if self.counts && refusal.names("stream_options") {
            self.counts = false;
            return true;
        }
        false
    }

    fn hint(&self, refusal: &Refusal) -> String {
        refusal.hint(refusal.url.starts_with(OPENAI).then_some("OPENAI_API_KEY"))
    }

    fn read(&mut self, reply: Reply<'_>, most: usize, hear: &mut dyn FnMut(Piece<'_>)) -> Result<Answer, ModelError> {
        // A server that does not stream sends everything at once.
        if reply.head.is_json {
            return self.whole(reply, most, hear);
        }
        self.client.read(reply, (Framing::events(), most), hear, &mut take)
    }
}

impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.model
    }

    fn answer(&mut self, question: &Question<'_>, hear: &mut dyn FnMut(Piece<'_>)) -> Result<Answer, ModelError> {
        ask(self, question, hear)
    }

    fn window(&mut self, cancel: &Cancel) -> Option<u64> {
        if !self.asked {
            self.window = self.ask_window(cancel).ok()?;
            self.asked = true;
        }
        self.window
    }
}

/// Takes one event of a stream, or a whole answer.
fn take(draft: &mut Draft, event: &Value, hear: &mut dyn FnMut(Piece<'_>)) -> Taken {
    if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
        draft.usage(usage);
    }
    let Some(choice) = event.pointer("/choices/0") else { return Taken::More };
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
    if reason.is_some() { Taken::Finished } else { Taken::More }
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

/// Arguments as an object: servers refuse a whole conversation for some that are no JSON.
pub(super) fn sendable(arguments: &Arguments) -> Map<String, Value> {
    match arguments {
        Arguments::Object(map) => map.clone(),
        Arguments::Broken(text) => Map::from_iter([("unreadable".to_owned(), cut(text, 1000).into_owned().into())]),
    }
}

/// What chat completions and Ollama have in common: the model, the messages and the tools.
pub(super) fn chat_body(
    (model, form): (&str, Form),
    question: &Question<'_>,
    api: Api,
    message: fn(&Message) -> Value,
) -> Map<String, Value> {
    let messages = shaped(question.messages, form);
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    body.insert("messages".to_owned(), messages.iter().map(message).collect());
    body.insert("stream".to_owned(), true.into());
    if !question.tools.is_empty() && form.tools {
        body.insert("tools".to_owned(), question.tools.iter().map(|offered| tool(offered, api)).collect());
    }
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
            assert_eq!(take(&mut draft, &end, &mut |_| {}), Taken::Finished);
            let answer = draft.finish();
            assert_eq!((answer.reasoning.as_str(), answer.cut), ("hm", Some(super::super::Cut::Length)));
        }
    }
}
