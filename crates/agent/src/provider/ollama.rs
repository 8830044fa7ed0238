//! Ollama in its own language: answers with tools and thoughts, streamed as lines of JSON.

use ollm_protocol::schema::Api;
use serde_json::{Map, Value, json};

use super::client::{Client, KeyHeader};
use super::draft::{Draft, Fragment};
use super::http::Reply;
use super::openai::{chat_body, sendable};
use super::protocol::{Connection, Protocol, ask};
use super::refusal::Refusal;
use super::shape::Form;
use super::stream::{Framing, Taken};
use super::{Answer, Model, ModelError, Piece, Question};
use crate::cancel::Cancel;
use crate::message::Message;

mod library;

pub use library::{ModelDetails, ModelEntry, PullProgress};

/// Settings that stand beside the options of a request.
const BESIDE: &[&str] = &["keep_alive", "think", "format", "truncate", "shift"];
/// Settings by the names that other servers have for them.
const NAMES: &[(&str, &str)] = &[("max_tokens", "num_predict"), ("keepAlive", "keep_alive")];

/// A model of an Ollama server.
#[derive(Debug)]
pub struct Ollama {
    client: Client,
    model: String,
    /// What stands in `options`.
    options: Map<String, Value>,
    /// What stands beside them.
    beside: Map<String, Value>,
    form: Form,
}

impl Ollama {
    /// A model at an address like `http://127.0.0.1:11434`; a `/v1` at its end is dropped. Of the options `keep_alive`,
    /// `think` and `format` stand beside the others.
    pub fn new(mut connection: Connection) -> Ollama {
        let base = connection.base_url.trim_end_matches('/');
        connection.base_url = base.strip_suffix("/v1").unwrap_or(base).to_owned();
        let named = connection.settings().into_iter().map(|(name, value)| {
            let ours = NAMES.iter().find(|(other, _)| *other == name);
            (ours.map_or(name, |(_, ours)| (*ours).to_owned()), value)
        });
        let (beside, options) = named.partition(|(name, _): &(String, Value)| BESIDE.contains(&name.as_str()));
        Ollama {
            client: Client::new(&connection, KeyHeader::Bearer),
            model: connection.model,
            options,
            beside,
            form: Form::default(),
        }
    }
}

impl Protocol for Ollama {
    fn client(&self) -> &Client {
        &self.client
    }

    fn path(&self) -> &'static str {
        "/api/chat"
    }

    fn body(&self, question: &Question<'_>) -> Value {
        let mut body = chat_body((&self.model, self.form), question, Api::Simple, message);
        if !self.options.is_empty() {
            body.insert("options".to_owned(), self.options.clone().into());
        }
        for (name, value) in &self.beside {
            body.insert(name.clone(), value.clone());
        }
        body.into()
    }

    fn adapt(&mut self, refusal: &Refusal, question: &Question<'_>, hear: &mut dyn FnMut(Piece<'_>)) -> bool {
        if self.form.adapt(&self.model, refusal, question, hear) {
            return true;
        }
        if self.beside.contains_key("think") && refusal.text.contains("does not support thinking") {
            self.beside.shift_remove("think");
            hear(Piece::Status(&format!("{} does not think; `think` is left out", self.model)));
            return true;
        }
        false
    }

    fn hint(&self, refusal: &Refusal) -> String {
        match refusal.status {
            404 if refusal.text.contains("not found") && refusal.text.contains("model") => {
                format!("; fetch it first: `ollama pull {}`", self.model)
            }
            404 => "; this is no Ollama, write openai:NAME@URL for a server that speaks OpenAI's protocol".to_owned(),
            _ => refusal.hint(None),
        }
    }

    fn read(&mut self, reply: Reply<'_>, most: usize, hear: &mut dyn FnMut(Piece<'_>)) -> Result<Answer, ModelError> {
        self.client.read(reply, (Framing::lines(), most), hear, &mut take)
    }
}

/// Takes one line of a stream.
fn take(draft: &mut Draft, event: &Value, hear: &mut dyn FnMut(Piece<'_>)) -> Taken {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    draft.thought(text("/message/thinking"), hear);
    draft.text(text("/message/content"), hear);
    for call in event.pointer("/message/tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let text = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let arguments = call.pointer("/function/arguments");
        draft.call(&Fragment { index: None, id: text("/id"), name: text("/function/name"), arguments });
    }
    if event.get("done") != Some(&Value::Bool(true)) {
        return Taken::More;
    }
    if text("/done_reason") == "length" {
        draft.ran_out();
    }
    let count = |field: &str| event.get(field).and_then(Value::as_u64);
    if let (Some(read), Some(written)) = (count("prompt_eval_count"), count("eval_count")) {
        draft.usage(&json!({"prompt_tokens": read, "completion_tokens": written}));
    }
    Taken::Last
}

impl Model for Ollama {
    fn name(&self) -> &str {
        &self.model
    }

    fn answer(&mut self, question: &Question<'_>, hear: &mut dyn FnMut(Piece<'_>)) -> Result<Answer, ModelError> {
        ask(self, question, hear)
    }

    /// What the model was loaded with; before that, what its file says. Asked each time, since it changes with loading.
    fn window(&mut self, cancel: &Cancel) -> Option<u64> {
        let set = self.options.get("num_ctx").and_then(Value::as_u64);
        set.or_else(|| self.loaded_window(cancel)).or_else(|| self.show(cancel).ok()?.num_ctx)
    }
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

/// The address of an Ollama, from the value of `OLLAMA_HOST`.
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
    // The address a server listens on everywhere is none to call.
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
        assert_eq!(model.body(&question), expected);
        assert_eq!(model.client.base_url, "http://x:1");
    }
}
