//! Asks a server, independent of its protocol: the connection, and the loop that adapts to refusals.

use ollm_net::Network;
use serde_json::{Map, Value};

use super::client::RequestFailure;
use super::endpoint::Endpoint;
use super::http::{Patience, Reply};
use super::refusal::Refusal;
use super::{Model, ModelAnswer, ModelError, Piece, Question};
use crate::cancel::Cancel;

/// The address of a model, and the settings of its requests.
///
/// ```
/// use ollm_agent::{Connection, OpenAi};
/// let connection = Connection { temperature: Some(0.2), ..Connection::new("http://127.0.0.1:8080/v1", "qwen3", None) };
/// let model = OpenAi::new(connection);
/// ```
#[derive(Clone, Debug)]
pub struct Connection {
    /// The address, for instance `http://127.0.0.1:8080/v1`.
    pub base_url: String,
    /// The model's name there.
    pub model: String,
    /// The key for this server.
    pub key: Option<String>,
    /// The temperature.
    pub temperature: Option<f64>,
    /// Further fields of every request; they cannot replace the protocol's own fields.
    pub options: Map<String, Value>,
    /// Time limits and retries.
    pub patience: Patience,
    /// Trusted authorities and proxies.
    pub network: Network,
}

impl Connection {
    /// A model by its name at an address, with default settings.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>, key: Option<String>) -> Connection {
        Connection {
            base_url: base_url.into(),
            model: model.into(),
            key,
            temperature: None,
            options: Map::new(),
            patience: Patience::default(),
            network: Network::default(),
        }
    }

    /// The options, including the temperature.
    pub(crate) fn settings(&self) -> Map<String, Value> {
        let temperature = self.temperature.map(|temperature| ("temperature".to_owned(), temperature.into()));
        temperature.into_iter().chain(self.options.clone()).collect()
    }
}

/// The parts that differ between protocols.
pub(crate) trait Protocol: Send {
    /// The model at its server.
    fn endpoint(&self) -> &Endpoint;

    /// The same, to change it.
    fn endpoint_mut(&mut self) -> &mut Endpoint;

    /// The path for questions.
    fn path(&self) -> &'static str;

    /// A question in the protocol's form.
    fn body(&self, question: &Question<'_>) -> Value;

    /// Changes a setting of this protocol that the server refuses, if that is possible; returns whether another try
    /// makes sense.
    fn adapt(&mut self, refusal: &Refusal, hear: &mut dyn FnMut(Piece<'_>)) -> bool;

    /// What a person can do about a refusal, after a semicolon.
    fn hint(&self, refusal: &Refusal) -> String;

    /// Reads the answer, of which `most` bytes are kept.
    fn read(
        &mut self,
        reply: Reply<'_>,
        most: usize,
        hear: &mut dyn FnMut(Piece<'_>),
    ) -> Result<ModelAnswer, ModelError>;

    /// The model's window in tokens, if the server reports it.
    fn told_window(&mut self, cancel: &Cancel) -> Option<u64> {
        self.endpoint_mut().window(cancel)
    }
}

impl<P: Protocol> Model for P {
    fn name(&self) -> &str {
        &self.endpoint().model
    }

    /// Asks until there is an answer, or a refusal that no change can avoid.
    fn answer(&mut self, question: &Question<'_>, hear: &mut dyn FnMut(Piece<'_>)) -> Result<ModelAnswer, ModelError> {
        loop {
            let client = &self.endpoint().client;
            let request = client.request(self.path(), Some(&self.body(question)));
            let refusal = match client.ask(&request, question.cancel, hear) {
                Ok(reply) => return self.read(reply, question.most, hear),
                Err(RequestFailure::Failed(error)) => return Err(error),
                Err(RequestFailure::Refused(refusal)) => refusal,
            };
            // Each change is made at most once, so the loop ends.
            if !(self.endpoint_mut().adapt(&refusal, question, hear) || self.adapt(&refusal, hear)) {
                let hint = self.hint(&refusal);
                return Err(refusal.into_error(&hint));
            }
        }
    }

    fn window(&mut self, cancel: &Cancel) -> Option<u64> {
        self.told_window(cancel)
    }
}
