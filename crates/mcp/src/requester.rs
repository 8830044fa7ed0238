//! Requests over a live connection, any number at once. Every request waits in one function ([`Requester::ask`]).
//! Progress extends its deadline up to a fixed ceiling, and dropping it cancels the request.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, DiscoverRequest,
    DiscoverRequestParams, GetPromptRequest, GetPromptRequestParams, InputRequiredResult, InputResponses, PingRequest,
    ReadResourceRequest, ReadResourceRequestParams, RequestId, ServerPeerInfo, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use rmcp::{ErrorData, Peer, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::client_handler::{ClientHandler, OnProgress};
use crate::clock::after;
use crate::error::{CallErrorKind, ConnectError};
use crate::http::HttpError;
use crate::log::Log;
use crate::shared::redact;
use crate::web::WebError;

/// How often the server may answer one call with questions.
pub(crate) const ROUNDS: usize = 10;
/// The pause before a call is repeated that came back without a result and without a question.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How long closing the connection waits for unsent cancellations.
const CANCEL_TIME: Duration = Duration::from_millis(500);

/// Sends requests to one server over a live connection.
pub(crate) struct Requester {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) handler: Arc<ClientHandler>,
    pub(crate) info: Arc<ServerPeerInfo>,
    log: Arc<Log>,
    runtime: Handle,
    began: Instant,
    calls: AtomicUsize,
    /// When the last reply came, in milliseconds since the connection began.
    seen: AtomicU64,
    /// When the last call began or ended, likewise.
    used: AtomicU64,
    /// Whether no answer came since a request was cancelled.
    silent: AtomicBool,
    /// How many cancellations are not sent yet.
    unsent_cancels: Arc<watch::Sender<usize>>,
}

/// How long to wait for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestDeadline {
    /// Time without progress.
    idle: Duration,
    /// Time in all, with or without progress.
    ceiling: Duration,
    end: Instant,
}

impl RequestDeadline {
    /// Waits from now on.
    pub(crate) fn new(idle: Duration, ceiling: Duration) -> Self {
        Self { idle, ceiling, end: after(ceiling) }
    }
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The connection had ended before the request was sent.
    Unsent,
    /// The server wants authorization; the text is its challenge.
    Denied(String),
    /// All else.
    Failed(CallErrorKind),
}

/// A request during which the server may ask questions.
#[derive(Clone, Debug)]
pub(crate) enum InteractiveRequest {
    Call(String, Map<String, Value>),
    Prompt(String, Map<String, Value>),
    Read(String),
}

