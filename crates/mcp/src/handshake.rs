//! The first messages: they find out which revision of the protocol a server speaks.
//!
//! The stateless revision has no handshake but a request, `server/discover`; all older ones begin with `initialize`.
//! Both kinds of servers are in use. An older server answers the request with some failure, or not at all: then it is
//! asked in the older way on the same connection. Our caller remembers which way worked, and tries that first.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientConfig, ClientJsonRpcMessage, ClientNotification, ClientRequest, ClientResult, DiscoverRequest,
    DiscoverRequestParams, ErrorCode, ErrorData, InitializeRequest, InitializeResult, InitializedNotification,
    ProtocolVersion, RequestId, RequestMetaObject, ServerJsonRpcMessage, ServerNotification, ServerPeerInfo,
    ServerRequest, ServerResult,
};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client_handler::logged;
use crate::error::ConnectError;
use crate::log::Log;

/// Ids of our first requests, far from the ids of later ones.
const DISCOVER: i64 = 2_000_000_001;
const AGAIN: i64 = 2_000_000_002;
const INITIALIZE: i64 = 2_000_000_003;

/// The two ways in which a connection can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// Revisions up to 2025-11-25, which begin with `initialize`.
    Handshake,
    /// From 2026-07-28 on, where every request speaks for itself.
    Stateless,
}

impl Era {
    /// The era of a revision.
    pub fn of(revision: &str) -> Self {
        if revision < ProtocolVersion::NO_INITIALIZE.as_str() { Era::Handshake } else { Era::Stateless }
    }
}

/// Agrees with a server on a revision.
pub(crate) async fn negotiate<T>(
    transport: &mut T,
    us: &ClientConfig,
    remembered: Option<Era>,
    probe: Duration,
    log: &Log,
) -> Result<ServerPeerInfo, ConnectError>
where
    T: Transport<RoleClient>,
    T::Error: Into<ConnectError>,
{
    let mut negotiation = Negotiation { transport, us, log };
    let mut discovered = None;
    if remembered != Some(Era::Handshake) {
        match timeout(probe, negotiation.discover()).await {
            Ok(Ok(Some(info))) => return Ok(info),
            Ok(Ok(None)) | Err(_) => {}
            Ok(Err(fault)) => return Err(fault),
        }
    }
    let answer = negotiation.initialize(&mut discovered).await?;
    match (answer, discovered) {
        (Ok(info), _) => negotiation.finish(info).await,
        // The server was slow, but supports `server/discover` after all.
        (Err(_), Some(info)) => Ok(info),
        (Err(error), None) => Err(error.into()),
    }
}

struct Negotiation<'a, T> {
    transport: &'a mut T,
    us: &'a ClientConfig,
    log: &'a Log,
}

/// A message that a server can send during the negotiation.
enum Incoming {
    Response(i64, Box<Result<ServerResult, ErrorData>>),
    /// A failure without a request id, from a server that could not read our request.
    Error(ErrorData),
    Nothing,
}

impl<T> Negotiation<'_, T>
where
    T: Transport<RoleClient>,
    T::Error: Into<ConnectError>,
{
    /// Sends `server/discover`; `None` if the server does not support it. If the server wants another revision, the
    /// request is sent once more for that revision.
    async fn discover(&mut self) -> Result<Option<ServerPeerInfo>, ConnectError> {
        match self.discover_at(ProtocolVersion::LATEST, DISCOVER).await? {
            Err(error) => match alternative(&error) {
                Some(version) => Ok(stateless(self.discover_at(version, AGAIN).await?)),
                None => Ok(None),
            },
            answer => Ok(stateless(answer)),
        }
    }

    async fn discover_at(
        &mut self,
        version: ProtocolVersion,
        number: i64,
    ) -> Result<Result<ServerResult, ErrorData>, ConnectError> {
        let us = self.us;
        let mut request = DiscoverRequest::new(DiscoverRequestParams {});
        request.extensions.insert(RequestMetaObject::with_client_context(
            version,
            us.client_info.clone(),
            us.capabilities.clone(),
        ));
        self.send(ClientJsonRpcMessage::request(ClientRequest::DiscoverRequest(request), RequestId::Number(number)))
            .await?;
        loop {
            match self.receive().await? {
                Incoming::Response(id, answer) if id == number => return Ok(*answer),
                Incoming::Error(error) => return Ok(Err(error)),
                _ => {}
            }
        }
    }

    /// Sends `initialize`. A late answer to `server/discover` is kept in `discovered`.
    async fn initialize(
        &mut self,
        discovered: &mut Option<ServerPeerInfo>,
    ) -> Result<Result<InitializeResult, ErrorData>, ConnectError> {
        let us = self.us.clone().with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
        let request = ClientRequest::InitializeRequest(InitializeRequest::new(us));
        self.send(ClientJsonRpcMessage::request(request, RequestId::Number(INITIALIZE))).await?;
        loop {
            match self.receive().await? {
                Incoming::Response(DISCOVER | AGAIN, answer) => *discovered = stateless(*answer),
                Incoming::Response(INITIALIZE, answer) => match *answer {
                    Ok(ServerResult::InitializeResult(result)) => return Ok(Ok(result)),
                    // The server would send the same wrong answer again.
                    Ok(other) => return Err(ConnectError::Foreign(self.log.clean(&misfit(&other)))),
                    Err(error) => return Ok(Err(error)),
                },
                Incoming::Error(error) => return Ok(Err(error)),
                _ => {}
            }
        }
    }

    async fn finish(&mut self, result: InitializeResult) -> Result<ServerPeerInfo, ConnectError> {
        if !ProtocolVersion::KNOWN_VERSIONS.contains(&result.protocol_version) {
            let version = self.log.clean(result.protocol_version.as_str());
            return Err(ConnectError::Foreign(format!(
                "it speaks revision `{version}` of the protocol, which is unknown here"
            )));
        }
        let ready = ClientNotification::InitializedNotification(InitializedNotification::default());
        self.send(ClientJsonRpcMessage::notification(ready)).await?;
        Ok(result.into())
    }

    async fn send(&mut self, message: ClientJsonRpcMessage) -> Result<(), ConnectError> {
        self.transport.send(message).await.map_err(Into::into)
    }

    async fn receive(&mut self) -> Result<Incoming, ConnectError> {
        let answer = |id, answer| match number(&id) {
            Some(id) => Incoming::Response(id, Box::new(answer)),
            None => Incoming::Nothing,
        };
        Ok(match self.transport.receive().await.ok_or(ConnectError::Closed)? {
            ServerJsonRpcMessage::Response(response) => answer(response.id, Ok(response.result)),
            ServerJsonRpcMessage::Error(error) => match error.id {
                Some(id) => answer(id, Err(error.error)),
                None => Incoming::Error(error.error),
            },
            ServerJsonRpcMessage::Request(request) => {
                if matches!(request.request, ServerRequest::PingRequest(_)) {
                    self.send(ClientJsonRpcMessage::response(ClientResult::empty(()), request.id)).await?;
                }
                Incoming::Nothing
            }
            ServerJsonRpcMessage::Notification(notification) => {
                match &notification.notification {
                    ServerNotification::LoggingMessageNotification(message) => self.log.add(&logged(&message.params)),
                    other => self.log.add(&serde_json::to_string(other).unwrap_or_default()),
                }
                Incoming::Nothing
            }
        })
    }
}

