//! What the program does for servers: it answers their questions, asks a model, authorizes, watches and admits.
//!
//! All of it is optional. A missing port is not offered to servers, and a request for it is declined. A question comes
//! with a [`Reply`] and may be answered from any thread; a dropped reply declines.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use ollm_protocol::Oauth;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::status::ServerState;

/// The ports of the program.
#[derive(Clone, Default)]
pub struct Ports {
    /// Asks the person.
    pub elicit: Option<Arc<dyn Elicit>>,
    /// Asks a model.
    pub sample: Option<Arc<dyn Sample>>,
    /// Authorizes us to servers.
    pub authorize: Option<Arc<dyn Authorize>>,
    /// Watches what happens to servers.
    pub watch: Option<Arc<dyn Watch>>,
    /// May refuse each start of a program.
    pub admit: Option<Arc<dyn Admit>>,
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports")
            .field("elicit", &self.elicit.is_some())
            .field("sample", &self.sample.is_some())
            .field("authorize", &self.authorize.is_some())
            .field("watch", &self.watch.is_some())
            .field("admit", &self.admit.is_some())
            .finish()
    }
}

/// Asks the person on behalf of a server. Must not block.
pub trait Elicit: Send + Sync {
    /// Passes on a question: the parameters of `elicitation/create`, with `message` and either a `requestedSchema` or a
    /// `url`. Show the address to the person, and never pass it to a shell.
    fn elicit(&self, server: &str, question: Value, reply: Reply<ElicitAnswer>);
}

/// What the person answered.
#[derive(Clone, Debug, PartialEq)]
pub enum ElicitAnswer {
    /// Agreement, with the requested content.
    Accept(Option<Value>),
    /// Refusal.
    Decline,
    /// The person closed the question.
    Cancel,
}

/// Asks a model on behalf of a server. Must not block.
pub trait Sample: Send + Sync {
    /// Hands over a conversation: the parameters of `sampling/createMessage`. The reply is a result object of that
    /// method, or why there is none.
    fn sample(&self, server: &str, request: Value, reply: Reply<Result<Value, String>>);
}

/// Provides the value of the `Authorization` header.
pub trait Authorize: Send + Sync {
    /// From now on, `server` is the one at this address; `oauth` is what its declaration says about logging in.
    fn serve(&self, _server: &str, _url: &str, _oauth: Option<&Oauth>) {}

    /// The value for the next request to a server, if there is one.
    fn authorization<'a>(&'a self, server: &'a str) -> PortFuture<'a, Option<String>>;

    /// The server refused that value with this challenge, the value of `WWW-Authenticate`, which may be empty. Returns
    /// whether there is a better value now, so that one more try makes sense.
    fn refused<'a>(&'a self, server: &'a str, challenge: &'a str) -> PortFuture<'a, bool>;

    /// The server accepts our identity, but wants these scopes as well.
    fn lacking<'a>(&'a self, _server: &'a str, _scopes: &'a [String]) -> PortFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Why there is no value, or no better one, if something failed.
    fn trouble(&self, _server: &str) -> Option<String> {
        None
    }
}

/// A future of a port.
pub type PortFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Receives notices about servers. Must not block: servers wait meanwhile.
pub trait Watch: Send + Sync {
    /// Something happened to a server.
    fn notice(&self, server: &str, notice: &ServerNotice);
}

/// Checks each start of a server's program, also those after a crash or a pause, and each call. Other servers wait
/// meanwhile, so it may read a few files and no more.
pub trait Admit: Send + Sync {
    /// Why the program must not be started; `None` allows it.
    fn refusal(&self, server: &str) -> Option<String>;

    /// Why a tool must not be called; `None` allows it. The server runs, and `listed` is its current list. The caller
    /// may have chosen the tool from an earlier list.
    fn tool_refusal(&self, server: &str, tool: &str, listed: &Arc<[Value]>) -> Option<String>;
}

/// What happened to a server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerNotice {
    /// Its state has changed.
    State(ServerState),
    /// Its tools have changed.
    Tools,
    /// Its prompts have changed.
    Prompts,
    /// Its resources have changed.
    Resources,
    /// This resource has changed.
    Resource(String),
}

/// Sends the answer to a question.
#[derive(Debug)]
pub struct Reply<T>(oneshot::Sender<T>);

impl<T> Reply<T> {
    pub(crate) fn pair() -> (Self, oneshot::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }

    /// Whether the server still waits.
    pub fn is_awaited(&self) -> bool {
        !self.0.is_closed()
    }

    /// Sends the answer. Does nothing if the server does not wait any more.
    pub fn send(self, answer: T) {
        let _ = self.0.send(answer);
    }
}
