//! The connection to one server: its address and key, kept connections, and repeated requests after temporary refusals.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use ollm_net::Network;
use ollm_store::{Redactor, cut};
use serde_json::Value;
use ureq::Agent;

use super::endpoint::OWN_SERVERS;
use super::http::{HttpRequest, Patience, Reply, agent, send};
use super::protocol::Connection;
use super::refusal::Refusal;
use super::{ModelError, Piece};
use crate::cancel::Cancel;

/// The most bytes that are read of a refusal.
const LONGEST_REFUSAL: usize = 16 << 10;
/// The most bytes of a list or description of models.
const LARGEST: usize = 16 << 20;
/// The longest pause while a model is loaded.
const LOADING_PAUSE: Duration = Duration::from_secs(2);
/// The person is told of every pause that is at least this long.
const LONG_PAUSE: Duration = Duration::from_secs(10);
/// How long a short question about the server may take.
const SMALL_QUESTION: Duration = Duration::from_secs(5);

/// How a key is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyHeader {
    /// As a bearer token.
    Bearer,
    /// In `x-api-key`.
    ApiKey,
}

/// A model's server.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) base_url: String,
    patience: Patience,
    network: Network,
    headers: Vec<(&'static str, String)>,
    /// Hides the key, because servers quote keys in their error messages.
    redactor: Redactor,
    agent: OnceLock<Agent>,
}

/// Why there is no reply.
pub(crate) enum RequestFailure {
    /// The server refused.
    Refused(Refusal),
    /// Anything else.
    Failed(ModelError),
}

impl From<ModelError> for RequestFailure {
    fn from(error: ModelError) -> RequestFailure {
        RequestFailure::Failed(error)
    }
}

impl Client {
    pub(crate) fn new(connection: &Connection, form: KeyHeader) -> Client {
        let key = connection.key.as_deref();
        let headers = key.map(|key| match form {
            KeyHeader::Bearer => ("Authorization", format!("Bearer {key}")),
            KeyHeader::ApiKey => ("x-api-key", key.to_owned()),
        });
        Client {
            base_url: connection.base_url.clone(),
            patience: connection.patience,
            network: connection.network.clone(),
            headers: headers.into_iter().collect(),
            redactor: Redactor::new(key.iter().map(|key| ("model key", key))),
            agent: OnceLock::new(),
        }
    }

    /// The client with one more header.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Client {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// A request to a path below the address.
    pub(crate) fn request(&self, path: &str, body: Option<&Value>) -> HttpRequest {
        HttpRequest {
            url: format!("{}{path}", self.base_url),
            headers: self.headers.clone(),
            body: body.map(Value::to_string),
            reuses: self.agent.get().is_some(),
        }
    }