impl Requester {
    pub(crate) fn new(
        peer: Peer<RoleClient>,
        handler: Arc<ClientHandler>,
        info: Arc<ServerPeerInfo>,
        log: Arc<Log>,
    ) -> Self {
        Self {
            peer,
            handler,
            info,
            log,
            runtime: Handle::current(),
            began: Instant::now(),
            calls: AtomicUsize::new(0),
            seen: AtomicU64::new(0),
            used: AtomicU64::new(0),
            silent: AtomicBool::new(false),
            unsent_cancels: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// The time since the last reply.
    pub(crate) fn silence(&self) -> Duration {
        self.since(&self.seen)
    }

    /// The time since the last call; zero while a call waits.
    pub(crate) fn idleness(&self) -> Duration {
        if self.calls.load(Ordering::Relaxed) > 0 { Duration::ZERO } else { self.since(&self.used) }
    }

    /// Whether a call waits for an answer, or no answer came since one was cancelled.
    pub(crate) fn owes_answer(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0 || self.silent.load(Ordering::Relaxed)
    }

    /// Waits until all cancellations are sent.
    pub(crate) async fn cancels_sent(&self) {
        let mut unsent_cancels = self.unsent_cancels.subscribe();
        let _ = timeout(CANCEL_TIME, unsent_cancels.wait_for(|count| *count == 0)).await;
    }

    /// Sends a request, and answers questions that the server asks about it.
    pub(crate) async fn send_interactive(
        &self,
        request_kind: &InteractiveRequest,
        deadline: RequestDeadline,
        report: Option<OnProgress>,
    ) -> Result<Value, RequestError> {
        let _busy = ActiveCall::new(self);
        let (mut answers, mut state) = (None, None);
        for _ in 0..ROUNDS {
            let request = request_kind.request(answers.take(), state.take());
            match self.ask(request, request_kind.what(), deadline, report.clone()).await? {
                ServerResult::InputRequiredResult(result) => (answers, state) = self.answer(result).await?,
                result => return serde_json::to_value(result).map_err(|error| unexpected(&error.to_string())),
            }
        }
        Err(unexpected(&format!("it asked back {ROUNDS} times")))
    }

    /// Sends a request and waits for the answer. Dropping the future cancels the request.
    pub(crate) async fn ask(
        &self,
        request: ClientRequest,
        what: &str,
        deadline: RequestDeadline,
        report: Option<OnProgress>,
    ) -> Result<ServerResult, RequestError> {
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let handle = sent.map_err(|error| match error {
            ServiceError::TransportClosed => RequestError::Unsent,
            error => self.failure(error),
        })?;
        let mut cancel_on_drop = CancelOnDrop { requester: self, id: Some(handle.id.clone()) };
        let answer = self.wait(handle, what, deadline, report).await?;
        cancel_on_drop.id = None;
        let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
        if !matches!(answer, Err(ServiceError::TransportClosed | ServiceError::TransportSend(_))) {
            self.touch(&self.seen);
            self.silent.store(false, Ordering::Relaxed);
        }
        answer.map_err(|error| self.failure(error))
    }

    /// Sends a ping.
    pub(crate) async fn ping(&self, limit: Duration) -> Result<(), RequestError> {
        let request = if self.info.protocol_version.has_initialize() {
            ClientRequest::PingRequest(PingRequest::default())
        } else {
            ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {}))
        };
        let deadline = RequestDeadline::new(limit, limit);
        match self.ask(request, "ping", deadline, None).await {
            // A refusal also shows that the server lives.
            Ok(_) | Err(RequestError::Failed(CallErrorKind::Refused { .. })) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    async fn wait(
        &self,
        mut handle: RequestHandle<RoleClient>,
        what: &str,
        deadline: RequestDeadline,
        report: Option<OnProgress>,
    ) -> Result<Result<Result<ServerResult, ServiceError>, RecvError>, RequestError> {
        let progress = self.handler.watch_progress(handle.progress_token.clone(), report);
        let next = || deadline.end.min(after(deadline.idle));
        let mut alarm = std::pin::pin!(sleep_until(next()));
        loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => return Ok(answer),
                () = progress.progress.notify.notified() => {}
                () = &mut alarm => {
                    let late = Instant::now() >= deadline.end;
                    // The server waits for a person, so the idle timeout does not apply.
                    if late || !self.handler.is_asking() {
                        let after = if late { deadline.ceiling } else { deadline.idle };
                        return Err(RequestError::Failed(CallErrorKind::TimedOut { what: what.to_owned(), after }));
                    }
                }
            }
            alarm.as_mut().reset(next());
        }
    }

    async fn answer(
        &self,
        result: InputRequiredResult,
    ) -> Result<(Option<InputResponses>, Option<String>), RequestError> {
        let mut answers = InputResponses::new();
        for (key, request) in result.input_requests.unwrap_or_default() {
            answers.insert(key, self.handler.answer(request).await.map_err(|error| self.refused(error))?);
        }
        if answers.is_empty() {
            if result.request_state.is_none() {
                return Err(unexpected("it asked back without a question"));
            }
            sleep(RETRY_PAUSE).await;
        }
        Ok(((!answers.is_empty()).then_some(answers), result.request_state))
    }

