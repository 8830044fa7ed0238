//! A live connection: requests with clocks, cancellation and follow-up questions. Any number at once.

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

use crate::clock::after;
use crate::desk::{Desk, OnProgress};
use crate::error::{Fault, Trouble};
use crate::http::HttpError;
use crate::log::Log;
use crate::shared::redact;
use crate::web::WebError;

/// How often one call may come back with questions.
pub(crate) const ROUNDS: usize = 10;
/// The pause before a call that came back without a question is made again.
const BREATH: Duration = Duration::from_millis(100);
/// How long the word that nobody waits any more may take to be sent before the connection is ended.
const FAREWELL: Duration = Duration::from_millis(500);

/// A live connection to one server.
pub(crate) struct Link {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) info: Arc<ServerPeerInfo>,
    log: Arc<Log>,
    runtime: Handle,
    born: Instant,
    calls: AtomicUsize,
    /// When the last reply came, in milliseconds since birth.
    seen: AtomicU64,
    /// When the last call was made or ended, likewise.
    used: AtomicU64,
    /// Whether nothing was answered since a request was given up.
    silent: AtomicBool,
    /// How many requests were given up without the server being told so yet.
    untold: Arc<watch::Sender<usize>>,
}

/// How long to wait for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Without a sign of progress.
    idle: Duration,
    /// At all.
    ceiling: Duration,
    end: Instant,
}

impl Patience {
    /// Waits from now on.
    pub(crate) fn new(idle: Duration, ceiling: Duration) -> Self {
        Self { idle, ceiling, end: after(ceiling) }
    }
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection had ended before the request was sent.
    Unsent,
    /// The server wants to know who we are.
    Denied(String),
    /// All else.
    Trouble(Trouble),
}

/// What is asked of a server that may ask back.
#[derive(Clone, Debug)]
pub(crate) enum Wish {
    Call(String, Map<String, Value>),
    Prompt(String, Map<String, Value>),
    Read(String),
}

impl Link {
    pub(crate) fn new(peer: Peer<RoleClient>, desk: Arc<Desk>, info: Arc<ServerPeerInfo>, log: Arc<Log>) -> Self {
        Self {
            peer,
            desk,
            info,
            log,
            runtime: Handle::current(),
            born: Instant::now(),
            calls: AtomicUsize::new(0),
            seen: AtomicU64::new(0),
            used: AtomicU64::new(0),
            silent: AtomicBool::new(false),
            untold: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Whether the connection has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// How long no reply came.
    pub(crate) fn silence(&self) -> Duration {
        self.since(&self.seen)
    }

    /// How long nobody called.
    pub(crate) fn idleness(&self) -> Duration {
        if self.calls.load(Ordering::Relaxed) > 0 { Duration::ZERO } else { self.since(&self.used) }
    }

    /// Whether somebody waits for an answer, or has waited in vain and there was none since.
    pub(crate) fn owes(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0 || self.silent.load(Ordering::Relaxed)
    }

    /// Waits until the server was told of all requests that were given up.
    pub(crate) async fn parted(&self) {
        let mut untold = self.untold.subscribe();
        let _ = timeout(FAREWELL, untold.wait_for(|count| *count == 0)).await;
    }

    /// Fulfils a wish, answering the questions that the server has about it.
    pub(crate) async fn fulfil(
        &self,
        wish: &Wish,
        patience: Patience,
        report: Option<OnProgress>,
    ) -> Result<Value, Failure> {
        let _busy = Busy::new(self);
        let (mut answers, mut state) = (None, None);
        for _ in 0..ROUNDS {
            let request = wish.request(answers.take(), state.take());
            match self.ask(request, wish.what(), patience, report.clone()).await? {
                ServerResult::InputRequiredResult(result) => (answers, state) = self.answer(result).await?,
                result => return serde_json::to_value(result).map_err(|error| unexpected(&error.to_string())),
            }
        }
        Err(unexpected(&format!("it asked back {ROUNDS} times")))
    }

    /// Sends a request and waits for the answer. Dropped before that, it is cancelled.
    pub(crate) async fn ask(
        &self,
        request: ClientRequest,
        what: &str,
        patience: Patience,
        report: Option<OnProgress>,
    ) -> Result<ServerResult, Failure> {
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let handle = sent.map_err(|error| match error {
            ServiceError::TransportClosed => Failure::Unsent,
            error => self.failure(error),
        })?;
        let mut abandoned = Abandoned { link: self, id: Some(handle.id.clone()) };
        let answer = self.wait(handle, what, patience, report).await?;
        abandoned.id = None;
        let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
        if !matches!(answer, Err(ServiceError::TransportClosed | ServiceError::TransportSend(_))) {
            self.touch(&self.seen);
            self.silent.store(false, Ordering::Relaxed);
        }
        answer.map_err(|error| self.failure(error))
    }

    /// Asks for a sign of life.
    pub(crate) async fn ping(&self, limit: Duration) -> Result<(), Failure> {
        let request = if self.info.protocol_version.has_initialize() {
            ClientRequest::PingRequest(PingRequest::default())
        } else {
            ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {}))
        };
        let patience = Patience::new(limit, limit);
        match self.ask(request, "ping", patience, None).await {
            // A refusal is a sign of life too.
            Ok(_) | Err(Failure::Trouble(Trouble::Refused { .. })) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    async fn wait(
        &self,
        mut handle: RequestHandle<RoleClient>,
        what: &str,
        patience: Patience,
        report: Option<OnProgress>,
    ) -> Result<Result<Result<ServerResult, ServiceError>, RecvError>, Failure> {
        let attended = self.desk.attend(handle.progress_token.clone(), report);
        let next = || patience.end.min(after(patience.idle));
        let mut alarm = std::pin::pin!(sleep_until(next()));
        loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => return Ok(answer),
                () = attended.pulse.beat.notified() => {}
                () = &mut alarm => {
                    let late = Instant::now() >= patience.end;
                    // A person who is being asked takes their time.
                    if late || !self.desk.is_asking() {
                        let after = if late { patience.ceiling } else { patience.idle };
                        return Err(Failure::Trouble(Trouble::TimedOut { what: what.to_owned(), after }));
                    }
                }
            }
            alarm.as_mut().reset(next());
        }
    }

