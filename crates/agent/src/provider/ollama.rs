//! Ollama's own protocol: answers with tools and reasoning, streamed as lines of JSON.

use ollm_protocol::schema::Api;
use serde_json::{Map, Value, json};

use super::client::KeyHeader;
use super::draft::{Draft, Fragment};
use super::endpoint::Endpoint;
use super::openai::{chat_body, sendable};
use super::protocol::{Connection, Protocol, RemoteModel};
use super::refusal::Refusal;
use super::stream::{Framing, StreamStep};
use super::{ModelError, Piece, Question};
use crate::cancel::Cancel;
use crate::message::Message;

mod library;

pub use library::{ModelDetails, ModelEntry, PullProgress};

/// Settings that are separate fields of a request, outside its options.
const BESIDE: &[&str] = &["keep_alive", "think", "format", "truncate", "shift"];
/// Setting names of other servers, with Ollama's names for them.
const NAMES: &[(&str, &str)] = &[("max_tokens", "num_predict"), ("keepAlive", "keep_alive")];

/// A model of an Ollama server.
pub type Ollama = RemoteModel<OllamaChat>;

/// The protocol; the options of its endpoint are sent in the field `options`.
#[derive(Debug)]
pub struct OllamaChat {
    /// The settings outside the options.
    beside: Map<String, Value>,
}

impl Ollama {
    /// A model at an address like `http://127.0.0.1:11434`; a `/v1` at its end is dropped. Some options, such as
    /// `keep_alive`, `think` and `format`, become separate fields of the request.
    pub fn new(connection: Connection) -> Ollama {
        let base = connection.base_url.trim_end_matches('/');
        let base_url = base.strip_suffix("/v1").unwrap_or(base).to_owned();
        let mut endpoint = Endpoint::new(Connection { base_url, ..connection }, KeyHeader::Bearer);
        let named = std::mem::take(&mut endpoint.options).into_iter().map(|(name, value)| {
            let ours = NAMES.iter().find(|(other, _)| *other == name);
            (ours.map_or(name, |(_, ours)| (*ours).to_owned()), value)
        });
        let (beside, options) = named.partition(|(name, _): &(String, Value)| BESIDE.contains(&name.as_str()));
        endpoint.options = options;
        RemoteModel { endpoint, protocol: OllamaChat { beside } }
    }
}

impl Protocol for OllamaChat {
    const PATH: &'static str = "/api/chat";

    type Parts = ();

    fn body(&self, endpoint: &Endpoint, question: &Question<'_>) -> Value {
        let mut body = chat_body(endpoint, question, Api::Simple, message);
        if !endpoint.options.is_empty() {
            body.insert("options".to_owned(), endpoint.options.clone().into());
        }
        for (name, value) in &self.beside {
            body.insert(name.clone(), value.clone());
        }
        body.into()
    }