/// What is wrong with an answer to `initialize`.
fn misfit(answer: &ServerResult) -> String {
    let answer = serde_json::to_value(answer).unwrap_or_default();
    let texts = ["/protocolVersion", "/serverInfo/name", "/serverInfo/version"];
    for pointer in ["/protocolVersion", "/capabilities", "/serverInfo", "/serverInfo/name", "/serverInfo/version"] {
        let field = pointer.trim_start_matches('/').replace('/', ".");
        let (what, fits) = match answer.pointer(pointer).filter(|part| !part.is_null()) {
            None => return format!("its answer to `initialize` has no `{field}`"),
            Some(part) if texts.contains(&pointer) => ("text", part.is_string()),
            Some(part) => ("an object", part.is_object()),
        };
        if !fits {
            return format!("`{field}` in its answer to `initialize` must be {what}");
        }
    }
    let Err(error) = InitializeResult::deserialize(&answer) else {
        return "its answer to `initialize` is no answer to that".to_owned();
    };
    let field = blamed(&answer).map(|key| format!("`{key}` in ")).unwrap_or_default();
    format!("{field}its answer to `initialize` is wrong: {error}")
}

/// The field that makes an answer invalid: with a plain value in it, the answer would be valid.
fn blamed(answer: &Value) -> Option<&'static str> {
    let plain = json!({"capabilities": {}, "serverInfo": {"name": "", "version": ""}, "instructions": null});
    ["capabilities", "serverInfo", "instructions"].into_iter().find(|key| {
        let mut answer = answer.as_object().cloned().unwrap_or_default();
        answer.insert((*key).to_owned(), plain.get(*key).cloned().unwrap_or_default());
        InitializeResult::deserialize(&Value::Object(answer)).is_ok()
    })
}

/// The server's information from `server/discover`, if the server speaks a stateless revision.
fn stateless(answer: Result<ServerResult, ErrorData>) -> Option<ServerPeerInfo> {
    let Ok(ServerResult::DiscoverResult(result)) = answer else {
        return None;
    };
    let version = choose(&result.supported_versions)?;
    Some(ServerPeerInfo::from_discover_result(version, result))
}

/// The newest revision without handshake that both sides know.
fn choose(supported: &[ProtocolVersion]) -> Option<ProtocolVersion> {
    let mut stateless = ProtocolVersion::KNOWN_VERSIONS.iter().rev().filter(|version| !version.has_initialize());
    stateless.find(|version| supported.contains(version)).cloned()
}

/// The revision to ask for again, if the server rejected only the revision.
fn alternative(error: &ErrorData) -> Option<ProtocolVersion> {
    let supported = error.data.as_ref().filter(|_| error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION)?;
    choose(&serde_json::from_value::<Vec<_>>(supported.get("supported")?.clone()).ok()?)
}

/// The number of an id. Some servers turn numbers into text.
fn number(id: &RequestId) -> Option<i64> {
    match id {
        RequestId::Number(number) => Some(*number),
        RequestId::String(text) => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests;
