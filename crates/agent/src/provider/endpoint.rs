//! A model at its server: the parts that every protocol needs, and what the server's answers have shown.

use ollm_protocol::Tool;
use serde_json::{Map, Value};

use super::client::{Client, KeyHeader};
use super::protocol::Connection;
use super::refusal::Refusal;
use super::shape::{Form, shaped};
use super::{ModelError, Piece, Question};
use crate::cancel::Cancel;
use crate::message::Message;

/// How the addresses of the providers' own servers begin, and the variable with the key for each. Their windows are large
/// and not reported.
pub(super) const OWN_SERVERS: &[(&str, &str)] =
    &[("https://api.openai.com/", "OPENAI_API_KEY"), ("https://api.anthropic.com/", "ANTHROPIC_API_KEY")];

/// The fields in which servers report the model's window.
const WINDOW_FIELDS: &[&str] =
    &["/meta/n_ctx", "/max_model_len", "/context_length", "/context_window", "/max_context_length"];

/// A model at its server.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) client: Client,
    pub(crate) model: String,
    /// Further fields of every request.
    pub(crate) options: Map<String, Value>,
    /// What the model's template accepts, by the server's refusals so far.
    pub(crate) form: Form,
    /// The window, if the server reports it.
    window: Option<u64>,
    /// Whether the server was asked for the window.
    was_asked: bool,
}

impl Endpoint {
    pub(crate) fn new(connection: Connection, key: KeyHeader) -> Endpoint {
        Endpoint {
            client: Client::new(&connection, key),
            options: connection.settings(),
            model: connection.model,
            form: Form::default(),
            window: None,
            was_asked: false,
        }
    }

    /// The messages of a question in a form that the model accepts.
    pub(crate) fn messages(&self, question: &Question<'_>) -> Vec<Message> {
        shaped(question.messages, self.form)
    }

    /// The same for a protocol with a field of its own for the system message.
    pub(crate) fn system_and_messages(&self, question: &Question<'_>) -> (Option<String>, Vec<Message>) {
        let mut messages = self.messages(question);
        match messages.first_mut() {
            Some(Message::System(text)) => {
                let text = std::mem::take(text);
                messages.remove(0);
                (Some(text), messages)
            }
            _ => (None, messages),
        }
    }

    /// The tools of a question in the protocol's form. `None` if there are none, or the model does not support tools.
    pub(crate) fn tools(&self, question: &Question<'_>, tool: impl Fn(&Tool) -> Value) -> Option<(String, Value)> {
        let is_due = self.form.tools && !question.tools.is_empty();
        is_due.then(|| ("tools".to_owned(), question.tools.iter().map(tool).collect()))
    }

    /// Adapts to features that the model lacks by the server's refusal; returns whether something changed.
    pub(crate) fn adapt(
        &mut self,
        refusal: &Refusal,
        question: &Question<'_>,
        hear: &mut dyn FnMut(Piece<'_>),
    ) -> bool {
        self.form.adapt(&self.model, refusal, question, hear)
    }

    /// A request with the options that it does not set itself.
    pub(crate) fn with_options(&self, mut body: Map<String, Value>) -> Value {
        for (name, value) in &self.options {
            body.entry(name).or_insert_with(|| value.clone());
        }
        body.into()
    }

    /// The model's window in tokens, if the server reports it.
    pub(crate) fn window(&mut self, cancel: &Cancel) -> Option<u64> {
        if !self.was_asked {
            self.window = self.ask_window(cancel).ok()?;
            self.was_asked = true;
        }
        self.window
    }

    /// Asks the server for the window: in its list of models, or as llama-server reports it. An error means that it may
    /// report it later.
    fn ask_window(&self, cancel: &Cancel) -> Result<Option<u64>, ModelError> {
        if OWN_SERVERS.iter().any(|(address, _)| self.client.base_url.starts_with(address)) {
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

    /// The window from llama-server's `/props`, outside the API.
    fn props(&self, cancel: &Cancel) -> Option<u64> {
        let props = self.client.json_beside("/props", cancel)?;
        props.pointer("/default_generation_settings/n_ctx")?.as_u64().filter(|window| *window > 0)
    }
}
