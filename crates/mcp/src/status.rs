//! How a server is, told truthfully: "ready" means that a reply was seen.

use serde_json::Value;

/// The state of a server, with what there is to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// It does not run, and starts with the next call.
    Configured,
    /// It is being started, for the so-manieth time in a row.
    Starting(u32),
    /// It has answered, and its tools are known.
    Ready,
    /// It wants to know who we are; the text names what to do.
    NeedsAuth(String),
    /// It is connected, but something is wrong with it.
    Degraded(String),
    /// It ended without being asked to; the next call starts it.
    Crashed(String),
    /// It cannot be started; only a person changes that, or for a server on the network some time.
    Failed(String),
    /// It was stopped, and stays so until it is started.
    Stopped,
}

impl ServerState {
    /// Our name of the state.
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

    /// The coarser word: starting, connected, disconnected or error.
    pub fn word(&self) -> &'static str {
        match self {
            ServerState::Configured | ServerState::Stopped => "disconnected",
            ServerState::Starting(_) => "starting",
            ServerState::Ready | ServerState::Degraded(_) => "connected",
            ServerState::NeedsAuth(_) | ServerState::Crashed(_) | ServerState::Failed(_) => "error",
        }
    }

    /// What is wrong, if anything.
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

/// What is known of a server now.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: ServerState,
    /// How many tools it offers.
    pub tools: usize,
    /// How it was reached: stdio, http or sse, which an address may turn out to be.
    pub transport: Option<&'static str>,
    /// The protocol revision that was agreed upon.
    pub revision: Option<String>,
    /// What it says of itself: name, version, title.
    pub server: Option<Value>,
    /// What it tells models about itself.
    pub instructions: Option<String>,
    /// The number of its process.
    pub process: Option<u32>,
    /// What was left out or put up with.
    pub warnings: Vec<String>,
}
