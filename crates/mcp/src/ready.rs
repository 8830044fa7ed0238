//! How a server is reached, with defaults applied and variables replaced.

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
    /// The extension that brought it, if one did; error messages name it.
    pub extension: Option<String>,
    /// How it is reached.
    pub endpoint: Endpoint,
    /// How long connecting may take, the first answer included.
    pub connect_timeout: Duration,
    /// How long a call may take without a sign of progress.
    pub tool_timeout: Duration,
    /// After how long without a call the server is stopped; the next call starts it again. `None`: never.
    pub idle: Option<Duration>,
    /// Whether it may be started.
    pub enabled: bool,
    /// Whether the first call starts it, if its tools are known from an earlier run.
    pub lazy: bool,
    /// Whether it is restarted after a crash.
    pub auto_restart: bool,
    /// Which of its tools are offered.
    pub tools: ToolFilter,
    /// How to log in, where the server's own metadata is not enough.
    pub oauth: Option<Oauth>,
    /// Secret values with their names. They are hidden in everything the server says.
    pub secrets: Vec<(String, String)>,
    /// Values that may be secrets, such as the name of a folder. They are hidden in the server's log and failures, but
    /// not in its lists and results, where they may belong.
    pub hidden: Vec<(String, String)>,
}

impl ReadyServer {
    /// A server that starts at once and stays, with all its tools and the default times.
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

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Endpoint {
    /// A child process that speaks on its standard streams.
    Stdio {
        /// The program, absolute.
        program: PathBuf,
        /// Its arguments.
        args: Vec<String>,
        /// Its whole environment: nothing else reaches it.
        env: Vec<(String, String)>,
        /// Its working directory.
        cwd: Option<PathBuf>,
        /// Its resource limits.
        limits: Limits,
        /// The box that it runs in; none when absent.
        program_box: Option<Box<ProgramBox>>,
    },
    /// Streamable HTTP; the older SSE if the server supports nothing else.
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
