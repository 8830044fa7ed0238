//! The handle of one server: its state, its tools, and calls. A separate task runs its lifecycle (`lifecycle`); calls
//! go straight to the connection and never through that task.

use std::sync::Arc;
use std::time::Duration;

use ollm_protocol::Remedy;
use ollm_store::Redactor;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::cache::ServerMemory;
use crate::client_handler::{ClientHandler, OnProgress};
use crate::endpoint::is_remote;
use crate::error::{CallError, CallErrorKind};
use crate::handshake::Era;
use crate::lifecycle::{ServerCommand, run_lifecycle};
use crate::list::{ListKind, Listing, list};
use crate::log::Log;
use crate::ready::{Endpoint, ReadyServer};
use crate::requester::{InteractiveRequest, RequestDeadline, RequestError, Requester};
use crate::runtime::RuntimeHandle;
use crate::shared::{ServerShared, ServerSnapshot, needs_auth, redact, secrets};
use crate::status::{ServerState, ServerStatus};

pub use crate::shared::ClientContext;

/// How long a call whose connection was lost waits for the reason.
const REASON: Duration = Duration::from_secs(1);

/// How long a caller waits for a new list of tools after the server announced one.
const FRESH: Duration = Duration::from_secs(2);

/// A tool to call.
#[derive(Clone, Default)]
pub struct Call {
    /// Its name, as the server knows it.
    pub tool: String,
    /// Its arguments.
    pub args: Map<String, Value>,
    /// How long it may take without a sign of progress; `None` for the declared time.
    pub timeout: Option<Duration>,
    /// Receives the progress of the call.
    pub progress: Option<OnProgress>,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("tool", &self.tool).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// One server. Dropping it ends it at once, with the whole process group of its program.
#[derive(Debug)]
pub struct Server {
    shared: Arc<ServerShared>,
    commands: mpsc::UnboundedSender<ServerCommand>,
    task: JoinHandle<()>,
}

impl Server {
    /// A server that does not run yet. It belongs to the runtime of the caller, whose thread must outlive it.
    pub fn new(context: Arc<ClientContext>, ready: ReadyServer, memory: ServerMemory) -> Self {
        Self::on(context, ready, memory, None)
    }

    /// A server whose program is started by the thread of `runtime`, and which belongs to that runtime.
    pub(crate) fn on_thread(
        context: Arc<ClientContext>,
        ready: ReadyServer,
        memory: ServerMemory,
        runtime: Arc<RuntimeHandle>,
    ) -> Self {
        Self::on(context, ready, memory, Some(runtime))
    }

    fn on(
        context: Arc<ClientContext>,
        ready: ReadyServer,
        memory: ServerMemory,
        runtime: Option<Arc<RuntimeHandle>>,
    ) -> Self {
        if let (Some(authorize), Endpoint::Http { url, .. } | Endpoint::Sse { url, .. }) =
            (&context.ports.authorize, &ready.endpoint)
        {
            authorize.serve(&ready.name, url, ready.oauth.as_ref());
        }
        let log = Arc::new(Log::new(secrets(&ready), ready.hidden.clone(), context.settings.bounds.lines));
        let handler = ClientHandler::new(&ready.name, &context.settings, context.ports.clone(), Arc::clone(&log));
        let (now, _) = watch::channel(ServerSnapshot {
            state: ServerState::Configured,
            requester: None,
            tools: memory.tools.unwrap_or_default().into(),
            lapsed: Arc::new([]),
            info: None,
            process: None,
            transport: None,
            mark: 0,
            warnings: memory.warnings,
        });
        let shared = Arc::new(ServerShared { ready, context, handler: Arc::new(handler), log, now, runtime });
        let (commands, receiver) = mpsc::unbounded_channel();
        let era = memory.revision.as_deref().map(Era::of);
        let task = tokio::spawn(run_lifecycle(Arc::clone(&shared), receiver, era));
        Self { shared, commands, task }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.ready.name
    }

    /// Its declaration, ready to start.
    pub fn ready(&self) -> &ReadyServer {
        &self.shared.ready
    }