    fn adapt(&mut self, endpoint: &mut Endpoint, refusal: &Refusal, hear: &mut dyn FnMut(Piece<'_>)) -> bool {
        let misses = self.beside.contains_key("think") && refusal.text.contains("does not support thinking");
        if misses {
            self.beside.shift_remove("think");
            hear(Piece::Status(&format!("{} does not think; `think` is left out", endpoint.model)));
        }
        misses
    }

    fn hint(&self, endpoint: &Endpoint, refusal: &Refusal) -> String {
        match refusal.status {
            404 if refusal.text.contains("not found") && refusal.text.contains("model") => {
                format!("; fetch it first: `ollama pull {}`", endpoint.model)
            }
            200 | 404 => {
                "; this is no Ollama, write openai:NAME@URL for a server that speaks OpenAI's protocol".to_owned()
            }
            _ => refusal.hint(),
        }
    }

    fn framing() -> Framing {
        Framing::lines()
    }

    fn take((): &mut (), draft: &mut Draft, event: &Value, hear: &mut dyn FnMut(Piece<'_>)) -> StreamStep {
        take(draft, event, hear)
    }

    /// The window that the model was loaded with; before that, the one in its file. Asked each time, because it changes
    /// when the model is loaded.
    fn window(model: &mut Ollama, cancel: &Cancel) -> Option<u64> {
        let set = model.endpoint.options.get("num_ctx").and_then(Value::as_u64);
        set.or_else(|| model.loaded_window(cancel)).or_else(|| model.show(cancel).ok()?.num_ctx)
    }
}

/// Handles one line of a stream.
fn take(draft: &mut Draft, event: &Value, hear: &mut dyn FnMut(Piece<'_>)) -> StreamStep {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    draft.thought(text("/message/thinking"), hear);
    draft.text(text("/message/content"), hear);
    for call in event.pointer("/message/tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let text = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let arguments = call.pointer("/function/arguments");
        draft.call(&Fragment { index: None, id: text("/id"), name: text("/function/name"), arguments });
    }
    if event.get("done") != Some(&Value::Bool(true)) {
        return StreamStep::More;
    }
    if text("/done_reason") == "length" {
        draft.ran_out();
    }
    let count = |field: &str| event.get(field).and_then(Value::as_u64);
    if let (Some(read), Some(written)) = (count("prompt_eval_count"), count("eval_count")) {
        draft.usage(&json!({"prompt_tokens": read, "completion_tokens": written}));
    }
    StreamStep::Last
}

fn message(message: &Message) -> Value {
    match message {
        Message::Assistant { content, calls } if !calls.is_empty() => {
            let calls: Value = calls
                .iter()
                .map(|call| json!({"function": {"name": call.name, "arguments": sendable(&call.arguments)}}))
                .collect();
            json!({"role": "assistant", "content": content, "tool_calls": calls})
        }
        Message::Tool { name, content, .. } => json!({"role": "tool", "tool_name": name, "content": content}),
        other => json!({"role": other.role(), "content": other.content()}),
    }
}

/// The address of an Ollama server, from the value of `OLLAMA_HOST`.
///
/// ```
/// assert_eq!(ollm_agent::ollama_url(None), "http://127.0.0.1:11434");
/// assert_eq!(ollm_agent::ollama_url(Some("0.0.0.0:9999")), "http://127.0.0.1:9999");
/// ```
pub fn ollama_url(host: Option<&str>) -> String {
    let host = host.map(str::trim).filter(|host| !host.is_empty()).unwrap_or("127.0.0.1");
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/');
    let (authority, path) =
        rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
    // A server can listen on this address, but no client can call it.
    let authority = match authority.strip_prefix("0.0.0.0") {
        Some(port) => format!("127.0.0.1{port}"),
        None if authority.starts_with(':') => format!("127.0.0.1{authority}"),
        None => authority.to_owned(),
    };
    let ported = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if ported || scheme == "https" { "" } else { ":11434" };
    format!("{scheme}://{authority}{port}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_the_host_is_understood() {
        for (host, url) in [
            ("", "http://127.0.0.1:11434"),
            ("box", "http://box:11434"),
            ("http://box:80/", "http://box:80"),
            ("https://box", "https://box"),
            (":5000", "http://127.0.0.1:5000"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("http://box:80/ollama", "http://box:80/ollama"),
        ] {
            assert_eq!(ollama_url(Some(host)), url, "{host}");
        }
    }

    #[test]
    fn settings_stand_where_ollama_looks_for_them() {
        let settings = json!({"max_tokens": 9, "num_ctx": 2000, "keep_alive": "10m", "think": false, "top_p": 0.9});
        let options = settings.as_object().unwrap().clone();
        let connection = Connection { temperature: Some(0.5), options, ..Connection::new("http://x:1/v1/", "m", None) };
        let model = Ollama::new(connection);
        let question = Question { messages: &[], tools: &[], most: 9, cancel: &Cancel::default() };
        let expected = json!({
            "model": "m", "messages": [], "stream": true, "keep_alive": "10m", "think": false,
            "options": {"temperature": 0.5, "num_ctx": 2000, "num_predict": 9, "top_p": 0.9},
        });
        assert_eq!(model.protocol.body(&model.endpoint, &question), expected);
        assert_eq!(model.endpoint.client.base_url, "http://x:1");
    }
}
