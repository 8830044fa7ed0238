//! Streamable HTTP: the network side of the SDK's transport, with our bounds.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{HEADER_LAST_EVENT_ID, HEADER_SESSION_ID};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;

use crate::batch::{self, DecodeError};
use crate::depth_limit;
use crate::events::{Event, Events};
use crate::web::{Site, WebError, body, challenge, explanation, refusal};

pub(crate) const EVENTS: &str = "text/event-stream";
pub(crate) const JSON: &str = "application/json";
const BOTH: &str = "application/json, text/event-stream";

/// Failures of the SDK's transport, with our own among them.
pub(crate) type HttpError = StreamableHttpError<WebError>;
type Headers = HashMap<HeaderName, HeaderValue>;
type EventStream = BoxStream<'static, Result<Sse, SseError>>;

/// The network for the SDK's transport.
#[derive(Clone)]
pub(crate) struct Http {
    pub(crate) site: Site,
    /// The most bytes of one answer or event.
    pub(crate) cap: usize,
}

impl StreamableHttpClient for Http {
    type Error = WebError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let request = self.site.client().post(&*uri).header(ACCEPT, BOTH).header(CONTENT_TYPE, JSON);
        let request = with(request, session.as_deref(), headers).body(serde_json::to_vec(&message)?);
        let response = self.site.send(request).await.map_err(denied)?;
        if let Some(error) = insufficient(&response) {
            return Err(error);
        }
        let status = response.status();
        match status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if session.is_some() => Err(StreamableHttpError::SessionExpired),
            _ if status.is_success() => self.accepted(response, &message).await,
            _ => {
                let explanation = explanation(response).await;
                failed(status, &explanation, &message, session.is_some())
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        let request = with(self.site.client().delete(&*uri), Some(&session), headers);
        let status = self.site.send(request).await.map_err(denied)?.status();
        if status.is_success() || matches!(status, StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND) {
            return Ok(());
        }
        Err(StreamableHttpError::Client(refusal(status, "")))
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<EventStream, HttpError> {
        let mut request = with(self.site.client().get(&*uri).header(ACCEPT, EVENTS), session.as_deref(), headers);
        if let Some(last) = last {
            request = request.header(HEADER_LAST_EVENT_ID, last);
        }
        let response = self.site.send(request).await.map_err(denied)?;
        if let Some(error) = insufficient(&response) {
            return Err(error);
        }
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(StreamableHttpError::Client(refusal(status, ""))),
            _ if !speaks(&response, EVENTS) => Err(StreamableHttpError::UnexpectedContentType(kind(&response))),
            _ => Ok(self.events(response)),
        }
    }
}

impl Http {
    /// The answer to a message that the server accepted.
    async fn accepted(
        &self,
        response: Response,
        message: &ClientJsonRpcMessage,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let session = response.headers().get(HEADER_SESSION_ID).and_then(|value| value.to_str().ok().map(String::from));
        if speaks(&response, EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), session));
        }
        let asked = matches!(message, ClientJsonRpcMessage::Request(_));
        if !speaks(&response, JSON) {
            // Only a request has an answer, so for other messages its form does not matter.
            let wrong = StreamableHttpError::UnexpectedContentType(kind(&response));
            return if asked { Err(wrong) } else { Ok(StreamableHttpPostResponse::Accepted) };
        }
        let body = body(response, self.cap).await.map_err(StreamableHttpError::Client)?;
        let mut more = VecDeque::new();
        match batch::read(&body, &mut more) {
            Ok(answer) if more.is_empty() => Ok(StreamableHttpPostResponse::Json(answer, session)),
            Ok(first) if asked => {
                more.push_front(first);
                let all = stream::iter(spoken(more, &Event::default()).into_iter().map(Ok)).boxed();
                Ok(StreamableHttpPostResponse::Sse(all, session))
            }
            Ok(_) => Ok(StreamableHttpPostResponse::Accepted),
            Err(_) if !asked => Ok(StreamableHttpPostResponse::Accepted),
            Err(DecodeError::Wrong(error)) => Err(StreamableHttpError::Deserialize(error)),
            Err(why) => {
                let text = format!("its answer cannot be read: {why}");
                Err(StreamableHttpError::Client(WebError::Refused(text)))
            }
        }
    }

    fn events(&self, response: Response) -> EventStream {
        let reading = (response, Events::new(self.cap), VecDeque::new());
        stream::unfold(Some(reading), |reading| async {
            let (mut response, mut events, mut found) = reading?;
            match next(&mut response, &mut events, &mut found).await {
                Ok(Some(event)) => {
                    let heard = sse(event).into_iter().map(Ok).collect();
                    Some((heard, Some((response, events, found))))
                }
                Ok(None) => None,
                Err(error) => Some((vec![Err(SseError::Body(Box::new(error)))], None)),
            }
        })
        .flat_map(stream::iter)
        .boxed()
    }
}

