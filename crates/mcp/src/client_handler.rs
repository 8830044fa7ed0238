//! Handles a server's own requests and notifications.
#![expect(deprecated, reason = "servers of older revisions still sample, ask for roots and log")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestMethod, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability, FormElicitationCapability,
    Implementation, InputRequest, ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam,
    ProgressToken, ProtocolVersion, ResourceUpdatedNotificationParam, Root, RootsCapabilities, SamplingCapability,
    ServerNotification, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleClient};
use serde_json::Value;
use tokio::sync::Notify;

use crate::log::Log;
use crate::ports::{ElicitAnswer, Ports, Reply, ServerNotice};
use crate::settings::Settings;

/// The most questions of one server that may wait for an answer at the same time.
pub(crate) const QUESTIONS: usize = 16;

/// Reports progress of a call. Must not block.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// The progress of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// How much is done.
    pub done: f64,
    /// How much there is to do, if the server says it.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// The handler of one server.
pub(crate) struct ClientHandler {
    server: String,
    config: ClientConfig,
    roots: Vec<Root>,
    ports: Ports,
    log: Arc<Log>,
    calls: Mutex<HashMap<ProgressToken, Arc<CallProgress>>>,
    /// Questions that wait for a person or a model.
    asking: AtomicUsize,
    pub(crate) changes: ToolChanges,
}

/// The progress of one call.
pub(crate) struct CallProgress {
    pub(crate) notify: Notify,
    report: Option<OnProgress>,
}

/// How often the tools have changed, and up to which change they were listed.
#[derive(Default)]
pub(crate) struct ToolChanges {
    announced: AtomicU64,
    seen: AtomicU64,
    /// No caller waits for changes up to this one.
    not_awaited: AtomicU64,
    pub(crate) notify: Notify,
    /// A caller waits for the current tools.
    pub(crate) urgent: Notify,
}

impl ToolChanges {
    fn tools(&self) {
        self.announced.fetch_add(1, Ordering::Relaxed);
        self.notify.notify_one();
    }

    /// How often the tools have changed.
    pub(crate) fn announced(&self) -> u64 {
        self.announced.load(Ordering::Relaxed)
    }

    /// Notes that the tools were listed up to this change.
    pub(crate) fn see(&self, change: u64) {
        self.seen.fetch_max(change, Ordering::Relaxed);
    }

    /// Whether the tools were listed since this change.
    pub(crate) fn has_seen(&self, change: u64) -> bool {
        self.seen.load(Ordering::Relaxed) >= change
    }

    /// Makes no caller wait for changes up to this one.
    pub(crate) fn stop_waiting_for(&self, change: u64) {
        self.not_awaited.fetch_max(change, Ordering::Relaxed);
    }

    /// Whether the tools have changed since they were listed, and callers should wait for the new list.
    pub(crate) fn are_awaited(&self) -> bool {
        self.are_new() && self.not_awaited.load(Ordering::Relaxed) < self.announced()
    }

    /// Whether the tools have changed since they were listed.
    pub(crate) fn are_new(&self) -> bool {
        !self.has_seen(self.announced())
    }
}

impl ClientHandler {
    pub(crate) fn new(server: &str, settings: &Settings, ports: Ports, log: Arc<Log>) -> Self {
        let roots = settings.roots.iter().map(|root| {
            let folder = Root::new(root.uri.clone());
            root.name.iter().fold(folder, |folder, name| folder.with_name(name.clone()))
        });
        Self {
            server: server.to_owned(),
            config: client_config(settings, &ports),
            roots: roots.collect(),
            ports,
            log,
            calls: Mutex::default(),
            asking: AtomicUsize::new(0),
            changes: ToolChanges::default(),
        }
    }

    pub(crate) fn config(&self) -> &ClientConfig {
        &self.config
    }

    /// Whether a question of the server waits for an answer.
    pub(crate) fn is_asking(&self) -> bool {
        self.asking.load(Ordering::Relaxed) > 0
    }