    async fn answer(&self, result: InputRequiredResult) -> Result<(Option<InputResponses>, Option<String>), Failure> {
        let mut answers = InputResponses::new();
        for (key, request) in result.input_requests.unwrap_or_default() {
            answers.insert(key, self.desk.answer(request).await.map_err(|error| self.refused(error))?);
        }
        if answers.is_empty() {
            if result.request_state.is_none() {
                return Err(unexpected("it asked back without a question"));
            }
            sleep(BREATH).await;
        }
        Ok(((!answers.is_empty()).then_some(answers), result.request_state))
    }

    fn failure(&self, error: ServiceError) -> Failure {
        match error {
            ServiceError::McpError(error) => self.refused(error),
            ServiceError::TransportClosed => Failure::Trouble(Trouble::Lost("it ended the connection".to_owned())),
            ServiceError::Cancelled { .. } => Failure::Trouble(Trouble::Cancelled),
            ServiceError::TransportSend(error) => match error.error.downcast::<HttpError>() {
                Ok(error) => self.web_failure((*error).into()),
                Err(error) => match error.downcast::<WebError>() {
                    Ok(error) => self.web_failure((*error).into()),
                    Err(error) => Failure::Trouble(Trouble::Lost(self.log.clean(&error.to_string()))),
                },
            },
            error => unexpected(&self.log.clean(&error.to_string())),
        }
    }

    fn web_failure(&self, fault: Fault) -> Failure {
        let text = self.log.clean(&fault.to_string());
        match fault {
            Fault::Denied(challenge) => Failure::Denied(challenge),
            Fault::Web(WebError::Net(_)) => Failure::Trouble(Trouble::Lost(text)),
            _ => Failure::Trouble(Trouble::Unexpected(text)),
        }
    }

    fn refused(&self, mut error: ErrorData) -> Failure {
        let message = self.log.clean(&error.message);
        error.data.iter_mut().for_each(|data| redact(data, &self.log.redactor()));
        Failure::Trouble(Trouble::Refused { code: error.code.0, message, data: error.data.map(Box::new) })
    }

    fn since(&self, moment: &AtomicU64) -> Duration {
        self.born.elapsed().saturating_sub(Duration::from_millis(moment.load(Ordering::Relaxed)))
    }

    fn touch(&self, moment: &AtomicU64) {
        let now = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        moment.store(now, Ordering::Relaxed);
    }
}

impl Wish {
    fn what(&self) -> &str {
        match self {
            Wish::Call(name, _) | Wish::Prompt(name, _) | Wish::Read(name) => name,
        }
    }

    fn request(&self, answers: Option<InputResponses>, state: Option<String>) -> ClientRequest {
        match self.clone() {
            Wish::Call(tool, args) => {
                let mut params = CallToolRequestParams::new(tool).with_arguments(args);
                (params.input_responses, params.request_state) = (answers, state);
                ClientRequest::CallToolRequest(CallToolRequest::new(params))
            }
            Wish::Prompt(name, args) => {
                let mut params = GetPromptRequestParams::new(name);
                params.arguments = (!args.is_empty()).then_some(args);
                (params.input_responses, params.request_state) = (answers, state);
                ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
            }
            Wish::Read(uri) => {
                let mut params = ReadResourceRequestParams::new(uri);
                (params.input_responses, params.request_state) = (answers, state);
                ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
            }
        }
    }
}

/// A request whose answer nobody may want any more.
struct Abandoned<'a> {
    link: &'a Link,
    id: Option<RequestId>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.link.silent.store(true, Ordering::Relaxed);
            let (peer, untold) = (self.link.peer.clone(), Arc::clone(&self.link.untold));
            untold.send_modify(|count| *count += 1);
            self.link.runtime.spawn(cancel(peer, id, untold));
        }
    }
}

fn cancel(peer: Peer<RoleClient>, id: RequestId, untold: Arc<watch::Sender<usize>>) -> impl Future<Output = ()> {
    let params = CancelledNotificationParam::new(Some(id), Some("nobody waits for the answer any more".to_owned()));
    async move {
        let _ = peer.notify_cancelled(params).await;
        untold.send_modify(|count| *count -= 1);
    }
}

/// A call on its way.
struct Busy<'a>(&'a Link);

impl<'a> Busy<'a> {
    fn new(link: &'a Link) -> Self {
        link.calls.fetch_add(1, Ordering::Relaxed);
        Self(link)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.touch(&self.0.used);
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

fn unexpected(text: &str) -> Failure {
    Failure::Trouble(Trouble::Unexpected(text.to_owned()))
}