    /// Sends a request, and repeats it while the refusal may be temporary.
    pub(crate) fn ask<'a>(
        &self,
        request: &'a HttpRequest,
        cancel: &'a Cancel,
        hear: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Reply<'a>, RequestFailure> {
        self.ask_for(self.patience.answer, request, cancel, hear)
    }

    /// The same for a reply that may take this long as a whole.
    pub(crate) fn ask_for<'a>(
        &self,
        answer: Duration,
        request: &'a HttpRequest,
        cancel: &'a Cancel,
        hear: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Reply<'a>, RequestFailure> {
        let began = Instant::now();
        let patience = Patience { answer, ..self.patience };
        let (mut left, mut pause, mut told) = (self.patience.retries, self.patience.pause, false);
        loop {
            let mut reply = send(self.agent(&request.url)?, request, (&patience, cancel), hear)?;
            if reply.head.status == 200 && !reply.head.is_page {
                return Ok(reply);
            }
            let refusal = self.refusal(request, &mut reply)?;
            let wait = refusal.retry_after.unwrap_or(pause).min(self.patience.longest_pause);
            if refusal.is_loading() && began.elapsed() < self.patience.loading {
                if !std::mem::replace(&mut told, true) {
                    hear(Piece::Status(&format!("{} is loading the model; we wait", request.url)));
                }
                wait_for(wait.min(LOADING_PAUSE), cancel)?;
            } else if left > 0 && refusal.may_pass() {
                // The person is told once; if the server wants a long pause, each time.
                let is_first = left == self.patience.retries;
                if is_first || wait >= LONG_PAUSE {
                    let (url, status, seconds) = (&request.url, refusal.status, wait.as_secs_f64());
                    let tries = if left == 1 { "once more".to_owned() } else { format!("up to {left} times more") };
                    hear(Piece::Status(&format!("{url} answered {status}; it is asked {tries}, in {seconds:.1} s")));
                }
                left -= 1;
                wait_for(wait, cancel)?;
            } else {
                return Err(RequestFailure::Refused(refusal));
            }
            pause = (pause * 2).min(self.patience.longest_pause);
        }
    }

    /// The JSON answer to a request, which is sent only once.
    pub(crate) fn json(&self, path: &str, body: Option<&Value>, cancel: &Cancel) -> Result<Value, ModelError> {
        self.json_for(&self.request(path, body), cancel)
    }

    /// The same for a path outside the API, if the address of the API ends in `/v1`.
    pub(crate) fn json_beside(&self, path: &str, cancel: &Cancel) -> Option<Value> {
        let base = self.base_url.strip_suffix("/v1")?;
        let request = HttpRequest { url: format!("{base}{path}"), ..self.request("", None) };
        self.json_for(&request, cancel).ok()
    }

    fn json_for(&self, request: &HttpRequest, cancel: &Cancel) -> Result<Value, ModelError> {
        let patience =
            Patience { silence: SMALL_QUESTION.min(self.patience.silence), answer: SMALL_QUESTION, ..self.patience };
        let mut reply = send(self.agent(&request.url)?, request, (&patience, cancel), &mut |_| {})?;
        if reply.head.status != 200 {
            return Err(self.refusal(request, &mut reply)?.into_error(""));
        }
        let body = reply.body(LARGEST)?;
        serde_json::from_slice(&body).map_err(|error| self.malformed(&error.to_string()))
    }

    fn agent(&self, url: &str) -> Result<&Agent, ModelError> {
        if let Some(agent) = self.agent.get() {
            return Ok(agent);
        }
        let made = agent(&self.network, url, &self.patience)?;
        Ok(self.agent.get_or_init(|| made))
    }

    fn refusal(&self, request: &HttpRequest, reply: &mut Reply<'_>) -> Result<Refusal, ModelError> {
        let body = reply.body(LONGEST_REFUSAL)?;
        let mut refusal = Refusal::read(&request.url, reply.head.status, &body);
        refusal.text = self.hidden(&refusal.text);
        refusal.retry_after = reply.head.retry_after;
        Ok(refusal)
    }

    pub(crate) fn malformed(&self, why: &str) -> ModelError {
        ModelError::Malformed { url: self.base_url.clone(), why: self.hidden(why) }
    }

    pub(crate) fn dropped(&self, why: &str) -> ModelError {
        ModelError::Dropped { url: self.base_url.clone(), why: self.hidden(why) }
    }

    fn hidden(&self, text: &str) -> String {
        cut(&self.redactor.redact_str(text), 1000).into_owned()
    }
}

impl Refusal {
    /// What usually helps, after a semicolon.
    pub(crate) fn hint(&self) -> String {
        let own = OWN_SERVERS.iter().find(|(address, _)| self.url.starts_with(address));
        match (self.status, own) {
            (401 | 403, Some((_, key))) => format!("; set {key} to your key and try again"),
            (401 | 403, None) => "; set OLLM_MODEL_KEY to the key for this server and try again".to_owned(),
            (200 | 404, _) => "; check the model's name and the address, which usually ends in /v1".to_owned(),
            _ if self.is_of_template() => {
                "; the model's chat template refuses this conversation: begin another one, or start the server with another template"
                    .to_owned()
            }
            _ => String::new(),
        }
    }

    /// The refusal as an error, with a hint.
    pub(crate) fn into_error(self, hint: &str) -> ModelError {
        if self.is_too_long() {
            return ModelError::TooLong { url: self.url, window: self.window, sent: self.sent, text: self.text };
        }
        ModelError::Refused { url: self.url, status: self.status, text: self.text, hint: hint.to_owned() }
    }
}

fn wait_for(pause: Duration, cancel: &Cancel) -> Result<(), ModelError> {
    if cancel.wait(pause) { Err(ModelError::Cancelled) } else { Ok(()) }
}
