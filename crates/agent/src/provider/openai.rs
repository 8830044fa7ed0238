//! Chat completions as OpenAI defined them and most servers speak them, streamed.

use std::time::Duration;

use ollm_net::Network;
use ollm_protocol::Tool;
use ollm_protocol::schema::{Api, lower};
use ollm_store::{Redactor, cut};
use serde_json::{Map, Value, json};

use super::http::{HttpRequest, Patience, Reply, send};
use super::sse::Sse;
use super::{Answer, Model, ModelError, Piece, Question, tokens};
use crate::message::{Arguments, Call, Message};

/// More than any error needs to say.
const LONGEST_REFUSAL: usize = 16 << 10;
/// The most calls that are read from one answer; the host allows far fewer.
const MOST_CALLS: usize = 1000;

/// A model behind an OpenAI-compatible address.
#[derive(Debug)]
pub struct OpenAi {
    base_url: String,
    model: String,
    key: Option<String>,
    temperature: Option<f64>,
    options: Map<String, Value>,
    patience: Patience,
    network: Network,
    api: Api,
    /// Servers quote keys in their complaints.
    redactor: Redactor,
}

impl OpenAi {
    /// A model by its name at an address like `http://127.0.0.1:8080/v1`.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>, key: Option<String>) -> OpenAi {
        let redactor = Redactor::new(key.iter().map(|key| ("model key", key)));
        OpenAi {
            base_url: base_url.into(),
            model: model.into(),
            key,
            temperature: None,
            options: Map::new(),
            patience: Patience::default(),
            network: Network::default(),
            api: Api::Object,
            redactor,
        }
    }

    /// With this temperature.
    #[must_use]
    pub fn temperature(mut self, temperature: Option<f64>) -> OpenAi {
        self.temperature = temperature;
        self
    }

    /// With further fields in every request, for instance `max_tokens`; what we say ourselves cannot be replaced by them.
    #[must_use]
    pub fn options(mut self, options: Map<String, Value>) -> OpenAi {
        self.options = options;
        self
    }

    /// With this patience.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> OpenAi {
        self.patience = patience;
        self
    }

    /// With these trusted authorities and proxies.
    #[must_use]
    pub fn network(mut self, network: Network) -> OpenAi {
        self.network = network;
        self
    }

    /// With the schemas of tools in a form that this kind of server accepts.
    #[must_use]
    pub fn api(mut self, api: Api) -> OpenAi {
        self.api = api;
        self
    }

    fn letter(&self, question: &Question<'_>) -> HttpRequest {
        let mut body = json!({
            "model": self.model,
            "messages": question.messages.iter().map(message).collect::<Vec<_>>(),
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        if let Some(map) = body.as_object_mut() {
            if !question.tools.is_empty() {
                map.insert("tools".to_owned(), question.tools.iter().map(|offered| tool(offered, self.api)).collect());
            }
            if let Some(temperature) = self.temperature {
                map.insert("temperature".to_owned(), temperature.into());
            }
            for (name, value) in &self.options {
                map.entry(name).or_insert_with(|| value.clone());
            }
        }
        let url = format!("{}/chat/completions", self.base_url);
        HttpRequest { network: self.network.clone(), url, key: self.key.clone(), body: Some(body.to_string()) }
    }

    /// Asks again while the server may yet come round.
    fn reply<'a>(
        &self,
        letter: &'a HttpRequest,
        question: &Question<'a>,
        hear: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Reply<'a>, ModelError> {
        let mut pause = self.patience.pause;
        for left in (0..=self.patience.retries).rev() {
            let mut came = send(letter, &self.patience, question.cancel)?;
            let state = came.head.clone();
            if state.status == 200 {
                return Ok(came);
            }
            if left == 0 || !(state.status == 429 || state.status >= 500) {
                return Err(self.refused(letter, &mut came));
            }
            let wait = state.retry_after.unwrap_or(pause).min(self.patience.longest_pause);
            let tries = if left == 1 { "the last try".to_owned() } else { format!("{left} tries left") };
            let waited = format!("{} answered {}; again in {}, {tries}", letter.url, state.status, seconds(wait));
            hear(Piece::Status(&waited));
            if question.cancel.wait(wait) {
                return Err(ModelError::Cancelled);
            }
            pause = (pause * 2).min(self.patience.longest_pause);
        }
        Err(ModelError::Dropped { url: letter.url.clone(), why: "no try is left".to_owned() })
    }

    fn refused(&self, letter: &HttpRequest, reply: &mut Reply<'_>) -> ModelError {
        let status = reply.head.status;
        let body = match reply.body(LONGEST_REFUSAL) {
            Ok(body) => body,
            Err(error) => return error,
        };
        let text = serde_json::from_slice::<Value>(&body).ok().and_then(|body| complaint(&body));
        let text = text.unwrap_or_else(|| String::from_utf8_lossy(&body).trim().to_owned());
        let text = cut(&self.redactor.redact_str(&text), 1000).into_owned();
        let hint = self.hint(status, &letter.url, &text);
        ModelError::Refused { url: letter.url.clone(), status, text, hint }
    }

    fn hint(&self, status: u16, url: &str, text: &str) -> String {
        match status {
            _ if text.contains("does not support tools") => "; take a model that can call tools".to_owned(),
            401 | 403 if url.starts_with("https://api.openai.com/") => {
                "; set OPENAI_API_KEY to your key and try again".to_owned()
            }
            401 | 403 => "; set the key for this server and try again".to_owned(),
            404 if url.contains(":11434") => format!("; fetch the model with `ollama pull {}`", self.model),
            404 => "; check the model's name and the address, which usually ends in /v1".to_owned(),
            _ => String::new(),
        }
    }

    fn malformed(&self, why: &str) -> ModelError {
        ModelError::Malformed {
            url: self.base_url.clone(),
            why: cut(&self.redactor.redact_str(why), 1000).into_owned(),
        }
    }

    fn dropped(&self, why: &str) -> ModelError {
        ModelError::Dropped { url: self.base_url.clone(), why: cut(&self.redactor.redact_str(why), 1000).into_owned() }
    }

    fn stream(&self, mut reply: Reply<'_>, most: usize, hear: &mut dyn FnMut(Piece<'_>)) -> Result<Answer, ModelError> {
        let mut sse = Sse::default();
        let mut draft = Draft { most, ..Draft::default() };
        while !draft.ended() {
            let (events, over) = match reply.chunk()? {
                Some(bytes) => (sse.push(&bytes).map_err(|error| self.malformed(&error.to_string()))?, false),
                None => (sse.finish().into_iter().collect(), true),
            };
            for event in events {
                self.take(&mut draft, &event, hear)?;
            }
            if over {
                break;
            }
        }
        if !draft.done && !draft.finished && !draft.answer.cut {
            return Err(self.dropped("the stream ended before the answer did"));
        }
        Ok(draft.finish())
    }

    fn take(&self, draft: &mut Draft, event: &str, hear: &mut dyn FnMut(Piece<'_>)) -> Result<(), ModelError> {
        if event.trim() == "[DONE]" {
            draft.done = true;
            return Ok(());
        }
        let event: Value = serde_json::from_str(event).map_err(|error| self.malformed(&error.to_string()))?;
        if let Some(complaint) = complaint(&event) {
            return Err(self.dropped(&complaint));
        }
        draft.take(&event, hear);
        Ok(())
    }
}

impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.model
    }

    fn answer(&mut self, question: &Question<'_>, hear: &mut dyn FnMut(Piece<'_>)) -> Result<Answer, ModelError> {
        let letter = self.letter(question);
        let mut reply = self.reply(&letter, question, hear)?;
        if !reply.head.is_json {
            return self.stream(reply, question.most, hear);
        }
        // A server that does not stream sends everything at once.
        let body = reply.body(question.most.saturating_mul(2).saturating_add(1 << 20))?;
        let whole: Value = serde_json::from_slice(&body).map_err(|error| self.malformed(&error.to_string()))?;
        if let Some(complaint) = complaint(&whole) {
            return Err(self.dropped(&complaint));
        }
        let mut draft = Draft { most: question.most, ..Draft::default() };
        draft.take(&whole, hear);
        Ok(draft.finish())
    }
}

/// An answer being put together.
#[derive(Debug, Default)]
struct Draft {
    answer: Answer,
    parts: Vec<Part>,
    most: usize,
    /// The model has said that it is finished.
    finished: bool,
    /// The server has said that nothing follows.
    done: bool,
}

/// A call being put together.
#[derive(Debug, Default)]
struct Part {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Draft {
    fn ended(&self) -> bool {
        self.done || self.answer.cut
    }

    fn take(&mut self, event: &Value, hear: &mut dyn FnMut(Piece<'_>)) {
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            self.answer.tokens = tokens(usage);
            self.answer.usage = Some(usage.clone());
        }
        let Some(choice) = event.pointer("/choices/0") else { return };
        let message = choice.get("delta").or_else(|| choice.get("message")).unwrap_or(&Value::Null);
        if let Some(text) = message.get("content").and_then(Value::as_str).filter(|text| !text.is_empty()) {
            self.hear(text, hear);
        }
        for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.call(call);
        }
        self.finished |= choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
    }

