//! Posts the event to an address, and reads the answer like a program's output.
//!
//! Each name is looked up once, and the connection goes to the checked address: no second look-up can lead elsewhere. A
//! proxy looks names up itself, so it gets only names, and public names only over TLS. A server that poses as the named
//! one has no certificate for that name. The request follows no redirect, decompresses nothing and stores nothing. The
//! deadline covers everything, including the look-up. After the deadline, the caller no longer waits for the request's
//! thread.

use std::io::{self, Read};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use ollm_net::{NetError, Network, tls_failure};
use ollm_protocol::End;
use ollm_protocol::hook::Endpoint;
use ollm_protocol::hook::action::HttpTarget;
use serde_json::Value;
use ureq::config::ConfigBuilder;
use ureq::http::Response;
use ureq::http::header::{CONTENT_ENCODING, LOCATION};
use ureq::typestate::AgentScope;
use ureq::{Agent, Body};

use super::{address, payload};
use crate::action::{ActionContext, PreparedAction, RemoteTask, Task, TaskReply, limits, written};

/// The longest head of a response, in bytes.
const LONGEST_HEAD: usize = 64 << 10;

/// A request that is ready to send.
#[derive(Clone)]
pub(crate) struct HttpRequest {
    pub(crate) endpoint: Endpoint,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Addresses that the hook may reach although they are not public.
    pub(crate) allowed: Vec<String>,
    pub(crate) network: Network,
    pub(crate) timeout: Duration,
    pub(crate) cap: usize,
}

impl std::fmt::Debug for HttpRequest {
    /// Omits the values of headers and the event.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HttpRequest").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

pub(crate) fn prepare(target: &HttpTarget, context: &ActionContext<'_>) -> PreparedAction {
    let HttpTarget { endpoint, headers } = target;
    let ActionContext { event, environment, .. } = context;
    let hook = context.hook();
    let variable = |name: &str| environment.get(name).and_then(|value| value.to_str()).map(str::to_owned);
    let mut filled = Vec::with_capacity(headers.len());
    for header in headers {
        match header.value(variable) {
            Ok(value) => filled.push((header.name.clone(), value)),
            Err(name) => {
                let why = format!("header `{}` needs the variable {name}, which is not set", header.name);
                return PreparedAction::Impossible(why);
            }
        }
    }
    let limits = limits(hook);
    let post = HttpRequest {
        endpoint: endpoint.clone(),
        headers: filled,
        body: written(hook, event),
        allowed: environment.http_allow.clone(),
        network: environment.network.clone(),
        timeout: limits.timeout,
        cap: limits.output,
    };
    PreparedAction::Task(Task::Remote(Box::new(post)), Vec::new())
}

impl RemoteTask for HttpRequest {
    fn run(self: Box<Self>) -> TaskReply {
        let started = Instant::now();
        let route = match self.route() {
            Ok(route) => route,
            Err(why) => return TaskReply::failed(why),
        };
        let left = self.timeout.saturating_sub(started.elapsed());
        if left.is_zero() {
            return TaskReply::late(self.timeout);
        }
        match self.send(route, left) {
            Ok(response) => self.receive(response),
            Err(Failure::Late) => TaskReply::late(self.timeout),
            Err(Failure::Other(why)) => TaskReply::failed(why),
        }
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn hand_over(&self) -> Result<Value, String> {
        Ok(payload::write(self))
    }

    fn secrets(&self) -> Vec<(String, String)> {
        self.headers.clone()
    }
}

impl HttpRequest {
    fn route(&self) -> Result<Route, String> {
        let Endpoint { url, host, port, secure } = &self.endpoint;
        let proxied = address::may_be_proxied(host, *port, *secure, &self.allowed);
        if proxied && self.network.uses_proxy(url).map_err(|error| error.to_string())? {
            return Ok(Route::Proxy);
        }
        self.addresses().map(Route::Direct)
    }

