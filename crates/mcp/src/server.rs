//! The handle of one server: its state, its tools, and calls. Its life is led by a task of its own (`life`); calls go
//! straight to the connection and never through that task.

use std::sync::Arc;
use std::time::Duration;

use ollm_store::Redactor;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::declaration::Declaration;
use crate::desk::{Desk, OnProgress};
use crate::error::{CallError, Trouble};
use crate::handshake::Era;
use crate::life::{Control, live};
use crate::link::{Failure, Link, Patience, Wish};
use crate::list::{Kind, Listing, list};
use crate::log::Log;
use crate::place::is_remote;
use crate::runtime::RuntimeHandle;
use crate::shared::{Now, Shared, needs_auth, redact, secrets};
use crate::status::{State, Status};

pub use crate::shared::Context;

/// How long a lost call waits for the reason of the loss.
const REASON: Duration = Duration::from_secs(1);

/// How long the tools that a server has announced are waited for.
const FRESH: Duration = Duration::from_secs(2);

/// What was learnt of a server before, and is worth keeping.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The protocol revision that was agreed upon.
    pub revision: Option<String>,
    /// How it was reached: stdio, http or sse.
    pub transport: Option<String>,
    /// Its tools, as it wrote them.
    pub tools: Option<Vec<Value>>,
    /// What was left out of them.
    pub warnings: Vec<String>,
}

/// A tool to call.
#[derive(Clone, Default)]
pub struct Call {
    /// Its name, as the server knows it.
    pub tool: String,
    /// Its arguments.
    pub args: Map<String, Value>,
    /// How long it may take without a sign of progress, if not as declared.
    pub timeout: Option<Duration>,
    /// Hears how far it has come.
    pub progress: Option<OnProgress>,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("tool", &self.tool).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// One server. Dropped, it is ended at once, and its program's whole group with it.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    control: mpsc::UnboundedSender<Control>,
    task: JoinHandle<()>,
}

impl Server {
    /// A server that does not run yet. Belongs to the runtime of the caller, whose thread must outlive it.
    pub fn new(context: Arc<Context>, declaration: Declaration, memory: Memory) -> Self {
        Self::on(context, declaration, memory, None)
    }

    /// A server whose program is started by a thread made for that. Belongs to the runtime of that thread.
    pub(crate) fn on_thread(
        context: Arc<Context>,
        declaration: Declaration,
        memory: Memory,
        runtime: Arc<RuntimeHandle>,
    ) -> Self {
        Self::on(context, declaration, memory, Some(runtime))
    }

    fn on(
        context: Arc<Context>,
        declaration: Declaration,
        memory: Memory,
        runtime: Option<Arc<RuntimeHandle>>,
    ) -> Self {
        let log = Arc::new(Log::new(secrets(&declaration), declaration.hidden.clone(), context.settings.bounds.lines));
        let desk = Desk::new(&declaration.name, &context.settings, context.ports.clone(), Arc::clone(&log));
        let (now, _) = watch::channel(Now {
            state: State::Configured,
            link: None,
            tools: memory.tools.unwrap_or_default().into(),
            lapsed: Arc::new([]),
            info: None,
            process: None,
            transport: None,
            mark: 0,
            warnings: memory.warnings,
        });
        let shared = Arc::new(Shared { declaration, context, desk: Arc::new(desk), log, now, runtime });
        let (control, orders) = mpsc::unbounded_channel();
        let era = memory.revision.as_deref().map(Era::of);
        let task = tokio::spawn(live(Arc::clone(&shared), orders, era));
        Self { shared, control, task }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.declaration.name
    }

    /// How it was declared.
    pub fn declaration(&self) -> &Declaration {
        &self.shared.declaration
    }