    /// Its status.
    pub fn status(&self) -> ServerStatus {
        let (now, redactor) = (self.shared.now(), self.shared.log.strict());
        let hide = |text: &str| redactor.redact_str(text).into_owned();
        ServerStatus {
            name: self.name().to_owned(),
            tools: self.admitted(&now.tools).count(),
            transport: now.transport,
            revision: now.info.as_ref().map(|info| info.protocol_version.as_str().to_owned()),
            server: now.info.as_ref().and_then(|info| serde_json::to_value(info.server_info.as_ref()?).ok()),
            instructions: now.info.as_ref().and_then(|info| Some(hide(info.instructions.as_deref()?))),
            process: now.process,
            state: now.state,
            warnings: now.warnings,
        }
    }

    /// The tools that it offers, unchanged, without those that the declaration filters out.
    pub fn tools(&self) -> Vec<Value> {
        self.admitted(&self.shared.now().tools).cloned().collect()
    }

    /// The tools that it offered until it crashed; a call of one of them starts it again.
    pub fn lapsed(&self) -> Vec<Value> {
        self.admitted(&self.shared.now().lapsed).cloned().collect()
    }

    /// What to remember for the next run. The tools are `None` while it is not connected.
    pub fn memory(&self) -> ServerMemory {
        let now = self.shared.now();
        // Without a list, the tools are unknown.
        let unlisted = now.tools.is_empty() && matches!(now.state, ServerState::Degraded(_));
        let connected = (now.requester.is_some() && !unlisted).then(|| now.tools.to_vec());
        let revision = now.info.map(|info| info.protocol_version.as_str().to_owned());
        let transport = now.transport.map(str::to_owned);
        ServerMemory { revision, transport, tools: connected, warnings: now.warnings }
    }

    /// Lines of its log from a number on, and the number of the next one.
    pub fn log(&self, since: u64) -> (Vec<String>, u64) {
        self.shared.log.since(since)
    }

    /// The redactor for answers that are stored: it hides the server's secrets.
    pub fn redactor(&self) -> Arc<Redactor> {
        self.shared.log.redactor()
    }

    /// Its last lines on standard error and in its log messages since it was connected, without secrets.
    pub fn last_words(&self) -> String {
        self.shared.log.tail(self.shared.now.borrow().mark)
    }

    /// Starts it without waiting for the outcome.
    pub fn begin(&self) {
        if self.refusal().is_none() {
            let _ = self.commands.send(ServerCommand::Start { manual: true, reply: None });
        }
    }

    /// Starts it, unless it runs, and waits for the outcome.
    pub async fn start(&self) -> Result<(), CallError> {
        self.launch(true).await
    }

    /// Stops it with time to end by itself, and withdraws its tools.
    pub async fn stop(&self) {
        self.command(ServerCommand::Stop).await;
    }

    /// Stops it and starts it again.
    pub async fn restart(&self) -> Result<(), CallError> {
        if let Some(trouble) = self.refusal() {
            return Err(self.error(trouble));
        }
        self.command(ServerCommand::Restart).await;
        self.connected().map(drop)
    }

    /// Whether it has announced new tools that it has not listed yet.
    pub fn is_stale(&self) -> bool {
        self.shared.handler.changes.are_awaited() && self.shared.now.borrow().requester.is_some()
    }

    /// Waits for a while until it has listed the tools that it announced.
    pub async fn refresh(&self) {
        if !self.is_stale() {
            return;
        }
        let changes = &self.shared.handler.changes;
        let change = changes.announced();
        changes.urgent.notify_one();
        let mut now = self.shared.now.subscribe();
        let listed = now.wait_for(|now| now.requester.is_none() || changes.has_seen(change));
        if tokio::time::timeout(FRESH, listed).await.is_err() {
            let text = "it announced other tools and did not list them within 2 s; those of before are offered";
            self.shared.log.add(text);
            changes.stop_waiting_for(change);
        }
    }

    /// Whether it crashed and has not been started since.
    pub(crate) fn is_crashed(&self) -> bool {
        matches!(self.shared.now.borrow().state, ServerState::Crashed(_))
    }

    /// Offers the tools of a crashed server again, so that a call starts it. In a crash loop this does nothing.
    pub async fn offer(&self) {
        if self.is_crashed() {
            self.command(ServerCommand::Offer).await;
        }
    }

