//! The transport of 2024-11-05: one address sends events, and names another address for requests.
//!
//! A session is bound to its event stream, so the end of the stream is the end of the connection. A new connection
//! begins with a new handshake.

use std::collections::VecDeque;
use std::future::Future;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Response, Url};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;

use crate::error::NO_EVENTS;
use crate::events::Events;
use crate::http::{EVENTS, JSON, hear, next, speaks};
use crate::line_transport::CloseReason;
use crate::web::{Site, WebError, explanation, refusal, same_origin};

/// A connection by events and posts.
pub(crate) struct Sse {
    site: Site,
    /// The address for requests.
    target: Url,
    stream: Option<Stream>,
    close_reason: CloseReason,
}

struct Stream {
    response: Response,
    events: Events,
    found: VecDeque<crate::events::Event>,
    /// Messages of one batch.
    batch: VecDeque<ServerJsonRpcMessage>,
}

impl Sse {
    /// Opens the stream and waits for the address for requests.
    pub(crate) async fn open(site: Site, url: &str, cap: usize) -> Result<Self, WebError> {
        let source = Url::parse(url).map_err(|error| WebError::Refused(format!("its `url` is no address: {error}")))?;
        let response = site.send(site.client().get(source.clone()).header(ACCEPT, EVENTS)).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(refusal(status, &explanation(response).await));
        }
        if !speaks(&response, EVENTS) {
            return Err(WebError::Refused(NO_EVENTS.to_owned()));
        }
        let mut stream = Stream { response, events: Events::new(cap), found: VecDeque::new(), batch: VecDeque::new() };
        let target = endpoint(&mut stream, &source).await?;
        Ok(Self { site, target, stream: Some(stream), close_reason: CloseReason::default() })
    }

    /// The place where the reason for closing the connection will be stored.
    pub(crate) fn close_reason(&self) -> CloseReason {
        CloseReason::clone(&self.close_reason)
    }
}

impl Transport<RoleClient> for Sse {
    type Error = WebError;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), WebError>> + Send + 'static {
        let site = self.site.clone();
        let target = self.target.clone();
        async move {
            let body = serde_json::to_vec(&item).map_err(|error| WebError::Refused(error.to_string()))?;
            let response = site.send(site.client().post(target).header(CONTENT_TYPE, JSON).body(body)).await?;
            let status = response.status();
            if status.is_success() {
                return Ok(());
            }
            Err(refusal(status, &explanation(response).await))
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let stream = self.stream.as_mut()?;
            if let Some(message) = stream.batch.pop_front() {
                return Some(message);
            }
            let event = match next(&mut stream.response, &mut stream.events, &mut stream.found).await {
                Ok(Some(event)) => event,
                Ok(None) => return None,
                Err(error) => {
                    let _ = self.close_reason.set(error.to_string());
                    return None;
                }
            };
            let spoken = matches!(event.kind.as_deref(), None | Some("message" | ""));
            if spoken && let Some(message) = hear(&event, &mut stream.batch) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), WebError> {
        self.stream = None;
        Ok(())
    }
}

/// Reads the address for requests. It must have the origin of the event stream, because our secrets are sent to it.
async fn endpoint(stream: &mut Stream, source: &Url) -> Result<Url, WebError> {
    while let Some(event) = next(&mut stream.response, &mut stream.events, &mut stream.found).await? {
        if event.kind.as_deref() != Some("endpoint") {
            continue;
        }
        let place = event.data.unwrap_or_default();
        let target = source
            .join(place.trim())
            .map_err(|error| WebError::Refused(format!("it names an address for requests that is none: {error}")))?;
        if !same_origin(source, &target) {
            return Err(WebError::Redirect(target.origin().ascii_serialization()));
        }
        return Ok(target);
    }
    Err(WebError::Refused("it closed its stream of events before it named an address for requests".to_owned()))
}
