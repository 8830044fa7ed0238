//! Requests to a model's server that can be abandoned at any moment.
//!
//! The client blocks, so it works on a separate thread and sends arriving data through a channel. A caller that stops
//! listening is free at once. The thread notices that at the next data or at the read timeout, and closes the
//! connection. After a complete reply, the next request can reuse the connection.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use ollm_net::{Network, tls_failure};
use ureq::Agent;
use ureq::http::Response;

use super::{ModelError, Piece};
use crate::cancel::Cancel;

/// How often a waiting caller checks for an interruption.
const LOOKING: Duration = Duration::from_millis(20);
/// How many chunks may wait for a slow reader.
const QUEUE: usize = 64;
/// How long the end of a reply may take after its last data; a connection that needs longer is not reused.
const LAST_BYTES: Duration = Duration::from_millis(50);
/// After this many seconds of silence the person is told; then every further minute.
const TOLD: [u64; 3] = [5, 15, 30];
/// How long an unused connection is kept; common servers close it after five seconds.
const LONGEST_IDLE: Duration = Duration::from_secs(4);
/// The user agent that servers see.
const USER_AGENT: &str = concat!("ollm/", env!("CARGO_PKG_VERSION"));

/// Time limits and retries for a server.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Time to connect.
    pub connect: Duration,
    /// Time between two pieces of data; loading a large model takes a while.
    pub silence: Duration,
    /// Time for one whole answer: a server could send keep-alive data forever.
    pub answer: Duration,
    /// Time for a server that reports that it is loading the model.
    pub loading: Duration,
    /// How often a request is repeated after a temporary refusal.
    pub retries: u32,
    /// The first pause before a repetition; it doubles each time.
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
            loading: Duration::from_mins(10),
            retries: 4,
            pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
        }
    }
}

/// A request to send.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequest {
    pub(crate) url: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The body; with a body the request is a POST.
    pub(crate) body: Option<String>,
    /// Whether the connection of an earlier request may be reused.
    pub(crate) reuses: bool,
}

/// Something that arrives.
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
    /// Whether the body is one JSON document, not a stream.
    pub(crate) is_json: bool,
    /// Whether the body is a web page for people; no model answers like this.
    pub(crate) is_page: bool,
    pub(crate) retry_after: Option<Duration>,
}

/// A reply that is being received.
pub(crate) struct Reply<'a> {
    pub(crate) head: Head,
    url: &'a str,
    arrivals: Receiver<Arrival>,
    cancel: &'a Cancel,
    /// How long a silence may be; before the head comes, it includes the time to connect.
    silence: Duration,
    /// The deadline of the answer; `None` if it exceeds what the clock can hold.
    end: Option<Instant>,
    /// How often the person was told of a silence.
    told: usize,
}

/// A client that keeps its connections.
pub(crate) fn agent(network: &Network, url: &str, patience: &Patience) -> Result<Agent, ModelError> {
    // A silence is told by the reply, which waits less long.
    let limit = patience.silence.saturating_add(patience.connect.saturating_mul(2));
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // A redirected request would send the key to an unknown server.
        .max_redirects(0)
        .user_agent(USER_AGENT)
        .max_idle_age(LONGEST_IDLE)
        .timeout_connect(Some(patience.connect))
        .timeout_resolve(Some(patience.connect))
        .timeout_per_read(Some(limit))
        .timeout_per_write(Some(limit));
    let agent = network.agent(config, url);
    agent.map_err(|error| explained(url, error.to_string()))
}

/// Sends a request and waits for the beginning of the reply.
pub(crate) fn send<'a>(
    agent: &Agent,
    request: &'a HttpRequest,
    (patience, cancel): (&Patience, &'a Cancel),
    hear: &mut dyn FnMut(Piece<'_>),
) -> Result<Reply<'a>, ModelError> {
    let (sender, arrivals) = sync_channel(QUEUE);
    let (agent, order) = (agent.clone(), request.clone());
    let spawned = thread::Builder::new().name("model".to_owned()).spawn(move || carry(&agent, &order, &sender));
    spawned.map_err(|error| unreachable(&request.url, &error.to_string()))?;
    let none = Head { status: 0, is_json: false, is_page: false, retry_after: None };
    let end = Instant::now().checked_add(patience.answer);
    let silence = patience.silence.saturating_add(patience.connect);
    let mut reply = Reply { head: none, url: &request.url, arrivals, cancel, silence, end, told: 0 };
    match reply.next(hear)? {
        Arrival::Head(came) => {
            reply.head = came;
            reply.silence = patience.silence;
            Ok(reply)
        }
        Arrival::Unreachable(error) => Err(error),
        _ => Err(ModelError::Dropped { url: request.url.clone(), why: "no status came".to_owned() }),
    }
}

