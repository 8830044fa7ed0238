//! Sends spans and metrics to a collector in batches, from a thread of its own.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use ollm_net::Network;
use serde_json::Value;
use ureq::Agent;

use super::metrics::Metrics;
use super::span;

/// How many events may wait; further ones are dropped.
const QUEUE: usize = 256;
/// The most spans in one request.
const BATCH: usize = 512;
/// How long spans wait for more.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the last request may take, so that the program ends without a long wait.
const LAST_PATIENCE: Duration = Duration::from_secs(2);
/// How often metrics are sent.
const METRICS_PERIOD: Duration = Duration::from_secs(10);
/// The paths for spans and metrics below a collector's address.
const TRACES: &str = "/v1/traces";
const METRICS: &str = "/v1/metrics";

/// The connection to a collector.
#[derive(Debug)]
pub(super) struct Exporter {
    queue: Option<SyncSender<Vec<Value>>>,
    thread: Option<JoinHandle<()>>,
    metrics: Arc<Metrics>,
}

impl Exporter {
    pub(super) fn start(
        endpoint: &str,
        headers: Vec<(String, String)>,
        network: &Network,
        metrics: &Arc<Metrics>,
    ) -> Result<Exporter, String> {
        let url = address(endpoint)?;
        let config = Agent::config_builder().timeout_global(Some(PATIENCE)).http_status_as_error(true).max_redirects(0);
        let agent = network.agent(config, &url).map_err(|error| unsent(&url, &error.to_string()))?;
        let (queue, waiting) = sync_channel(QUEUE);
        let metrics_url = url.strip_suffix(TRACES).map(|base| format!("{base}{METRICS}"));
        let sender =
            Sender { url, metrics_url, headers, agent, metrics: Arc::clone(metrics), start: SystemTime::now() };
        let thread = thread::Builder::new().name("telemetry".to_owned()).spawn(move || sender.run(&waiting));
        let thread = thread.map_err(|error| format!("no spans are sent: {error}"))?;
        Ok(Exporter { queue: Some(queue), thread: Some(thread), metrics: Arc::clone(metrics) })
    }

