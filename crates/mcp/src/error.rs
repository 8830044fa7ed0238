//! What goes wrong with servers and with calls, in words that name the server and the way out.

use std::io;
use std::time::Duration;

use ollm_process::SpawnError;
use rmcp::ErrorData;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::Value;

use crate::http::HttpError;
use crate::web::WebError;

/// A call that has no result.
#[derive(Debug, thiserror::Error)]
#[error("MCP server `{server}`{}: {}", owner(extension.as_deref()), self.reason())]
#[non_exhaustive]
pub struct CallError {
    /// The server that was called.
    pub server: String,
    /// The extension that brought it, if one did.
    pub extension: Option<String>,
    /// What happened.
    pub kind: CallErrorKind,
    /// What the server said last on its standard error, where that may explain it.
    pub said: String,
}

impl CallError {
    pub(crate) fn new(server: &str, kind: CallErrorKind) -> Self {
        Self { server: server.to_owned(), extension: None, kind, said: String::new() }
    }

    /// What happened, and what the server said last.
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
    /// It does not run, and does not start.
    #[error("{0}")]
    Unavailable(String),
    /// The tool is not called before a person has looked at it.
    #[error("{0}")]
    Untrusted(String),
    /// It answered with a failure.
    #[error("{message} (error {code})")]
    Refused {
        /// The number of the failure.
        code: i32,
        /// What the server says about it.
        message: String,
        /// What else it says.
        data: Option<Box<Value>>,
    },
    /// It did not answer in time.
    #[error("no answer to `{what}` within {}", seconds(*.after))]
    TimedOut {
        /// What was asked.
        what: String,
        /// How long it had.
        after: Duration,
    },
    /// We do not want the answer any more.
    #[error("the call was cancelled")]
    Cancelled,
    /// The connection ended before there was an answer; whether the call had an effect is unknown.
    #[error("the connection was lost during the call, which may have had an effect: {0}")]
    Lost(String),
    /// The answer makes no sense.
    #[error("{0}")]
    Unexpected(String),
}

/// What a server says without saying it that does not know the older way of asking.
pub(crate) const NO_EVENTS: &str = "it sends no events; correct its `url` or its `transport`";

/// A start that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// Its program does not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It wants to know who we are.
    #[error("it wants to know who we are")]
    Denied(String),
    /// It cannot be reached.
    #[error("{0}")]
    Web(WebError),
    /// Its streams fail.
    #[error("{0}")]
    Streams(String),
    /// It did not answer in time.
    #[error("it did not answer within {}", seconds(*.0))]
    Late(Duration),
    /// It ended before it answered.
    #[error("it ended the connection before it answered")]
    Closed,
    /// It answered with a failure.
    #[error("it refuses to be connected to: {0}")]
    Refused(String),
    /// It is not for us.
    #[error("{0}")]
    Foreign(String),
    /// Its program may not be started.
    #[error("{0}")]
    Barred(String),
}

impl ConnectError {
    /// Whether another try would end the same way.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            ConnectError::Spawn(_) | ConnectError::Denied(_) | ConnectError::Foreign(_) | ConnectError::Barred(_) => {
                true
            }
            ConnectError::Web(error) => matches!(error, WebError::Redirect(_) | WebError::Refused(_)),
            ConnectError::Streams(_) | ConnectError::Late(_) | ConnectError::Closed | ConnectError::Refused(_) => false,
        }
    }

    /// The more telling one of what the older way of asking came to, and what the newer way did: that neither is known
    /// there is told by the newer one.
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

    /// Whether a server that was asked in the newest way may only know the oldest one.
    pub(crate) fn suggests_events(&self) -> bool {
        matches!(self, ConnectError::Web(WebError::Status(400 | 404 | 405, _)))
    }
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // How its program ended says more.
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

/// What a server said last, to stand after what happened.
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