    fn failure(&self, error: ServiceError) -> RequestError {
        match error {
            ServiceError::McpError(error) => self.refused(error),
            ServiceError::TransportClosed => {
                RequestError::Failed(CallErrorKind::Lost("it ended the connection".to_owned()))
            }
            ServiceError::Cancelled { .. } => RequestError::Failed(CallErrorKind::Cancelled),
            ServiceError::TransportSend(error) => match error.error.downcast::<HttpError>() {
                Ok(error) => self.web_failure((*error).into()),
                Err(error) => match error.downcast::<WebError>() {
                    Ok(error) => self.web_failure((*error).into()),
                    Err(error) => RequestError::Failed(CallErrorKind::Lost(self.log.clean(&error.to_string()))),
                },
            },
            error => unexpected(&self.log.clean(&error.to_string())),
        }
    }

    fn web_failure(&self, fault: ConnectError) -> RequestError {
        let text = self.log.clean(&fault.to_string());
        match fault {
            ConnectError::Denied(challenge) => RequestError::Denied(challenge),
            ConnectError::Web(WebError::Net(_)) => RequestError::Failed(CallErrorKind::Lost(text)),
            _ => RequestError::Failed(CallErrorKind::Unexpected(text)),
        }
    }

    fn refused(&self, mut error: ErrorData) -> RequestError {
        let message = self.log.clean(&error.message);
        error.data.iter_mut().for_each(|data| redact(data, &self.log.redactor()));
        RequestError::Failed(CallErrorKind::Refused { code: error.code.0, message, data: error.data.map(Box::new) })
    }

    fn since(&self, moment: &AtomicU64) -> Duration {
        self.began.elapsed().saturating_sub(Duration::from_millis(moment.load(Ordering::Relaxed)))
    }

    fn touch(&self, moment: &AtomicU64) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        moment.store(now, Ordering::Relaxed);
    }
}

impl InteractiveRequest {
    fn what(&self) -> &str {
        match self {
            InteractiveRequest::Call(name, _)
            | InteractiveRequest::Prompt(name, _)
            | InteractiveRequest::Read(name) => name,
        }
    }

    fn request(&self, answers: Option<InputResponses>, state: Option<String>) -> ClientRequest {
        match self.clone() {
            InteractiveRequest::Call(tool, args) => {
                let mut params = CallToolRequestParams::new(tool).with_arguments(args);
                (params.input_responses, params.request_state) = (answers, state);
                ClientRequest::CallToolRequest(CallToolRequest::new(params))
            }
            InteractiveRequest::Prompt(name, args) => {
                let mut params = GetPromptRequestParams::new(name);
                params.arguments = (!args.is_empty()).then_some(args);
                (params.input_responses, params.request_state) = (answers, state);
                ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
            }
            InteractiveRequest::Read(uri) => {
                let mut params = ReadResourceRequestParams::new(uri);
                (params.input_responses, params.request_state) = (answers, state);
                ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
            }
        }
    }
}

/// Cancels a request when dropped, unless its answer came.
struct CancelOnDrop<'a> {
    requester: &'a Requester,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.requester.silent.store(true, Ordering::Relaxed);
            let (peer, unsent_cancels) = (self.requester.peer.clone(), Arc::clone(&self.requester.unsent_cancels));
            unsent_cancels.send_modify(|count| *count += 1);
            self.requester.runtime.spawn(cancel(peer, id, unsent_cancels));
        }
    }
}

fn cancel(
    peer: Peer<RoleClient>,
    id: RequestId,
    unsent_cancels: Arc<watch::Sender<usize>>,
) -> impl Future<Output = ()> {
    let params = CancelledNotificationParam::new(Some(id), Some("the caller waits no longer".to_owned()));
    async move {
        let _ = peer.notify_cancelled(params).await;
        unsent_cancels.send_modify(|count| *count -= 1);
    }
}

/// Counts a call while it waits.
struct ActiveCall<'a>(&'a Requester);

impl<'a> ActiveCall<'a> {
    fn new(requester: &'a Requester) -> Self {
        requester.calls.fetch_add(1, Ordering::Relaxed);
        Self(requester)
    }
}

impl Drop for ActiveCall<'_> {
    fn drop(&mut self) {
        self.0.touch(&self.0.used);
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

fn unexpected(text: &str) -> RequestError {
    RequestError::Failed(CallErrorKind::Unexpected(text.to_owned()))
}