impl Reply<'_> {
    /// The next bytes of the body; `None` at its end.
    pub(crate) fn chunk(&mut self, hear: &mut dyn FnMut(Piece<'_>)) -> Result<Option<Vec<u8>>, ModelError> {
        match self.next(hear)? {
            Arrival::Chunk(bytes) => Ok(Some(bytes)),
            Arrival::End | Arrival::Head(_) => Ok(None),
            Arrival::Broken(why) => Err(ModelError::Dropped { url: self.url.to_owned(), why }),
            Arrival::Unreachable(error) => Err(error),
        }
    }

    /// The whole body, up to `most` bytes.
    pub(crate) fn body(&mut self, most: usize) -> Result<Vec<u8>, ModelError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(&mut |_| {})? {
            body.extend_from_slice(&chunk);
            if body.len() > most {
                body.truncate(most);
                break;
            }
        }
        Ok(body)
    }

    /// Reads the rest after the last data, so that the connection can be reused.
    pub(crate) fn finish(self) {
        let end = Instant::now() + LAST_BYTES;
        while let Ok(Arrival::Chunk(_)) = self.arrivals.recv_timeout(end.saturating_duration_since(Instant::now())) {}
    }

    fn next(&mut self, hear: &mut dyn FnMut(Piece<'_>)) -> Result<Arrival, ModelError> {
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
                    return Err(ModelError::Silent { url: self.url.to_owned(), seconds: since.elapsed().as_secs() });
                }
                Err(RecvTimeoutError::Timeout) => self.tell_silence(since.elapsed(), hear),
            }
        }
    }

    fn tell_silence(&mut self, silence: Duration, hear: &mut dyn FnMut(Piece<'_>)) {
        let due = TOLD.get(self.told).copied().unwrap_or(60 * (self.told.saturating_sub(TOLD.len()) as u64 + 1));
        if silence.as_secs() >= due {
            self.told += 1;
            hear(Piece::Waiting(Duration::from_secs(due)));
        }
    }
}

/// Runs on the client's thread; ends as soon as the receiver has gone.
fn carry(agent: &Agent, order: &HttpRequest, sender: &SyncSender<Arrival>) {
    let response = match request(agent, order) {
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

fn request(agent: &Agent, order: &HttpRequest) -> Result<Response<ureq::Body>, ModelError> {
    let sent = match transmit(agent, order) {
        // The server may have closed a kept connection just when we used it.
        Err(ureq::Error::Io(error)) if order.reuses && is_hang_up(&error) => transmit(agent, order),
        sent => sent,
    };
    sent.map_err(|error| match tls_failure(&error) {
        Some(why) => explained(&order.url, why),
        None if matches!(&error, ureq::Error::Io(error) if is_hang_up(error)) => {
            ModelError::Dropped { url: order.url.clone(), why: "the server hung up before it began".to_owned() }
        }
        None => unreachable(&order.url, error.to_string().trim_start_matches("io: ")),
    })
}

fn is_hang_up(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

fn transmit(agent: &Agent, order: &HttpRequest) -> Result<Response<ureq::Body>, ureq::Error> {
    let Some(body) = &order.body else {
        let get = order.headers.iter().fold(agent.get(&order.url), |get, (name, value)| get.header(*name, value));
        return get.call();
    };
    let post = agent.post(&order.url).header("Content-Type", "application/json");
    let post = order.headers.iter().fold(post, |post, (name, value)| post.header(*name, value));
    post.send(body.as_bytes())
}

fn head(response: &Response<ureq::Body>) -> Head {
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let is = |kind: &str| header("content-type").is_some_and(|found| found.starts_with(kind));
    Head {
        status: response.status().as_u16(),
        is_json: is("application/json"),
        is_page: is("text/html"),
        retry_after: header("retry-after").and_then(|value| value.trim().parse().ok()).map(Duration::from_secs),
    }
}

fn unreachable(url: &str, why: &str) -> ModelError {
    let hint = "; start the server, or name another one: ollama:NAME or openai:NAME@http://HOST:PORT/v1";
    ModelError::Unreachable { url: url.to_owned(), why: why.to_owned(), hint: hint.to_owned() }
}

fn explained(url: &str, why: String) -> ModelError {
    ModelError::Unreachable { url: url.to_owned(), why, hint: String::new() }
}
