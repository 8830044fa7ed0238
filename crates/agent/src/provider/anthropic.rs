//! Anthropic's Messages protocol, streamed.

use std::collections::BTreeMap;

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
use crate::message::{Call, Message};

/// The version of the protocol.
const VERSION: &str = "2023-06-01";
/// The most tokens of an answer if the settings give no limit.
const USUAL_TOKENS: u64 = 8192;

/// A model behind Anthropic's Messages protocol.
pub type Anthropic = RemoteModel<Messages>;

/// The protocol.
#[derive(Debug, Default)]
pub struct Messages {
    /// The thinking blocks before calls, which the server wants back.
    thoughts: Thoughts,
}

impl Anthropic {
    /// A model at an address like `https://api.anthropic.com/v1`.
    pub fn new(connection: Connection) -> Anthropic {
        let mut endpoint = Endpoint::new(connection, KeyHeader::ApiKey);
        endpoint.client = endpoint.client.header("anthropic-version", VERSION);
        // The protocol requires a limit.
        endpoint.options.entry("max_tokens").or_insert_with(|| USUAL_TOKENS.into());
        RemoteModel { endpoint, protocol: Messages::default() }
    }
}

impl Messages {
    /// The messages in the protocol's form. Results are part of the prompt that follows their calls.
    fn messages(&self, talk: &[Message]) -> Value {
        let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
        for message in talk {
            let (role, blocks) = match message {
                Message::System(text) | Message::User(text) => ("user", words(text)),
                Message::Assistant { content, calls } => ("assistant", self.answer_blocks(content, calls)),
                Message::Tool { call_id, content, .. } => {
                    ("user", vec![json!({"type": "tool_result", "tool_use_id": call_id, "content": content})])
                }
            };
            match messages.last_mut() {
                Some((last, before)) if *last == role => before.extend(blocks),
                _ => messages.push((role, blocks)),
            }
        }
        messages.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
    }

    fn answer_blocks(&self, content: &str, calls: &[Call]) -> Vec<Value> {
        let thoughts = self.thoughts.before(calls);
        let calls = calls.iter().map(
            |call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": sendable(&call.arguments)}),
        );
        thoughts.into_iter().chain(words(content)).chain(calls).collect()
    }
}

impl Protocol for Messages {
    const PATH: &'static str = "/messages";

    type Parts = Blocks;

    fn body(&self, endpoint: &Endpoint, question: &Question<'_>) -> Value {
        let (system, talk) = endpoint.system_and_messages(question);
        let mut body = Map::new();
        body.insert("model".to_owned(), endpoint.model.clone().into());
        body.insert("stream".to_owned(), true.into());
        body.extend(system.map(|text| ("system".to_owned(), text.into())));
        body.insert("messages".to_owned(), self.messages(&talk));
        body.extend(endpoint.tools(question, tool));
        endpoint.with_options(body)
    }

    /// Turns thinking off if the server misses earlier thinking blocks, for example after a session was resumed.
    fn adapt(&mut self, endpoint: &mut Endpoint, refusal: &Refusal, hear: &mut dyn FnMut(Piece<'_>)) -> bool {
        let misses =
            refusal.status == 400 && refusal.text.contains("thinking") && endpoint.options.contains_key("thinking");
        if misses {
            endpoint.options.shift_remove("thinking");
            hear(Piece::Status("the model goes on without `thinking`, which the server refuses here"));
        }
        misses
    }

    fn take(parts: &mut Blocks, draft: &mut Draft, event: &Value, hear: &mut dyn FnMut(Piece<'_>)) -> StreamStep {
        parts.take(draft, event, hear)
    }

    fn keep(&mut self, parts: Blocks, answer: &ModelAnswer) -> Result<(), String> {
        self.thoughts.keep(answer, parts.thoughts());
        Ok(())
    }
}

/// The parts of an answer other than its text.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// The thinking blocks by their index.
    thoughts: BTreeMap<u64, Map<String, Value>>,
    read: u64,
}

impl Blocks {
    fn take(&mut self, draft: &mut Draft, event: &Value, hear: &mut dyn FnMut(Piece<'_>)) -> StreamStep {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let index = event.get("index").and_then(Value::as_u64);
        match text("/type") {
            "message_start" => self.read = read_tokens(event.pointer("/message/usage").unwrap_or(&Value::Null)),
            "content_block_start" => match text("/content_block/type") {
                "tool_use" => draft.call(&Fragment {
                    index,
                    id: text("/content_block/id"),
                    name: text("/content_block/name"),
                    arguments: None,
                }),
                "text" => draft.text(text("/content_block/text"), hear),
                "thinking" | "redacted_thinking" => {
                    let block = event.get("content_block").and_then(Value::as_object).cloned().unwrap_or_default();
                    self.thoughts.insert(index.unwrap_or(0), block);
                }
                _ => {}
            },
            "content_block_delta" => self.delta(draft, index, event.get("delta").unwrap_or(&Value::Null), hear),
            "message_delta" => {
                if text("/delta/stop_reason") == "max_tokens" {
                    draft.ran_out();
                }
                let written = event.pointer("/usage/output_tokens").and_then(Value::as_u64).unwrap_or(0);
                draft.usage(&json!({"prompt_tokens": self.read, "completion_tokens": written}));
                return StreamStep::Finished;
            }
            "message_stop" => return StreamStep::Last,
            _ => {}
        }
        StreamStep::More
    }

    fn delta(&mut self, draft: &mut Draft, index: Option<u64>, delta: &Value, hear: &mut dyn FnMut(Piece<'_>)) {
        let text = |field: &str| delta.get(field).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text_delta" => draft.text(text("text"), hear),
            "input_json_delta" => {
                draft.call(&Fragment { index, arguments: delta.get("partial_json"), ..Fragment::default() });
            }
            "thinking_delta" => {
                draft.thought(text("thinking"), hear);
                self.extend(index, "thinking", text("thinking"));
            }
            "signature_delta" => self.extend(index, "signature", text("signature")),
            _ => {}
        }
    }

    fn extend(&mut self, index: Option<u64>, field: &str, more: &str) {
        let Some(block) = self.thoughts.get_mut(&index.unwrap_or(0)) else { return };
        let before = block.get(field).and_then(Value::as_str).unwrap_or_default();
        let whole = format!("{before}{more}");
        block.insert(field.to_owned(), whole.into());
    }

    fn thoughts(self) -> Vec<Value> {
        self.thoughts.into_values().map(Value::Object).collect()
    }
}

fn read_tokens(usage: &Value) -> u64 {
    let count = |field: &str| usage.get(field).and_then(Value::as_u64).unwrap_or(0);
    let parts = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    parts.iter().fold(0, |sum: u64, part| sum.saturating_add(count(part)))
}

/// Text as a list of blocks; the protocol allows no empty block.
fn words(text: &str) -> Vec<Value> {
    if text.is_empty() { Vec::new() } else { vec![json!({"type": "text", "text": text})] }
}

fn tool(tool: &Tool) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": lower(&tool.input, Api::Object).schema})
}