    /// Calls a tool; starts the server if it does not run. Returns the server's own result object. Dropping the future
    /// cancels the call.
    pub async fn call(&self, call: Call) -> Result<Value, CallError> {
        if !self.shared.ready.tools.admits(&call.tool) {
            let text = format!("its tool `{}` is not allowed by its declaration", call.tool);
            return Err(self.error(CallErrorKind::Unavailable(text)));
        }
        let idle = call.timeout.unwrap_or(self.shared.ready.tool_timeout);
        self.request(InteractiveRequest::Call(call.tool, call.args), idle, call.progress).await
    }

    /// Gets a prompt, filled in.
    pub async fn prompt(&self, name: String, args: Map<String, Value>) -> Result<Value, CallError> {
        self.request(InteractiveRequest::Prompt(name, args), self.shared.ready.tool_timeout, None).await
    }

    /// Reads a resource.
    pub async fn read(&self, uri: String) -> Result<Value, CallError> {
        self.request(InteractiveRequest::Read(uri), self.shared.ready.tool_timeout, None).await
    }

    /// Lists its prompts.
    pub async fn prompts(&self) -> Result<Listing, CallError> {
        self.list(ListKind::Prompts).await
    }

    /// Lists its resources.
    pub async fn resources(&self) -> Result<Listing, CallError> {
        self.list(ListKind::Resources).await
    }

    /// Lists the patterns of its resources.
    pub async fn templates(&self) -> Result<Listing, CallError> {
        self.list(ListKind::Templates).await
    }

    async fn list(&self, kind: ListKind) -> Result<Listing, CallError> {
        let requester = self.requester().await?;
        let able = &requester.info.capabilities;
        let offers = match kind {
            ListKind::Tools => able.tools.is_some(),
            ListKind::Prompts => able.prompts.is_some(),
            ListKind::Resources | ListKind::Templates => able.resources.is_some(),
        };
        if !offers {
            return Ok(Listing::default());
        }
        match list(&requester, kind, &self.shared.context.settings.bounds).await {
            Ok(listing) => Ok(self.shared.cleaned(listing)),
            Err(failure) => Err(self.failed(failure).await),
        }
    }

    /// Sends a request, and hides the server's secrets in the answer.
    async fn request(
        &self,
        request: InteractiveRequest,
        idle: Duration,
        report: Option<OnProgress>,
    ) -> Result<Value, CallError> {
        let mut result = self.ask(request, idle, report).await?;
        // More people read errors than the caller, so more is hidden in them.
        let failed = result.get("isError") == Some(&Value::Bool(true));
        let log = &self.shared.log;
        let redactor = if failed { log.redactor() } else { log.strict() };
        redact(&mut result, &redactor);
        Ok(result)
    }

    async fn ask(
        &self,
        request: InteractiveRequest,
        idle: Duration,
        report: Option<OnProgress>,
    ) -> Result<Value, CallError> {
        let requester = self.requester_for(&request).await?;
        let deadline = RequestDeadline::new(idle, self.shared.context.settings.timings.ceiling.max(idle));
        match requester.send_interactive(&request, deadline, report.clone()).await {
            Ok(result) => Ok(result),
            // Nothing was sent, so a second try is safe.
            Err(RequestError::Unsent) => {
                let requester = self.requester_for(&request).await?;
                match requester.send_interactive(&request, deadline, report).await {
                    Ok(result) => Ok(result),
                    Err(failure) => Err(self.failed(failure).await),
                }
            }
            Err(failure) => Err(self.failed(failure).await),
        }
    }

    /// The live connection, made if needed. Fails if the tool must not be called as the server lists it now.
    async fn requester_for(&self, request: &InteractiveRequest) -> Result<Arc<Requester>, CallError> {
        let requester = self.requester().await?;
        if let (InteractiveRequest::Call(tool, _), Some(admit)) = (request, &self.shared.context.ports.admit) {
            self.refresh().await;
            let listed = self.shared.now().tools;
            if let Some(why) = admit.tool_refusal(self.name(), tool, &listed) {
                return Err(self.error(CallErrorKind::Untrusted(format!("its tool `{tool}` is not called: {why}"))));
            }
        }
        Ok(requester)
    }

