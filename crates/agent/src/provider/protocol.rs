//! Asks a server, independent of its protocol: the connection, and the loop that adapts to refusals.

use ollm_net::Network;
use serde_json::{Map, Value};

use super::client::RequestFailure;
use super::draft::Draft;
use super::endpoint::Endpoint;
use super::http::{Patience, Reply};
use super::refusal::Refusal;
use super::stream::{Framing, StreamStep};
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

/// A model at its server, asked in the words of one protocol.
#[derive(Debug)]
pub struct RemoteModel<P> {
    pub(super) endpoint: Endpoint,
    pub(super) protocol: P,
}

/// The parts that differ between protocols.
pub(crate) trait Protocol: Send {
    /// The path for questions.
    const PATH: &'static str;
    /// Whether a server may send the whole answer at once, as one event.
    const WHOLE: bool = false;

    /// The parts of an answer other than its text and calls, while it is read.
    type Parts: Default;

    /// A question in the protocol's form.
    fn body(&self, endpoint: &Endpoint, question: &Question<'_>) -> Value;

    /// Changes a setting of this protocol that the server refuses, if that is possible; returns whether another try
    /// makes sense.
    fn adapt(&mut self, endpoint: &mut Endpoint, refusal: &Refusal, hear: &mut dyn FnMut(Piece<'_>)) -> bool;

    /// What a person can do about a refusal, after a semicolon.
    fn hint(&self, _endpoint: &Endpoint, refusal: &Refusal) -> String {
        refusal.hint()
    }

    /// How the events of an answer are separated.
    fn framing() -> Framing {
        Framing::events()
    }

    /// Adds one event to an answer.
    fn take(parts: &mut Self::Parts, draft: &mut Draft, event: &Value, hear: &mut dyn FnMut(Piece<'_>)) -> StreamStep;

    /// Keeps what later questions need of an answer; an error is the server's report that it failed.
    fn keep(&mut self, _parts: Self::Parts, _answer: &ModelAnswer) -> Result<(), String> {
        Ok(())
    }

    /// The model's window in tokens, if the server reports it.
    fn window(model: &mut RemoteModel<Self>, cancel: &Cancel) -> Option<u64>
    where
        Self: Sized,
    {
        model.endpoint.window(cancel)
    }
}

impl<P: Protocol> Model for RemoteModel<P> {
    fn name(&self) -> &str {
        &self.endpoint.model
    }

    fn server(&self) -> Option<&str> {
        Some(&self.endpoint.client.base_url)
    }

    /// Asks until there is an answer, or a refusal that no change can avoid.
    fn answer(&mut self, question: &Question<'_>, hear: &mut dyn FnMut(Piece<'_>)) -> Result<ModelAnswer, ModelError> {
        loop {
            let client = &self.endpoint.client;
            let request = client.request(P::PATH, Some(&self.protocol.body(&self.endpoint, question)));
            let refusal = match client.ask(&request, question.cancel, hear) {
                Ok(reply) => return read(self, reply, question.most, hear),
                Err(RequestFailure::Failed(error)) => return Err(error),
                Err(RequestFailure::Refused(refusal)) => refusal,
            };
            // Each change is made at most once, so the loop ends.
            let adapts = self.endpoint.adapt(&refusal, question, hear)
                || self.protocol.adapt(&mut self.endpoint, &refusal, hear);
            if !adapts {
                let hint = self.protocol.hint(&self.endpoint, &refusal);
                return Err(refusal.into_error(&hint));
            }
        }
    }

    fn window(&mut self, cancel: &Cancel) -> Option<u64> {
        P::window(self, cancel)
    }
}

/// Reads the answer, of which `most` bytes are kept.
fn read<P: Protocol>(
    model: &mut RemoteModel<P>,
    reply: Reply<'_>,
    most: usize,
    hear: &mut dyn FnMut(Piece<'_>),
) -> Result<ModelAnswer, ModelError> {
    let client = &model.endpoint.client;
    let mut parts = P::Parts::default();
    let mut take =
        |draft: &mut Draft, event: &Value, hear: &mut dyn FnMut(Piece<'_>)| P::take(&mut parts, draft, event, hear);
    let answer = if P::WHOLE && reply.head.is_json {
        client.read_whole(reply, most, hear, &mut take)?
    } else {
        client.read(reply, (P::framing(), most), hear, &mut take)?
    };
    model.protocol.keep(parts, &answer).map_err(|why| client.dropped(&why))?;
    Ok(answer)
}