    /// Queues spans; if the queue is full, they are dropped and counted.
    pub(super) fn send(&self, spans: Vec<Value>) {
        let count = spans.len();
        if self.queue.as_ref().is_none_or(|queue| queue.try_send(spans).is_err()) {
            self.metrics.dropped(count);
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // Without a sender the thread sends the rest and ends; each request has a deadline.
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn unsent(url: &str, why: &str) -> String {
    format!("no spans are sent to {url}: {why}")
}

/// The address for spans: a collector's standard path, or the given path.
fn address(endpoint: &str) -> Result<String, String> {
    let endpoint = endpoint.trim();
    let rest = endpoint.strip_prefix("https://").or_else(|| endpoint.strip_prefix("http://"));
    let rest = rest.filter(|rest| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(char::is_whitespace));
    let Some(rest) = rest else {
        return Err(unsent(endpoint, "an address begins with http:// or https://, as in http://127.0.0.1:4318"));
    };
    let has_path = rest.trim_end_matches('/').contains('/');
    Ok(if has_path { endpoint.to_owned() } else { format!("{}{TRACES}", endpoint.trim_end_matches('/')) })
}

/// Parses headers in OpenTelemetry's form for variables: `name=value,name=value`, with percent-encoded values. Errors
/// do not contain the text, which may hold a key.
pub(super) fn headers(variable: &str, text: &str) -> Result<Vec<(String, String)>, String> {
    let wrong = || format!("no spans are sent: {variable} must be name=value,name=value");
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let is_value = |value: &str| value.chars().all(|letter| letter == ' ' || letter.is_ascii_graphic());
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let value = percent_encoding::percent_decode_str(value.trim()).decode_utf8().ok()?.into_owned();
        let name = name.trim().to_lowercase();
        (is_name(&name) && is_value(&value)).then_some((name, value))
    };
    parts.map(|part| pair(part).ok_or_else(wrong)).collect()
}

struct Sender {
    url: String,
    /// The address for metrics; `None` if the given address has a path.
    metrics_url: Option<String>,
    /// Headers that the collector needs, such as a key.
    headers: Vec<(String, String)>,
    agent: Agent,
    metrics: Arc<Metrics>,
    start: SystemTime,
}

impl Sender {
    fn run(&self, waiting: &Receiver<Vec<Value>>) {
        let mut told: Option<Instant> = None;
        // When to send metrics that the collector does not have yet.
        let mut due: Option<Instant> = None;
        loop {
            let first = match due {
                Some(due) => waiting.recv_timeout(due.saturating_duration_since(Instant::now())),
                None => waiting.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let mut is_last = first == Err(RecvTimeoutError::Disconnected);
            if let Ok(first) = first {
                let (batch, ends) = gather(first, waiting);
                is_last = ends;
                match self.post(&self.url, &span::request(&batch), patience(is_last)) {
                    Ok(()) => self.metrics.sent(batch.len()),
                    Err(_) => self.metrics.dropped(batch.len()),
                }
                due = due.or_else(|| Some(told.map_or_else(Instant::now, |told| told + METRICS_PERIOD)));
            }
            if due.is_some_and(|due| is_last || due <= Instant::now()) {
                (told, due) = (Some(Instant::now()), None);
                let numbers = self.metrics.request(self.start);
                // The next metrics include these.
                let _ = self.metrics_url.as_ref().map(|url| self.post(url, &numbers, patience(is_last)));
            }
            if is_last {
                return;
            }
        }
    }

    fn post(&self, url: &str, body: &Value, patience: Duration) -> Result<(), ureq::Error> {
        let request = self.agent.post(url).header("content-type", "application/json");
        let request = self.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        request.config().timeout_global(Some(patience)).build().send(body.to_string()).map(drop)
    }
}

fn patience(is_last: bool) -> Duration {
    if is_last { LAST_PATIENCE } else { PATIENCE }
}

/// Collects spans that come within a short time; returns whether no more will come.
fn gather(first: Vec<Value>, waiting: &Receiver<Vec<Value>>) -> (Vec<Value>, bool) {
    let (mut batch, deadline) = (first, Instant::now() + PAUSE);
    while batch.len() < BATCH {
        match waiting.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(more) => batch.extend(more),
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return (batch, true),
        }
    }
    (batch, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_opentelemetry_writes_them_and_never_repeated() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for (text, expected) in [
            ("", Some(vec![])),
            ("api-key=secret", Some(vec![pair("api-key", "secret")])),
            (" Authorization=Bearer%20abc== , x=1,", Some(vec![pair("authorization", "Bearer abc=="), pair("x", "1")])),
            ("secret", None),
            ("=secret", None),
            ("a b=secret", None),
            ("a=secret%0d%0ab: c", None),
            ("a=%ff", None),
        ] {
            let read = headers("VARIABLE", text);
            assert!(read.as_ref().err().is_none_or(|why| !why.contains("secret")), "{text}: {read:?}");
            assert_eq!(read.ok(), expected, "{text}");
        }
    }

    #[test]
    fn the_address_of_a_collector_gets_the_path_of_spans_unless_it_has_one() {
        for (endpoint, expected) in [
            ("http://127.0.0.1:4318", Some("http://127.0.0.1:4318/v1/traces")),
            ("http://127.0.0.1:4318/", Some("http://127.0.0.1:4318/v1/traces")),
            ("https://otel.example/in/v1/traces", Some("https://otel.example/in/v1/traces")),
            ("127.0.0.1:4318", None),
            ("ftp://x", None),
            ("http://", None),
            ("http://a b", None),
        ] {
            assert_eq!(address(endpoint).ok().as_deref(), expected, "{endpoint}");
        }
    }
}
