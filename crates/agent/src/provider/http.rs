//! Requests to a model's server, given up at any moment.
//!
//! The client blocks, so it works on a thread of its own and sends what arrives through a channel. Whoever stops
//! listening is free at once; the thread finds out with the next bytes, or when its read times out, and hangs up.

use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use ollm_net::{Network, tls_failure};
use ureq::Agent;
use ureq::http::Response;

use super::ModelError;
use crate::cancel::Cancel;

/// How often a waiting caller looks whether it is still wanted.
const LOOKING: Duration = Duration::from_millis(20);
/// How many chunks may wait for a slow reader.
const QUEUE: usize = 64;

/// How patient we are with a server.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until it takes our call.
    pub connect: Duration,
    /// Between two signs of life; loading a large model takes a while.
    pub silence: Duration,
    /// For one answer as a whole: a server may send signs of life for ever.
    pub answer: Duration,
    /// How often a refusal that may pass is tried again.
    pub retries: u32,
    /// The first pause before another try; it doubles each time.
    pub pause: Duration,
    /// The longest pause, also when the server asks for more.
    pub longest_pause: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            connect: Duration::from_secs(10),
            silence: Duration::from_mins(5),
            answer: Duration::from_hours(1),
            retries: 4,
            pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
        }
    }
}

/// What to send.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequest {
    pub(crate) url: String,
    pub(crate) key: Option<String>,
    pub(crate) network: Network,
    /// Posted, if there is one.
    pub(crate) body: Option<String>,
}

/// What arrives.
#[derive(Debug)]
enum Arrival {
    Head(Head),
    Chunk(Vec<u8>),
    End,
    Unreachable(ModelError),
    Broken(String),
}

/// The beginning of a reply.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Whether the body is one JSON document and no stream.
    pub(crate) is_json: bool,
    pub(crate) retry_after: Option<Duration>,
}

/// A reply on its way.
pub(crate) struct Reply<'a> {
    pub(crate) head: Head,
    url: &'a str,
    arrivals: Receiver<Arrival>,
    cancel: &'a Cancel,
    silence: Duration,
    /// When the answer must have ended; a time beyond the clock is none.
    end: Option<Instant>,
}

/// Sends a letter and waits for the beginning of the reply.
pub(crate) fn send<'a>(
    letter: &'a HttpRequest,
    patience: &Patience,
    cancel: &'a Cancel,
) -> Result<Reply<'a>, ModelError> {
    let (sender, arrivals) = sync_channel(QUEUE);
    let (order, patience) = (letter.clone(), *patience);
    let spawned = thread::Builder::new().name("model".to_owned()).spawn(move || carry(&order, &patience, &sender));
    spawned.map_err(|error| unreachable(&letter.url, &error.to_string()))?;
    // The client keeps the time of each read; we allow for connecting on top.
    let silence = patience.silence + patience.connect;
    let head = Head { status: 0, is_json: false, retry_after: None };
    let end = Instant::now().checked_add(patience.answer);
    let mut reply = Reply { head, url: &letter.url, arrivals, cancel, silence, end };
    match reply.next()? {
        Arrival::Head(head) => {
            reply.head = head;
            Ok(reply)
        }
        Arrival::Unreachable(error) => Err(error),
        _ => Err(ModelError::Dropped { url: letter.url.clone(), why: "no status came".to_owned() }),
    }
}