    fn hear(&mut self, text: &str, hear: &mut dyn FnMut(Piece<'_>)) {
        let room = self.most.saturating_sub(self.answer.content.len());
        let text = if text.len() > room {
            self.answer.cut = true;
            text.get(..text.floor_char_boundary(room)).unwrap_or_default()
        } else {
            text
        };
        self.answer.content.push_str(text);
        hear(Piece::Text(text));
    }

    /// Fragments belong to the call with their index; without one, an id begins a new call.
    fn call(&mut self, fragment: &Value) {
        let index = fragment.get("index").and_then(Value::as_u64);
        let text = |pointer: &str| fragment.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (id, name) = (text("/id"), text("/function/name"));
        let known = match index {
            Some(index) => self.parts.iter().position(|part| part.index == Some(index)),
            None if id.is_empty() && name.is_empty() => self.parts.len().checked_sub(1),
            None => self.parts.iter().position(|part| !id.is_empty() && part.id == id),
        };
        let at = known.unwrap_or(self.parts.len());
        if at == self.parts.len() && at < MOST_CALLS {
            self.parts.push(Part { index, ..Part::default() });
        }
        let Some(part) = self.parts.get_mut(at) else { return };
        if part.id.is_empty() {
            id.clone_into(&mut part.id);
        }
        if part.name.is_empty() {
            name.clone_into(&mut part.name);
        }
        match fragment.pointer("/function/arguments") {
            Some(Value::String(piece)) if part.arguments.len() + piece.len() <= self.most => {
                part.arguments.push_str(piece);
            }
            Some(Value::String(_)) => self.answer.cut = true,
            // Some servers send the object itself.
            Some(object @ Value::Object(_)) => part.arguments = object.to_string(),
            _ => {}
        }
    }

    fn finish(mut self) -> Answer {
        let numbered = self.parts.into_iter().enumerate().filter(|(_, part)| !part.name.is_empty());
        self.answer.calls = numbered
            .map(|(at, part)| Call {
                id: if part.id.is_empty() { format!("call_{}", at + 1) } else { part.id },
                name: part.name,
                arguments: Arguments::parse(&part.arguments),
            })
            .collect();
        self.answer
    }
}

/// What a server complains about, in any of the usual forms.
fn complaint(body: &Value) -> Option<String> {
    let error = body.get("error").filter(|error| !error.is_null())?;
    let text = error.as_str().or_else(|| error.get("message")?.as_str());
    Some(text.map_or_else(|| error.to_string(), str::to_owned))
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
    // Servers refuse a whole conversation for arguments that are no JSON.
    let arguments = match &call.arguments {
        Arguments::Object(map) => Value::Object(map.clone()).to_string(),
        Arguments::Broken(text) => json!({"unreadable": cut(text, 1000)}).to_string(),
    };
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn tool(tool: &Tool, api: Api) -> Value {
    let parameters = lower(&tool.input, api).schema;
    json!({
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    })
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(events: &[Value]) -> Answer {
        let mut draft = Draft { most: 100, ..Draft::default() };
        for event in events {
            draft.take(event, &mut |_| {});
        }
        draft.finish()
    }

    fn delta(delta: &Value) -> Value {
        json!({"choices": [{"delta": delta}]})
    }

    #[test]
    fn fragments_of_calls_find_their_call() {
        let answer = draft(&[
            delta(&json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "x", "arguments": ""}}]})),
            delta(&json!({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "y", "arguments": "{\"k\""}}]})),
            delta(
                &json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}, {"index": 1, "function": {"arguments": ":1}"}}]}),
            ),
        ]);
        let arguments = |text| Arguments::parse(text);
        assert_eq!(
            answer.calls,
            [
                Call { id: "a".into(), name: "x".into(), arguments: arguments("{}") },
                Call { id: "b".into(), name: "y".into(), arguments: arguments("{\"k\":1}") },
            ]
        );
    }

    #[test]
    fn calls_without_index_or_id_are_told_apart() {
        let whole = json!({"tool_calls": [{"function": {"name": "x", "arguments": {"a": 1}}}, {"function": {"name": "y", "arguments": "{"}}]});
        let answer = draft(&[delta(&whole)]);
        let seen: Vec<_> = answer.calls.iter().map(|call| (call.id.as_str(), call.name.as_str())).collect();
        assert_eq!(seen, [("call_1", "x"), ("call_2", "y")]);
        assert_eq!(answer.calls[1].arguments, Arguments::Broken("{".into()));
    }

    #[test]
    fn an_endless_answer_is_cut() {
        let answer = draft(&[delta(&json!({"content": "é".repeat(60)}))]);
        assert_eq!((answer.content.len(), answer.cut), (100, true));
    }

    #[test]
    fn every_form_of_complaint_is_read() {
        for body in [json!({"error": "no"}), json!({"error": {"message": "no"}})] {
            assert_eq!(complaint(&body).as_deref(), Some("no"));
        }
        assert_eq!(complaint(&json!({"error": null})), None);
        assert_eq!(complaint(&json!({"error": {"code": 1}})).as_deref(), Some("{\"code\":1}"));
    }

    #[test]
    fn broken_arguments_go_back_as_json() {
        let sent = call(&Call { id: "1".into(), name: "x".into(), arguments: Arguments::Broken("{".into()) });
        assert_eq!(sent["function"]["arguments"], "{\"unreadable\":\"{\"}");
    }
}
