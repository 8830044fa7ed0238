//! How a server is reached, with every default applied and every variable filled in.

use std::path::PathBuf;
use std::time::Duration;

use ollm_process::Limits;
use ollm_protocol::{Oauth, ToolFilter};
use ollm_trust::ProgramBox;

/// An MCP server that is ready to be started.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadyServer {
    /// Its name: unique among all servers, and part of the names of its tools.
    pub name: String,
    /// The extension that brought it, if one did: failures name it.
    pub extension: Option<String>,
    /// Where it is.
    pub endpoint: Endpoint,
    /// How long connecting may take, the first answer included.
    pub connect_timeout: Duration,
    /// How long a call may take without a sign of progress.
    pub tool_timeout: Duration,
    /// How long without a call until it is ended, which the next call undoes; never when absent.
    pub idle: Option<Duration>,
    /// Whether it may be started at all.
    pub enabled: bool,
    /// Whether it starts with the first call only, if its tools are known from before.
    pub lazy: bool,
    /// Whether it is started anew after a crash.
    pub auto_restart: bool,
    /// Which of its tools are offered.
    pub tools: ToolFilter,
    /// How to log in to it, where that needs more than it says itself.
    pub oauth: Option<Oauth>,
    /// Values, and what they are called, that must not be seen in anything it says, whatever variables hold them.
    pub secrets: Vec<(String, String)>,
    /// Values that may be secrets. They are hidden in its log and its failures, but not in what it lists and in its results,
    /// which they may be part of: the name of a folder, for instance.
    pub hidden: Vec<(String, String)>,
}

impl ReadyServer {
    /// A server that starts at once and stays, with all its tools and the usual times.
    pub fn new(name: impl Into<String>, endpoint: Endpoint) -> ReadyServer {
        ReadyServer {
            name: name.into(),
            extension: None,
            endpoint,
            connect_timeout: Duration::from_secs(10),
            tool_timeout: Duration::from_mins(1),
            idle: None,
            enabled: true,
            lazy: false,
            auto_restart: false,
            tools: ToolFilter::default(),
            oauth: None,
            secrets: Vec::new(),
            hidden: Vec::new(),
        }
    }
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq)]
pub enum Endpoint {
    /// A child of ours that speaks on its standard streams.
    Stdio {
        /// The program, absolute.
        program: PathBuf,
        /// Its arguments.
        args: Vec<String>,
        /// Its whole environment: nothing else reaches it.
        env: Vec<(String, String)>,
        /// Where it runs.
        cwd: Option<PathBuf>,
        /// What it may use.
        limits: Limits,
        /// The box that it runs in; none when absent.
        program_box: Option<Box<ProgramBox>>,
    },
    /// Streamable HTTP; the older SSE where the server knows nothing else.
    Http {
        /// Its address.
        url: String,
        /// Headers beside the protocol's own.
        headers: Vec<(String, String)>,
    },
    /// The older transport: events from one address, requests to another.
    Sse {
        /// The address of the events.
        url: String,
        /// Headers beside the protocol's own.
        headers: Vec<(String, String)>,
    },
}
