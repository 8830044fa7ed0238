//! How a server is asked, whichever protocol it speaks: the connection, and the loop that adapts to what it refuses.

use ollm_net::Network;
use serde_json::{Map, Value};

use super::client::{Client, Unanswered};
use super::http::{Patience, Reply};
use super::refusal::Refusal;
use super::{Answer, ModelError, Piece, Question};

/// Where a model is, and with what it is asked.
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
    /// Further fields of every request; what the protocol says itself cannot be replaced by them.
    pub options: Map<String, Value>,
    /// How patient we are.
    pub patience: Patience,
    /// Trusted authorities and proxies.
    pub network: Network,
}

impl Connection {
    /// A model by its name at an address, asked with nothing special.
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

    /// The options with the temperature among them.
    pub(crate) fn settings(&self) -> Map<String, Value> {
        let temperature = self.temperature.map(|temperature| ("temperature".to_owned(), temperature.into()));
        temperature.into_iter().chain(self.options.clone()).collect()
    }
}

/// What one protocol says and understands.
pub(crate) trait Protocol {
    /// The server.
    fn client(&self) -> &Client;

    /// Where questions go.
    fn path(&self) -> &'static str;

    /// A question in the words of the protocol.
    fn body(&self, question: &Question<'_>) -> Value;

    /// Changes what the server objects to, if that can be changed; says whether it is worth another try.
    fn adapt(&mut self, refusal: &Refusal, question: &Question<'_>, hear: &mut dyn FnMut(Piece<'_>)) -> bool;

    /// What a person can do about a refusal, after a semicolon.
    fn hint(&self, refusal: &Refusal) -> String;

    /// Reads the answer, of which `most` bytes are kept.
    fn read(&mut self, reply: Reply<'_>, most: usize, hear: &mut dyn FnMut(Piece<'_>)) -> Result<Answer, ModelError>;
}

/// Asks until there is an answer, or a refusal that nothing can be done about.
pub(crate) fn ask(
    model: &mut dyn Protocol,
    question: &Question<'_>,
    hear: &mut dyn FnMut(Piece<'_>),
) -> Result<Answer, ModelError> {
    loop {
        let request = model.client().request(model.path(), Some(&model.body(question)));
        match model.client().ask(&request, question.cancel, hear) {
            Ok(reply) => return model.read(reply, question.most, hear),
            // Each change is made once, so this comes to an end.
            Err(Unanswered::Refused(refusal)) if model.adapt(&refusal, question, hear) => {}
            Err(Unanswered::Refused(refusal)) => {
                let hint = model.hint(&refusal);
                return Err(refusal.into_error(&hint));
            }
            Err(Unanswered::Failed(error)) => return Err(error),
        }
    }
}