    /// The addresses to connect to. If one address of a name is not allowed, the whole name is refused.
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let Endpoint { host, port, secure, .. } = &self.endpoint;
        let found =
            (host.as_str(), *port).to_socket_addrs().map_err(|error| format!("{host} was not found: {error}"))?;
        let found: Vec<SocketAddr> = found.collect();
        if found.is_empty() {
            return Err(format!("{host} has no address"));
        }
        for address in &found {
            address::check(host, *address, *secure, &self.allowed)?;
        }
        Ok(found)
    }

    fn send(&self, route: Route, left: Duration) -> Result<Response<Body>, Failure> {
        let agent = match route {
            Route::Direct(addresses) => self.network.pinned_agent(self.config(left), addresses)?,
            Route::Proxy => self.network.agent(self.config(left), &self.endpoint.url)?,
        };
        let mut request = agent.post(&self.endpoint.url).header("content-type", "application/json");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.send(&self.body[..]).map_err(Failure::from)
    }

    fn config(&self, left: Duration) -> ConfigBuilder<AgentScope> {
        Agent::config_builder()
            .timeout_global(Some(left))
            .max_redirects(0)
            .http_status_as_error(false)
            .https_only(self.endpoint.secure)
            .max_response_header_size(LONGEST_HEAD)
            .max_idle_connections(0)
            .user_agent(concat!("ollm/", env!("CARGO_PKG_VERSION")))
            .accept("application/json")
            .accept_encoding("identity")
    }

    fn receive(&self, mut response: Response<Body>) -> TaskReply {
        let status = response.status();
        let encoding = response.headers().get(CONTENT_ENCODING).map(|value| String::from_utf8_lossy(value.as_bytes()));
        if let Some(encoding) = encoding.filter(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
            return TaskReply::failed(format!("the answer is packed as `{encoding}`, which was not asked for"));
        }
        let failure = match status.as_u16() {
            200..=299 => None,
            300..=399 => Some(redirected(&response)),
            code => Some(format!("answered with status {code}")),
        };
        let (body, over) = match bounded(&mut response, self.cap) {
            Ok(read) => read,
            Err(Failure::Late) => return TaskReply::late(self.timeout),
            Err(Failure::Other(why)) => return TaskReply::failed(why),
        };
        match failure {
            Some(why) => TaskReply::Failure(why, body),
            None if over => TaskReply::Something(body, End::Overflowed(self.cap)),
            None if status == 204 => TaskReply::Nothing,
            None => TaskReply::Something(body, End::Exited(0)),
        }
    }
}

/// How to reach a server.
enum Route {
    /// At one of these addresses.
    Direct(Vec<SocketAddr>),
    Proxy,
}

/// Why a request failed.
enum Failure {
    Late,
    Other(String),
}

impl From<ureq::Error> for Failure {
    fn from(error: ureq::Error) -> Failure {
        match error {
            ureq::Error::Timeout(_) => Failure::Late,
            ureq::Error::Io(error) => Failure::from(error),
            other => Failure::Other(format!("the request failed: {other}")),
        }
    }
}

impl From<NetError> for Failure {
    fn from(error: NetError) -> Failure {
        Failure::Other(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        let late = |error: &ureq::Error| matches!(error, ureq::Error::Timeout(_));
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<ureq::Error>());
        if error.kind() == io::ErrorKind::TimedOut || inner.is_some_and(late) {
            return Failure::Late;
        }
        let why = tls_failure(&error).unwrap_or_else(|| error.to_string());
        Failure::Other(format!("the request failed: {why}"))
    }
}

/// The body up to a cap, and whether the body is longer.
fn bounded(response: &mut Response<Body>, cap: usize) -> Result<(Vec<u8>, bool), Failure> {
    let mut body = Vec::new();
    let most = u64::try_from(cap).unwrap_or(u64::MAX).saturating_add(1);
    response.body_mut().as_reader().take(most).read_to_end(&mut body)?;
    let over = body.len() > cap;
    body.truncate(cap);
    Ok((body, over))
}

fn redirected(response: &Response<Body>) -> String {
    let place = response.headers().get(LOCATION).map(|place| String::from_utf8_lossy(place.as_bytes()).into_owned());
    let place = place.map(|place| place.chars().take(200).collect::<String>()).unwrap_or_default();
    format!("answered with status {}, which leads to `{place}`; redirects are not followed", response.status().as_u16())
}