    /// The live connection, made if needed.
    async fn requester(&self) -> Result<Arc<Requester>, CallError> {
        if let Some(requester) = self.shared.now.borrow().requester.as_ref().filter(|requester| !requester.is_closed())
        {
            return Ok(Arc::clone(requester));
        }
        let state = self.shared.now().state;
        match &state {
            ServerState::Failed(why) if !is_remote(&self.shared.ready.endpoint) => {
                return Err(self.error(CallErrorKind::Unavailable(self.with_way_out(why))));
            }
            ServerState::NeedsAuth(why) => return Err(self.error(CallErrorKind::Unavailable(why.clone()))),
            ServerState::Stopped => {
                return Err(self.error(CallErrorKind::Unavailable(self.with_way_out("it was stopped"))));
            }
            _ => {}
        }
        self.launch(false).await?;
        self.connected()
    }

    async fn launch(&self, manual: bool) -> Result<(), CallError> {
        if let Some(trouble) = self.refusal() {
            return Err(self.error(trouble));
        }
        self.command(|reply| ServerCommand::Start { manual, reply: Some(reply) }).await;
        self.connected().map(drop)
    }

    async fn command(&self, command: impl FnOnce(oneshot::Sender<()>) -> ServerCommand) {
        let (reply, done) = oneshot::channel();
        if self.commands.send(command(reply)).is_ok() {
            let _ = done.await;
        }
    }

    fn connected(&self) -> Result<Arc<Requester>, CallError> {
        let now = self.shared.now();
        now.requester.ok_or_else(|| {
            let text = now.state.problem().map_or_else(|| format!("it is {}", now.state.name()), str::to_owned);
            self.error(CallErrorKind::Unavailable(text))
        })
    }

    /// Why it must not be started.
    fn refusal(&self) -> Option<CallErrorKind> {
        if !self.shared.context.settings.enabled {
            return Some(CallErrorKind::Unavailable(
                "MCP is switched off; `mcp.enabled: true` switches it on".to_owned(),
            ));
        }
        let disabled = "it is disabled; `enabled: true` in its declaration changes that";
        (!self.shared.ready.enabled).then(|| CallErrorKind::Unavailable(disabled.to_owned()))
    }

    async fn failed(&self, failure: RequestError) -> CallError {
        let trouble = match failure {
            RequestError::Denied(challenge) => {
                let text = needs_auth(&self.shared, &challenge);
                let _ = self.commands.send(ServerCommand::Denied(text.clone()));
                return self.error(CallErrorKind::Unavailable(text));
            }
            RequestError::Unsent => CallErrorKind::Unavailable("it ended the connection".to_owned()),
            RequestError::Failed(CallErrorKind::Lost(text)) => {
                let _ = self.commands.send(ServerCommand::Suspect);
                let known = if is_remote(&self.shared.ready.endpoint) { None } else { self.reason().await };
                // The reason already contains the server's last lines.
                match known {
                    Some(reason) => return self.error(CallErrorKind::Lost(reason)),
                    None => CallErrorKind::Lost(text),
                }
            }
            RequestError::Failed(trouble) => trouble,
        };
        let said = if trouble == CallErrorKind::Cancelled { String::new() } else { self.last_words() };
        CallError { said, ..self.error(trouble) }
    }

    /// Why the connection was lost, once that is known.
    async fn reason(&self) -> Option<String> {
        let mut now = self.shared.now.subscribe();
        let crashed = now.wait_for(|now| matches!(now.state, ServerState::Crashed(_)));
        let now = tokio::time::timeout(REASON, crashed).await.ok()?.ok()?;
        now.state.problem().map(str::to_owned)
    }

    fn with_way_out(&self, why: &str) -> String {
        format!("{why}; {}", self.shared.tell(&Remedy::RestartServer(self.name().to_owned())))
    }

    fn error(&self, kind: CallErrorKind) -> CallError {
        CallError { extension: self.shared.ready.extension.clone(), ..CallError::new(self.name(), kind) }
    }

    fn admitted<'a>(&'a self, tools: &'a [Value]) -> impl Iterator<Item = &'a Value> {
        let admits = |tool: &&Value| {
            let name = tool.get("name").and_then(Value::as_str);
            name.is_some_and(|name| self.shared.ready.tools.admits(name))
        };
        tools.iter().filter(admits)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
