//! The status of a server. `ready` means that the server has answered.

use serde_json::Value;

/// The state of a server, with details.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// It does not run; the next call starts it.
    Configured,
    /// It is starting; the number counts the tries in a row.
    Starting(u32),
    /// It has answered, and its tools are known.
    Ready,
    /// It wants authorization; the text says what to do.
    NeedsAuth(String),
    /// It is connected, but something does not work; the text says what.
    Degraded(String),
    /// It ended unexpectedly; the next call starts it.
    Crashed(String),
    /// It cannot be started. A person must act; a server on the network is tried again after some time.
    Failed(String),
    /// It was stopped, and stays stopped until it is started.
    Stopped,
}

impl ServerState {
    /// The name of the state.
    pub fn name(&self) -> &'static str {
        match self {
            ServerState::Configured => "configured",
            ServerState::Starting(_) => "starting",
            ServerState::Ready => "ready",
            ServerState::NeedsAuth(_) => "needs-auth",
            ServerState::Degraded(_) => "degraded",
            ServerState::Crashed(_) => "crashed",
            ServerState::Failed(_) => "failed",
            ServerState::Stopped => "stopped",
        }
    }

    /// A less detailed name: starting, connected, disconnected or error.
    pub fn word(&self) -> &'static str {
        match self {
            ServerState::Configured | ServerState::Stopped => "disconnected",
            ServerState::Starting(_) => "starting",
            ServerState::Ready | ServerState::Degraded(_) => "connected",
            ServerState::NeedsAuth(_) | ServerState::Crashed(_) | ServerState::Failed(_) => "error",
        }
    }

    /// What is wrong, if anything is.
    pub fn problem(&self) -> Option<&str> {
        match self {
            ServerState::NeedsAuth(text)
            | ServerState::Degraded(text)
            | ServerState::Crashed(text)
            | ServerState::Failed(text) => Some(text),
            ServerState::Configured | ServerState::Starting(_) | ServerState::Ready | ServerState::Stopped => None,
        }
    }
}

/// What is known about a server now.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: ServerState,
    /// How many tools it offers.
    pub tools: usize,
    /// The transport in use: stdio, http or sse. A server declared with an address may turn out to need sse.
    pub transport: Option<&'static str>,
    /// The negotiated protocol revision.
    pub revision: Option<String>,
    /// What it says about itself: name, version, title.
    pub server: Option<Value>,
    /// Its instructions for models.
    pub instructions: Option<String>,
    /// Its process id.
    pub process: Option<u32>,
    /// What was left out, or accepted although it was wrong.
    pub warnings: Vec<String>,
}