/// The next event of a response.
pub(crate) async fn next(
    response: &mut Response,
    events: &mut Events,
    found: &mut VecDeque<Event>,
) -> Result<Option<Event>, WebError> {
    loop {
        if let Some(event) = found.pop_front() {
            return Ok(Some(event));
        }
        let Some(chunk) = response.chunk().await? else {
            return Ok(None);
        };
        found.extend(events.push(&chunk).map_err(|error| WebError::Refused(error.to_string()))?);
    }
}

/// The first message in an event; further messages of a batch are appended to `more`. An unreadable message becomes a
/// failure for the request that waits for it.
pub(crate) fn hear(event: &Event, more: &mut VecDeque<ServerJsonRpcMessage>) -> Option<ServerJsonRpcMessage> {
    let text = event.data.as_deref()?.as_bytes();
    let read = match event.cut {
        Some(allowed) => Err(DecodeError::Long(allowed)),
        None => batch::read(text, more),
    };
    read.or_else(|why| batch::failure(text, &why).ok_or(why)).ok()
}

/// An event in the SDK's form, with one message; an event with several messages becomes several.
fn sse(event: Event) -> Vec<Sse> {
    let mut messages = VecDeque::new();
    if event.cut.is_some() || event.data.as_deref().is_some_and(batch::is_unusual) {
        if let Some(first) = hear(&event, &mut messages) {
            messages.push_front(first);
        }
        return spoken(messages, &event);
    }
    let data = event.data.map(|data| match depth_limit::shallow(data.as_bytes()) {
        Some(shallow) => String::from_utf8_lossy(&shallow).into_owned(),
        None => data,
    });
    vec![Sse { event: event.kind, data, id: event.id, retry: event.retry }]
}

/// The messages of one event, as one event each. The SDK stops listening at an answer, so answers come last.
fn spoken(messages: VecDeque<ServerJsonRpcMessage>, event: &Event) -> Vec<Sse> {
    let is_answer = |message: &ServerJsonRpcMessage| {
        matches!(message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
    };
    let mut messages: Vec<_> = messages.into();
    messages.sort_by_key(is_answer);
    let texts = messages.iter().filter_map(|message| serde_json::to_string(message).ok());
    let one = |data| Sse { event: event.kind.clone(), data: Some(data), id: event.id.clone(), retry: event.retry };
    texts.map(one).collect()
}

fn with(request: RequestBuilder, session: Option<&str>, headers: Headers) -> RequestBuilder {
    let request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
    match session {
        Some(session) => request.header(HEADER_SESSION_ID, session),
        None => request,
    }
}

fn denied(error: WebError) -> HttpError {
    match error {
        WebError::Denied(challenge) => StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)),
        error => StreamableHttpError::Client(error),
    }
}

/// The failure of a request whose token is valid, but lacks scopes.
fn insufficient(response: &Response) -> Option<HttpError> {
    if response.status() != StatusCode::FORBIDDEN {
        return None;
    }
    let error = InsufficientScopeError::new(challenge(response)?, None);
    Some(StreamableHttpError::InsufficientScope(error))
}

/// The answer to a message that the server did not accept. Servers reject an unknown `server/discover` in many ways;
/// after each of them the older way is tried.
fn failed(
    status: StatusCode,
    explanation: &str,
    message: &ClientJsonRpcMessage,
    session: bool,
) -> Result<StreamableHttpPostResponse, HttpError> {
    let known = match serde_json::from_str(explanation) {
        Ok(ServerJsonRpcMessage::Error(error)) if status != StatusCode::FORBIDDEN => Some(error),
        _ => None,
    };
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && status.is_client_error()
        && status != StatusCode::FORBIDDEN
        && !session
    {
        let unknown = || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("HTTP {}", status.as_u16()), None);
        let error = known.map_or_else(unknown, |error| error.error);
        let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match known {
        // Only a failure with an id reaches the caller that waits for that request.
        Some(error) if error.id.is_some() => {
            Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), None))
        }
        _ => Err(StreamableHttpError::Client(refusal(status, explanation))),
    }
}

pub(crate) fn speaks(response: &Response, wanted: &str) -> bool {
    kind(response).is_some_and(|kind| kind.to_ascii_lowercase().starts_with(wanted))
}

fn kind(response: &Response) -> Option<String> {
    let value = response.headers().get(CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}