    /// Reports the progress of a call until the guard is dropped.
    pub(crate) fn watch_progress(&self, token: ProgressToken, report: Option<OnProgress>) -> ProgressGuard<'_> {
        let progress = Arc::new(CallProgress { notify: Notify::new(), report });
        self.calls().insert(token.clone(), Arc::clone(&progress));
        ProgressGuard { handler: self, token, progress }
    }

    /// Answers a question that came in place of a result.
    pub(crate) async fn answer(&self, request: InputRequest) -> Result<Value, ErrorData> {
        let answer = match request {
            InputRequest::CreateMessage(request) => serde_json::to_value(self.sample(request.params).await?),
            InputRequest::Elicitation(request) => serde_json::to_value(self.elicit(request.params).await),
            InputRequest::ListRoots(_) => serde_json::to_value(ListRootsResult::new(self.roots.clone())),
            _ => return Err(ErrorData::invalid_request("this question is unknown here", None)),
        };
        answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// Handles a notification that came on a subscription.
    pub(crate) fn announce(&self, notification: &ServerNotification) {
        match notification {
            ServerNotification::ToolListChangedNotification(_) => self.changes.tools(),
            ServerNotification::PromptListChangedNotification(_) => self.notice(&ServerNotice::Prompts),
            ServerNotification::ResourceListChangedNotification(_) => self.notice(&ServerNotice::Resources),
            ServerNotification::ResourceUpdatedNotification(updated) => {
                self.notice(&ServerNotice::Resource(updated.params.uri.clone()));
            }
            _ => {}
        }
    }

    fn notice(&self, notice: &ServerNotice) {
        if let Some(watch) = &self.ports.watch {
            watch.notice(&self.server, notice);
        }
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<ProgressToken, Arc<CallProgress>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn elicit(&self, request: ElicitRequestParams) -> ElicitResult {
        let decline = ElicitResult::new(ElicitationAction::Decline);
        let (Some(port), Ok(question)) = (&self.ports.elicit, serde_json::to_value(request)) else {
            return decline;
        };
        // Only addresses that a browser shows may be opened.
        let url = question.get("url").and_then(Value::as_str);
        if url.is_some_and(|url| !url.starts_with("https://") && !url.starts_with("http://")) {
            return decline;
        }
        let Some(_asking) = OpenQuestion::new(&self.asking) else {
            return decline;
        };
        let (reply, answer) = Reply::pair();
        port.elicit(&self.server, question, reply);
        match answer.await {
            Ok(ElicitAnswer::Accept(Some(content))) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(content)
            }
            Ok(ElicitAnswer::Accept(None)) => ElicitResult::new(ElicitationAction::Accept),
            Ok(ElicitAnswer::Cancel) => ElicitResult::new(ElicitationAction::Cancel),
            Ok(ElicitAnswer::Decline) | Err(_) => decline,
        }
    }

    async fn sample(&self, request: CreateMessageRequestParams) -> Result<CreateMessageResult, ErrorData> {
        let Some(port) = &self.ports.sample else {
            return Err(ErrorData::method_not_found::<CreateMessageRequestMethod>());
        };
        let internal = |error: String| ErrorData::internal_error(error, None);
        let request = serde_json::to_value(request).map_err(|error| internal(error.to_string()))?;
        let asking = OpenQuestion::new(&self.asking);
        let _asking = asking.ok_or_else(|| internal("too many questions wait for an answer".to_owned()))?;
        let (reply, answer) = Reply::pair();
        port.sample(&self.server, request, reply);
        let answer = answer.await.unwrap_or_else(|_| Err("the request was declined".to_owned()));
        serde_json::from_value(answer.map_err(internal)?).map_err(|error| internal(error.to_string()))
    }
}

/// Our name, version and capabilities. The newest revision never goes into `initialize`, because it has no such
/// request.
fn client_config(settings: &Settings, ports: &Ports) -> ClientConfig {
    let mut abilities = ClientCapabilities::default();
    if !settings.roots.is_empty() {
        abilities.roots = Some(RootsCapabilities::default());
    }
    if ports.sample.is_some() {
        abilities.sampling = Some(SamplingCapability::default());
    }
    if ports.elicit.is_some() {
        let form = FormElicitationCapability::default();
        abilities.elicitation =
            Some(ElicitationCapability::new().with_form(form).with_url(UrlElicitationCapability::default()));
    }
    let config = Implementation::new(settings.name.clone(), settings.version.clone());
    ClientConfig::new(abilities, config).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

/// A log message of a server as one line.
pub(crate) fn logged(params: &LoggingMessageNotificationParam) -> String {
    let text = params.data.as_str().map_or_else(|| params.data.to_string(), str::to_owned);
    let logger = params.logger.as_ref().map(|logger| format!("{logger}: ")).unwrap_or_default();
    let level = serde_json::to_value(params.level).unwrap_or_default();
    format!("{}: {logger}{text}", level.as_str().unwrap_or("log"))
}

/// A call whose progress is reported.
pub(crate) struct ProgressGuard<'a> {
    handler: &'a ClientHandler,
    token: ProgressToken,
    pub(crate) progress: Arc<CallProgress>,
}

impl Drop for ProgressGuard<'_> {
    fn drop(&mut self) {
        self.handler.calls().remove(&self.token);
    }
}

/// Counts a question while it waits.
struct OpenQuestion<'a>(&'a AtomicUsize);

impl<'a> OpenQuestion<'a> {
    /// One more question, unless there are enough.
    fn new(count: &'a AtomicUsize) -> Option<Self> {
        let asking = Self(count);
        (count.fetch_add(1, Ordering::Relaxed) < QUESTIONS).then_some(asking)
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl rmcp::ClientHandler for ClientHandler {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        tokio::select! {
            answer = self.sample(request) => answer,
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            answer = self.elicit(request) => Ok(answer),
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(self.roots.clone()))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let Some(progress) = self.calls().get(&params.progress_token).cloned() else {
            return;
        };
        progress.notify.notify_one();
        if let Some(report) = &progress.report {
            let message = params.message.map(|message| self.log.clean(&message));
            report(Progress { done: params.progress, total: params.total, message });
        }
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.log.add(&logged(&params));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.tools();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.notice(&ServerNotice::Prompts);
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.notice(&ServerNotice::Resources);
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.notice(&ServerNotice::Resource(params.uri));
    }
}