    /// How it is.
    pub fn status(&self) -> Status {
        let (now, redactor) = (self.shared.now(), self.shared.log.strict());
        let hide = |text: &str| redactor.redact_str(text).into_owned();
        Status {
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

    /// The tools that it offers and that were not filtered out, as it wrote them.
    pub fn tools(&self) -> Vec<Value> {
        self.admitted(&self.shared.now().tools).cloned().collect()
    }

    /// The tools that it offered until it ended unasked: a call of one of them starts it again.
    pub fn lapsed(&self) -> Vec<Value> {
        self.admitted(&self.shared.now().lapsed).cloned().collect()
    }

    /// What is worth remembering; nothing before it was connected.
    pub fn memory(&self) -> Memory {
        let now = self.shared.now();
        // Where the tools could not be listed, nothing is known of them.
        let unlisted = now.tools.is_empty() && matches!(now.state, State::Degraded(_));
        let connected = (now.link.is_some() && !unlisted).then(|| now.tools.to_vec());
        let revision = now.info.map(|info| info.protocol_version.as_str().to_owned());
        let transport = now.transport.map(str::to_owned);
        Memory { revision, transport, tools: connected, warnings: now.warnings }
    }

    /// Lines of its log from a number on, and the number of the next one.
    pub fn log(&self, since: u64) -> (Vec<String>, u64) {
        self.shared.log.since(since)
    }

    /// What hides the secrets that it was given, for what of its answers is kept somewhere.
    pub fn redactor(&self) -> Arc<Redactor> {
        self.shared.log.redactor()
    }

    /// What it said last on its standard error and in its log messages since it was connected, without secrets.
    pub fn last_words(&self) -> String {
        self.shared.log.tail(self.shared.now.borrow().mark)
    }

    /// Starts it without waiting for that.
    pub fn begin(&self) {
        if self.refusal().is_none() {
            let _ = self.control.send(Control::Start { manual: true, reply: None });
        }
    }

    /// Starts it, unless it runs, and waits until it is known whether that worked.
    pub async fn start(&self) -> Result<(), CallError> {
        self.launch(true).await
    }

    /// Ends it, with time to do so, and withdraws its tools.
    pub async fn stop(&self) {
        self.order(Control::Stop).await;
    }

    /// Ends it and starts it again.
    pub async fn restart(&self) -> Result<(), CallError> {
        if let Some(trouble) = self.refusal() {
            return Err(self.error(trouble));
        }
        self.order(Control::Restart).await;
        self.connected().map(drop)
    }

    /// Whether it has announced other tools than those that are known, and may list them soon.
    pub fn is_stale(&self) -> bool {
        self.shared.desk.changes.are_awaited() && self.shared.now.borrow().link.is_some()
    }

    /// Waits, for a while, until the tools are known that it has announced.
    pub async fn refresh(&self) {
        if !self.is_stale() {
            return;
        }
        let changes = &self.shared.desk.changes;
        let change = changes.announced();
        changes.urgent.notify_one();
        let mut now = self.shared.now.subscribe();
        let listed = now.wait_for(|now| now.link.is_none() || changes.has_seen(change));
        if tokio::time::timeout(FRESH, listed).await.is_err() {
            let text = "it announced other tools and did not list them within 2 s; those of before are offered";
            self.shared.log.add(text);
            changes.waive(change);
        }
    }

    /// Whether it ended unasked and was not started since.
    pub(crate) fn is_crashed(&self) -> bool {
        matches!(self.shared.now.borrow().state, State::Crashed(_))
    }

    /// Offers the tools again that it offered until it ended unasked, so that a call starts it; not if it ends again and
    /// again.
    pub async fn offer(&self) {
        if self.is_crashed() {
            self.order(Control::Offer).await;
        }
    }

    /// Calls a tool; starts the server if it does not run. The result is the server's own result object. Dropped, the
    /// call is cancelled.
    pub async fn call(&self, call: Call) -> Result<Value, CallError> {
        if !self.shared.declaration.tools.admits(&call.tool) {
            let text = format!("its tool `{}` is not allowed by its declaration", call.tool);
            return Err(self.error(Trouble::Unavailable(text)));
        }
        let idle = call.timeout.unwrap_or(self.shared.declaration.tool_timeout);
        self.fulfil(Wish::Call(call.tool, call.args), idle, call.progress).await
    }

    /// Gets a prompt, filled in.
    pub async fn prompt(&self, name: String, args: Map<String, Value>) -> Result<Value, CallError> {
        self.fulfil(Wish::Prompt(name, args), self.shared.declaration.tool_timeout, None).await
    }

    /// Reads a resource.
    pub async fn read(&self, uri: String) -> Result<Value, CallError> {
        self.fulfil(Wish::Read(uri), self.shared.declaration.tool_timeout, None).await
    }

    /// Lists its prompts.
    pub async fn prompts(&self) -> Result<Listing, CallError> {
        self.list(Kind::Prompts).await
    }

    /// Lists its resources.
    pub async fn resources(&self) -> Result<Listing, CallError> {
        self.list(Kind::Resources).await
    }

    /// Lists the patterns of its resources.
    pub async fn templates(&self) -> Result<Listing, CallError> {
        self.list(Kind::Templates).await
    }

    async fn list(&self, kind: Kind) -> Result<Listing, CallError> {
        let link = self.link().await?;
        let able = &link.info.capabilities;
        let offers = match kind {
            Kind::Tools => able.tools.is_some(),
            Kind::Prompts => able.prompts.is_some(),
            Kind::Resources | Kind::Templates => able.resources.is_some(),
        };
        if !offers {
            return Ok(Listing::default());
        }
        match list(&link, kind, &self.shared.context.settings.bounds).await {
            Ok(listing) => Ok(self.shared.cleaned(listing)),
            Err(failure) => Err(self.failed(failure).await),
        }
    }

    /// What a server was entrusted with stays between it and us, whatever it answers.
    async fn fulfil(&self, wish: Wish, idle: Duration, report: Option<OnProgress>) -> Result<Value, CallError> {
        let mut result = self.ask(wish, idle, report).await?;
        // What went wrong is told to more than whoever asked.
        let failed = result.get("isError") == Some(&Value::Bool(true));
        let log = &self.shared.log;
        let redactor = if failed { log.redactor() } else { log.strict() };
        redact(&mut result, &redactor);
        Ok(result)
    }

    async fn ask(&self, wish: Wish, idle: Duration, report: Option<OnProgress>) -> Result<Value, CallError> {
        let link = self.link().await?;
        let patience = Patience::new(idle, self.shared.context.settings.pace.ceiling.max(idle));
        match link.fulfil(&wish, patience, report.clone()).await {
            Ok(result) => Ok(result),
            // It ended unnoticed, and nothing was sent: there is no harm in a second try.
            Err(Failure::Unsent) => {
                let link = self.link().await?;
                match link.fulfil(&wish, patience, report).await {
                    Ok(result) => Ok(result),
                    Err(failure) => Err(self.failed(failure).await),
                }
            }
            Err(failure) => Err(self.failed(failure).await),
        }
    }

    /// The live connection, made if need be.
    async fn link(&self) -> Result<Arc<Link>, CallError> {
        if let Some(link) = self.shared.now.borrow().link.as_ref().filter(|link| !link.is_closed()) {
            return Ok(Arc::clone(link));
        }
        let state = self.shared.now().state;
        match &state {
            State::Failed(why) if !is_remote(&self.shared.declaration.endpoint) => {
                return Err(self.error(Trouble::Unavailable(self.with_way_out(why))));
            }
            State::NeedsAuth(why) => return Err(self.error(Trouble::Unavailable(why.clone()))),
            State::Stopped => {
                return Err(self.error(Trouble::Unavailable(self.with_way_out("it was stopped"))));
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
        self.order(|reply| Control::Start { manual, reply: Some(reply) }).await;
        self.connected().map(drop)
    }

    async fn order(&self, order: impl FnOnce(oneshot::Sender<()>) -> Control) {
        let (reply, done) = oneshot::channel();
        if self.control.send(order(reply)).is_ok() {
            let _ = done.await;
        }
    }

    fn connected(&self) -> Result<Arc<Link>, CallError> {
        let now = self.shared.now();
        now.link.ok_or_else(|| {
            let text = now.state.problem().map_or_else(|| format!("it is {}", now.state.name()), str::to_owned);
            self.error(Trouble::Unavailable(text))
        })
    }

    /// Why it must not be started.
    fn refusal(&self) -> Option<Trouble> {
        if !self.shared.context.settings.enabled {
            return Some(Trouble::Unavailable("MCP is switched off; `mcp.enabled: true` switches it on".to_owned()));
        }
        let disabled = "it is disabled; `enabled: true` in its declaration changes that";
        (!self.shared.declaration.enabled).then(|| Trouble::Unavailable(disabled.to_owned()))
    }

    async fn failed(&self, failure: Failure) -> CallError {
        let trouble = match failure {
            Failure::Denied(challenge) => {
                let text = needs_auth(&self.shared, &challenge);
                let _ = self.control.send(Control::Denied(text.clone()));
                return self.error(Trouble::Unavailable(text));
            }
            Failure::Unsent => Trouble::Unavailable("it ended the connection".to_owned()),
            Failure::Trouble(Trouble::Lost(text)) => {
                let _ = self.control.send(Control::Doubt);
                let known = if is_remote(&self.shared.declaration.endpoint) { None } else { self.reason().await };
                // The reason holds its last words already.
                match known {
                    Some(reason) => return self.error(Trouble::Lost(reason)),
                    None => Trouble::Lost(text),
                }
            }
            Failure::Trouble(trouble) => trouble,
        };
        let said = if trouble == Trouble::Cancelled { String::new() } else { self.last_words() };
        CallError { said, ..self.error(trouble) }
    }

    /// Why the connection was lost, once that is known.
    async fn reason(&self) -> Option<String> {
        let mut now = self.shared.now.subscribe();
        let crashed = now.wait_for(|now| matches!(now.state, State::Crashed(_)));
        let now = tokio::time::timeout(REASON, crashed).await.ok()?.ok()?;
        now.state.problem().map(str::to_owned)
    }

    fn with_way_out(&self, why: &str) -> String {
        format!("{why}; `ollm mcp restart {}` starts it", ollm_protocol::shell_word(self.name()))
    }

    fn error(&self, kind: Trouble) -> CallError {
        CallError::new(self.name(), kind)
    }

    fn admitted<'a>(&'a self, tools: &'a [Value]) -> impl Iterator<Item = &'a Value> {
        let admits = |tool: &&Value| {
            let name = tool.get("name").and_then(Value::as_str);
            name.is_some_and(|name| self.shared.declaration.tools.admits(name))
        };
        tools.iter().filter(admits)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