impl Reply<'_> {
    /// The next bytes of the body; nothing at its end.
    pub(crate) fn chunk(&mut self) -> Result<Option<Vec<u8>>, ModelError> {
        match self.next()? {
            Arrival::Chunk(bytes) => Ok(Some(bytes)),
            Arrival::End | Arrival::Head(_) => Ok(None),
            Arrival::Broken(why) => Err(ModelError::Dropped { url: self.url.to_owned(), why }),
            Arrival::Unreachable(error) => Err(error),
        }
    }

    /// The whole body, up to `most` bytes.
    pub(crate) fn body(&mut self, most: usize) -> Result<Vec<u8>, ModelError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk()? {
            body.extend_from_slice(&chunk);
            if body.len() > most {
                body.truncate(most);
                break;
            }
        }
        Ok(body)
    }

    fn next(&mut self) -> Result<Arrival, ModelError> {
        let since = Instant::now();
        loop {
            if self.cancel.is_set() {
                return Err(ModelError::Cancelled);
            }
            if self.end.is_some_and(|end| Instant::now() > end) {
                return Err(ModelError::Endless { url: self.url.to_owned() });
            }
            match self.arrivals.recv_timeout(LOOKING) {
                Ok(arrival) => return Ok(arrival),
                Err(RecvTimeoutError::Disconnected) => return Ok(Arrival::Broken("the connection ended".to_owned())),
                Err(RecvTimeoutError::Timeout) if since.elapsed() > self.silence => {
                    return Err(ModelError::Silent { url: self.url.to_owned(), seconds: self.silence.as_secs() });
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Runs on the client's thread; ends as soon as nobody listens.
fn carry(letter: &HttpRequest, patience: &Patience, sender: &SyncSender<Arrival>) {
    let response = match request(letter, patience) {
        Ok(response) => response,
        Err(error) => {
            let _ = sender.send(Arrival::Unreachable(error));
            return;
        }
    };
    if sender.send(Arrival::Head(head(&response))).is_err() {
        return;
    }
    let mut reader = response.into_body().into_reader();
    let mut buffer = vec![0; 16 << 10];
    loop {
        let arrival = match reader.read(&mut buffer) {
            Ok(0) => Arrival::End,
            Ok(count) => Arrival::Chunk(buffer.get(..count).unwrap_or_default().to_vec()),
            Err(error) => Arrival::Broken(error.to_string()),
        };
        let last = !matches!(arrival, Arrival::Chunk(_));
        if sender.send(arrival).is_err() || last {
            return;
        }
    }
}

fn request(letter: &HttpRequest, patience: &Patience) -> Result<Response<ureq::Body>, ModelError> {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // A redirected request would take the key along to who knows where.
        .max_redirects(0)
        .timeout_connect(Some(patience.connect))
        .timeout_resolve(Some(patience.connect))
        .timeout_per_read(Some(patience.silence))
        .timeout_per_write(Some(patience.silence));
    let explained = |why: String| ModelError::Unreachable { url: letter.url.clone(), why, hint: String::new() };
    let agent = letter.network.agent(config, &letter.url).map_err(|error| explained(error.to_string()))?;
    let failed = |error: ureq::Error| {
        tls_failure(&error).map_or_else(|| unreachable(&letter.url, &error.to_string()), explained)
    };
    let key = letter.key.as_ref().map(|key| format!("Bearer {key}"));
    let Some(body) = &letter.body else {
        let mut get = agent.get(&letter.url);
        if let Some(key) = key {
            get = get.header("Authorization", key);
        }
        return get.call().map_err(failed);
    };
    let mut post = agent.post(&letter.url).header("Content-Type", "application/json");
    if let Some(key) = key {
        post = post.header("Authorization", key);
    }
    post.send(body.as_bytes()).map_err(failed)
}

fn head(response: &Response<ureq::Body>) -> Head {
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    Head {
        status: response.status().as_u16(),
        is_json: header("content-type").is_some_and(|kind| kind.starts_with("application/json")),
        retry_after: header("retry-after").and_then(|value| value.trim().parse().ok()).map(Duration::from_secs),
    }
}

fn unreachable(url: &str, why: &str) -> ModelError {
    let hint = if url.contains(":11434") {
        "; start it with `ollama serve`, or name another one: openai:NAME@http://HOST:PORT/v1"
    } else {
        "; start the server, or name another one: ollama:NAME or openai:NAME@http://HOST:PORT/v1"
    };
    ModelError::Unreachable { url: url.to_owned(), why: why.to_owned(), hint: hint.to_owned() }
}
