//! OpenAI's Responses protocol, streamed. The server stores nothing: every question contains the whole conversation.

use ollm_protocol::Tool;
use ollm_protocol::schema::{Api, lower};
use serde_json::{Map, Value, json};

use super::client::KeyHeader;
use super::draft::{Draft, Fragment};
use super::endpoint::Endpoint;
use super::openai::sendable;
use super::protocol::{Connection, Protocol, RemoteModel};
use super::refusal::Refusal;
use super::stream::StreamStep;
use super::thoughts::Thoughts;
use super::{ModelAnswer, Piece, Question};
use crate::message::Message;

/// A model behind OpenAI's Responses protocol.
pub type Responses = RemoteModel<ResponseItems>;

/// The protocol.
#[derive(Debug)]
pub struct ResponseItems {
    /// Whether to request the model's encrypted reasoning, so that it can be sent back.
    sealed: bool,
    /// The reasoning items before calls, which the server wants back.
    thoughts: Thoughts,
}

impl Responses {
    /// A model at an address like `https://api.openai.com/v1`; `max_tokens` is `max_output_tokens` here.
    pub fn new(connection: Connection) -> Responses {
        let mut endpoint = Endpoint::new(connection, KeyHeader::Bearer);
        if let Some(most) = endpoint.options.shift_remove("max_tokens") {
            endpoint.options.insert("max_output_tokens".to_owned(), most);
        }
        RemoteModel { endpoint, protocol: ResponseItems { sealed: true, thoughts: Thoughts::default() } }
    }
}

impl ResponseItems {
    fn items(&self, message: &Message) -> Vec<Value> {
        match message {
            Message::System(text) | Message::User(text) => {
                vec![json!({"role": "user", "content": [{"type": "input_text", "text": text}]})]
            }
            Message::Tool { call_id, content, .. } => {
                vec![json!({"type": "function_call_output", "call_id": call_id, "output": content})]
            }
            Message::Assistant { content, calls } => {
                let thoughts = self.thoughts.before(calls);
                let said = (!content.is_empty())
                    .then(|| json!({"role": "assistant", "content": [{"type": "output_text", "text": content}]}));
                let calls = calls.iter().map(|call| {
                    let arguments = Value::Object(sendable(&call.arguments)).to_string();
                    json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
                });
                thoughts.into_iter().chain(said).chain(calls).collect()
            }
        }
    }
}

impl Protocol for ResponseItems {
    const PATH: &'static str = "/responses";

    type Parts = Items;

    fn body(&self, endpoint: &Endpoint, question: &Question<'_>) -> Value {
        let (system, talk) = endpoint.system_and_messages(question);
        let mut body = Map::new();
        body.insert("model".to_owned(), endpoint.model.clone().into());
        body.extend(system.map(|text| ("instructions".to_owned(), text.into())));
        body.insert("input".to_owned(), talk.iter().flat_map(|message| self.items(message)).collect());
        body.insert("stream".to_owned(), true.into());
        body.insert("store".to_owned(), false.into());
        if self.sealed {
            body.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
        }
        body.extend(endpoint.tools(question, tool));
        endpoint.with_options(body)
    }

    /// Stops requesting encrypted reasoning, because models without reasoning have none.
    fn adapt(&mut self, _: &mut Endpoint, refusal: &Refusal, _: &mut dyn FnMut(Piece<'_>)) -> bool {
        let refuses = refusal.names("include") || refusal.names("ncrypted");
        refuses && std::mem::replace(&mut self.sealed, false)
    }

    fn take(parts: &mut Items, draft: &mut Draft, event: &Value, hear: &mut dyn FnMut(Piece<'_>)) -> StreamStep {
        parts.take(draft, event, hear)
    }

    fn keep(&mut self, parts: Items, answer: &ModelAnswer) -> Result<(), String> {
        self.thoughts.keep(answer, parts.thoughts);
        parts.failed.map_or(Ok(()), Err)
    }
}

/// The parts of an answer other than its text.
#[derive(Debug, Default)]
pub(crate) struct Items {
    thoughts: Vec<Value>,
    /// Whether the text came in pieces.
    heard: bool,
    failed: Option<String>,
}

impl Items {
    fn take(&mut self, draft: &mut Draft, event: &Value, hear: &mut dyn FnMut(Piece<'_>)) -> StreamStep {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        match text("/type") {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.heard = true;
                draft.text(text("/delta"), hear);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                draft.thought(text("/delta"), hear);
            }
            "response.output_item.done" => self.item(draft, event.get("item").unwrap_or(&Value::Null), hear),
            "response.completed" | "response.incomplete" => {
                if text("/response/incomplete_details/reason") == "max_output_tokens" {
                    draft.ran_out();
                }
                if let Some(usage) = event.pointer("/response/usage").filter(|usage| usage.is_object()) {
                    draft.usage(usage);
                }
                return StreamStep::Last;
            }
            "response.failed" => {
                let why = text("/response/error/message");
                self.failed = Some(if why.is_empty() { "the response failed" } else { why }.to_owned());
                return StreamStep::Last;
            }
            _ => {}
        }
        StreamStep::More
    }

    fn item(&mut self, draft: &mut Draft, item: &Value, hear: &mut dyn FnMut(Piece<'_>)) {
        let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "function_call" => draft.call(&Fragment {
                index: None,
                id: text("call_id"),
                name: text("name"),
                arguments: item.get("arguments"),
            }),
            "reasoning" if item.get("encrypted_content").is_some_and(Value::is_string) => {
                self.thoughts.push(item.clone());
            }
            "message" if !self.heard => {
                let parts = item.get("content").and_then(Value::as_array).into_iter().flatten();
                parts.filter_map(|part| part.get("text")?.as_str()).for_each(|words| draft.text(words, hear));
            }
            _ => {}
        }
    }
}

fn tool(tool: &Tool) -> Value {
    let parameters = lower(&tool.input, Api::Object).schema;
    json!({"type": "function", "name": tool.name, "description": tool.description, "parameters": parameters, "strict": false})
}
