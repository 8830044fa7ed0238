//! Failures of servers and of calls. Messages name the server and what to do.

use std::io;
use std::time::Duration;

use ollm_process::SpawnError;
use rmcp::ErrorData;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::Value;

use crate::http::HttpError;
use crate::web::WebError;

/// A call that has no result.
#[derive(Clone, Debug, thiserror::Error)]
#[error("MCP server `{server}`{}: {}", owner(extension.as_deref()), self.reason())]
#[non_exhaustive]
pub struct CallError {
    /// The name of the server.
    pub server: String,
    /// The extension that brought the server, if one did.
    pub extension: Option<String>,
    /// What happened.
    pub kind: CallErrorKind,
    /// The server's last lines on standard error, where they may explain the failure.
    pub said: String,
}

impl CallError {
    pub(crate) fn new(server: &str, kind: CallErrorKind) -> Self {
        Self { server: server.to_owned(), extension: None, kind, said: String::new() }
    }

    /// What happened, with the server's last lines.
    pub fn reason(&self) -> String {
        format!("{}{}", self.kind, last_words(&self.said))
    }
}

fn owner(extension: Option<&str>) -> String {
    extension.map(|name| format!(" of extension `{name}`")).unwrap_or_default()
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CallErrorKind {
    /// There is no server of this name.
    #[error("there is no such server")]
    Unknown,
    /// The server does not run, and does not start.
    #[error("{0}")]
    Unavailable(String),
    /// A person must look at the tool before it may be called.
    #[error("{0}")]
    Untrusted(String),
    /// The server answered with a failure.
    #[error("{message} (error {code})")]
    Refused {
        /// The error code.
        code: i32,
        /// The server's message about it.
        message: String,
        /// Additional data from the server.
        data: Option<Box<Value>>,
    },
    /// The server did not answer in time.
    #[error("no answer to `{what}` within {}", seconds(*.after))]
    TimedOut {
        /// The method that was called.
        what: String,
        /// How long it had.
        after: Duration,
    },
    /// The caller cancelled the call.
    #[error("the call was cancelled")]
    Cancelled,
    /// The connection ended before the answer; the call may or may not have had an effect.
    #[error("the connection was lost during the call, which may have had an effect: {0}")]
    Lost(String),
    /// The answer has the wrong form.
    #[error("{0}")]
    Unexpected(String),
}

/// The failure of a server that does not support the older transport.
pub(crate) const NO_EVENTS: &str = "it sends no events; correct its `url` or its `transport`";

/// A start that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// The program does not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The server wants authorization.
    #[error("it needs a login")]
    Denied(String),
    /// The server cannot be reached.
    #[error("{0}")]
    Web(WebError),
    /// The streams of the program fail.
    #[error("{0}")]
    Streams(String),
    /// The server did not answer in time.
    #[error("it did not answer within {}", seconds(*.0))]
    Late(Duration),
    /// The server ended the connection before it answered.
    #[error("it ended the connection before it answered")]
    Closed,
    /// The server answered with a failure.
    #[error("it refuses to be connected to: {0}")]
    Refused(String),
    /// Its address or its answers do not fit this client.
    #[error("{0}")]
    Foreign(String),
    /// We must not start the program.
    #[error("{0}")]
    Barred(String),
}

impl ConnectError {
    /// Whether another try would fail in the same way.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            ConnectError::Spawn(_) | ConnectError::Denied(_) | ConnectError::Foreign(_) | ConnectError::Barred(_) => {
                true
            }
            ConnectError::Web(error) => matches!(error, WebError::Redirect(_) | WebError::Refused(_)),
            ConnectError::Streams(_) | ConnectError::Late(_) | ConnectError::Closed | ConnectError::Refused(_) => false,
        }
    }

    /// Chooses the failure that explains more: this one of the older transport, or `newer`. The newer transport's
    /// explains more if this one only shows that the server does not support the older transport.
    pub(crate) fn or_else_of(self, newer: ConnectError) -> ConnectError {
        let telling = match &self {
            ConnectError::Web(WebError::Redirect(_))
            | ConnectError::Denied(_)
            | ConnectError::Foreign(_)
            | ConnectError::Refused(_)
            | ConnectError::Late(_)
            | ConnectError::Closed => true,
            ConnectError::Web(WebError::Refused(why)) => why != NO_EVENTS,
            _ => false,
        };
        if telling { self } else { newer }
    }

    /// Whether a server that refused the newest transport may support only the oldest one.
    pub(crate) fn suggests_events(&self) -> bool {
        matches!(self, ConnectError::Web(WebError::Status(400 | 404 | 405, _)))
    }
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // The exit of its program explains more.
            io::ErrorKind::BrokenPipe => ConnectError::Closed,
            _ => ConnectError::Streams(error.to_string()),
        }
    }
}

impl From<WebError> for ConnectError {
    fn from(error: WebError) -> Self {
        match error {
            WebError::Denied(challenge) => ConnectError::Denied(challenge),
            error => ConnectError::Web(error),
        }
    }
}

impl From<HttpError> for ConnectError {
    fn from(error: HttpError) -> Self {
        match error {
            StreamableHttpError::Client(error) => error.into(),
            StreamableHttpError::AuthRequired(error) => ConnectError::Denied(error.www_authenticate_header),
            StreamableHttpError::InsufficientScope(error) => ConnectError::Denied(error.www_authenticate_header),
            StreamableHttpError::UnexpectedContentType(kind) => ConnectError::Web(WebError::Refused(format!(
                "it answers with {}, which is no MCP; correct its `url`",
                kind.map_or_else(|| "no content type".to_owned(), |kind| format!("content of type `{kind}`"))
            ))),
            StreamableHttpError::Deserialize(_) => {
                ConnectError::Web(WebError::Refused("its answer is no JSON-RPC message".to_owned()))
            }
            error => ConnectError::Web(WebError::Net(error.to_string())),
        }
    }
}

impl From<ErrorData> for ConnectError {
    fn from(error: ErrorData) -> Self {
        ConnectError::Refused(format!("{} (error {})", error.message, error.code.0))
    }
}

/// The server's last lines, as an ending for a message.
pub(crate) fn last_words(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; its last words:\n{said}") }
}

/// A time for people.
pub(crate) fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        return format!("{} ms", time.as_millis());
    }
    let seconds = format!("{:.1}", time.as_secs_f64());
    format!("{} s", seconds.strip_suffix(".0").unwrap_or(&seconds))
}

/// A number of bytes for people.
pub(crate) fn bytes(count: usize) -> String {
    const MIB: usize = 1 << 20;
    if count >= MIB && count.is_multiple_of(MIB) { format!("{} MiB", count / MIB) } else { format!("{count} bytes") }
}
