//! What all servers share, and what the handle and the task of one server share.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use ollm_process::{Children, Job, Resident, SpawnError};
use ollm_protocol::Remedy;
use ollm_store::{Redactor, looks_secret};
use rmcp::model::ServerPeerInfo;
use serde_json::Value;
use tokio::sync::watch;

use crate::client_handler::ClientHandler;
use crate::endpoint::secret_args;
use crate::list::Listing;
use crate::log::Log;
use crate::ports::{Ports, ServerNotice};
use crate::ready::{Endpoint, ReadyServer};
use crate::requester::Requester;
use crate::runtime::RuntimeHandle;
use crate::settings::Settings;
use crate::status::ServerState;
use crate::web;

/// What all servers share: settings, ports, one `Children`, one HTTP client.
#[derive(Debug)]
pub struct ClientContext {
    pub(crate) settings: Settings,
    pub(crate) ports: Ports,
    pub(crate) children: Arc<Children>,
    web: OnceLock<Result<reqwest::Client, String>>,
    /// Whether servers get little time to stop.
    hurried: AtomicBool,
}

impl ClientContext {
    /// Starts nothing; the HTTP client is created when the first server needs it.
    pub fn new(settings: Settings, ports: Ports, children: Arc<Children>) -> Self {
        Self { settings, ports, children, web: OnceLock::new(), hurried: AtomicBool::new(false) }
    }

    pub(crate) fn hurry(&self) {
        self.hurried.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_hurried(&self) -> bool {
        self.hurried.load(Ordering::Relaxed)
    }

    pub(crate) fn web(&self) -> Result<reqwest::Client, String> {
        let make = || {
            let agent = format!("{}/{}", self.settings.name, self.settings.version);
            web::client(&agent, &self.settings.network).map_err(|error| error.to_string())
        };
        self.web.get_or_init(make).clone()
    }
}

/// What the handle and the task of a server share.
pub(crate) struct ServerShared {
    pub(crate) ready: ReadyServer,
    pub(crate) context: Arc<ClientContext>,
    pub(crate) handler: Arc<ClientHandler>,
    pub(crate) log: Arc<Log>,
    pub(crate) now: watch::Sender<ServerSnapshot>,
    /// The runtime whose thread starts the program; `None` for the current thread.
    pub(crate) runtime: Option<Arc<RuntimeHandle>>,
}

impl std::fmt::Debug for ServerShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("name", &self.ready.name).finish_non_exhaustive()
    }
}

/// The current state of a server and everything known about it.
#[derive(Clone)]
pub(crate) struct ServerSnapshot {
    pub(crate) state: ServerState,
    pub(crate) requester: Option<Arc<Requester>>,
    pub(crate) tools: Arc<[Value]>,
    /// The tools it offered until it crashed; a call of one starts it again.
    pub(crate) lapsed: Arc<[Value]>,
    pub(crate) info: Option<Arc<ServerPeerInfo>>,
    pub(crate) process: Option<u32>,
    /// The transport of the last connection.
    pub(crate) transport: Option<&'static str>,
    /// The first line of the log that belongs to the last connection.
    pub(crate) mark: u64,
    pub(crate) warnings: Vec<String>,
}

impl ServerShared {
    /// The command that a person runs to solve a problem.
    pub(crate) fn tell(&self, remedy: &Remedy) -> String {
        self.context.settings.commands.tell(remedy)
    }

    /// Starts a program on the thread that starts programs.
    pub(crate) async fn launch(&self, job: Job) -> Result<Resident, SpawnError> {
        match &self.runtime {
            Some(runtime) => runtime.start_program(&self.context.children, job).await,
            None => self.context.children.start(&job),
        }
    }

    /// Waits until programs that were still starting, and are no longer needed, have ended.
    pub(crate) async fn finish_starts(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.finish_starts().await;
        }
    }

    /// A list without the secrets that the server was given.
    pub(crate) fn cleaned(&self, mut listing: Listing) -> Listing {
        let redactor = self.log.strict();
        listing.items.iter_mut().for_each(|item| redact(item, &redactor));
        listing.warnings.iter_mut().for_each(|warning| *warning = redactor.redact_str(warning).into_owned());
        listing
    }

    pub(crate) fn now(&self) -> ServerSnapshot {
        self.now.borrow().clone()
    }

    /// Changes the snapshot, and tells the watcher what changed.
    pub(crate) fn change(&self, change: impl FnOnce(&mut ServerSnapshot)) {
        let mut notices = Vec::new();
        self.now.send_modify(|now| {
            let (state, tools) = (now.state.clone(), Arc::clone(&now.tools));
            change(now);
            notices.extend((state != now.state).then(|| ServerNotice::State(now.state.clone())));
            notices.extend((tools != now.tools).then_some(ServerNotice::Tools));
        });
        if let Some(watch) = &self.context.ports.watch {
            for notice in &notices {
                watch.notice(&self.ready.name, notice);
            }
        }
    }

    pub(crate) fn set(&self, state: ServerState) {
        self.change(|now| now.state = state);
    }

    /// Offers the tools of a crashed server again, as if it had never started.
    pub(crate) fn offer(&self) {
        self.change(|now| {
            if matches!(now.state, ServerState::Crashed(_)) && !now.lapsed.is_empty() {
                now.state = ServerState::Configured;
                now.tools = std::mem::replace(&mut now.lapsed, Arc::new([]));
            }
        });
    }

    /// Withdraws connection and tools. Calls do not start a stopped server, so its tools are not remembered.
    pub(crate) fn withdraw(&self, state: ServerState) {
        self.change(|now| {
            let lapsed = match (&state, now.tools.is_empty()) {
                (ServerState::Stopped, _) => Arc::new([]) as Arc<[Value]>,
                (_, true) => Arc::clone(&now.lapsed),
                (_, false) => Arc::clone(&now.tools),
            };
            *now = ServerSnapshot {
                state,
                requester: None,
                tools: Arc::new([]),
                lapsed,
                process: None,
                transport: now.transport,
                mark: now.mark,
                warnings: Vec::new(),
                info: now.info.take(),
            };
        });
    }
}

/// What a person can do about a server that wants authorization.
pub(crate) fn needs_auth(shared: &ServerShared, challenge: &str) -> String {
    let name = &shared.ready.name;
    if let Endpoint::Http { headers, .. } | Endpoint::Sse { headers, .. } = &shared.ready.endpoint
        && headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    {
        return "it does not take the `Authorization` header of its declaration; correct its value".to_owned();
    }
    let trouble = shared.context.ports.authorize.as_ref().and_then(|authorize| authorize.trouble(name));
    let trouble = trouble.map(|why| format!("; {why}")).unwrap_or_default();
    if web::is_insufficient(challenge) {
        let named = web::scopes(challenge).iter().map(|scope| format!(" `{scope}`")).collect::<Vec<_>>().join(",");
        let ask = shared.tell(&Remedy::AskForRights(name.clone()));
        return format!("it wants us to have more rights:{named}{trouble}; {ask}");
    }
    let log_in = shared.tell(&Remedy::LogIn(name.clone()));
    format!("it needs a login{trouble}; {log_in}, or declare its `Authorization` header")
}

/// Hides secrets in every text inside a value.
pub(crate) fn redact(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = redactor.redact_str(text) {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, redactor)),
        Value::Object(fields) => fields.values_mut().for_each(|field| redact(field, redactor)),
        _ => {}
    }
}

/// The values to hide in everything that the server says.
pub(crate) fn secrets(ready: &ReadyServer) -> Vec<(String, String)> {
    let own: Vec<(String, String)> = match &ready.endpoint {
        Endpoint::Stdio { args, env, .. } => {
            let env = env.iter().filter(|(name, _)| looks_secret(name)).cloned();
            env.chain(secret_args(args).map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
        }
        Endpoint::Http { headers, .. } | Endpoint::Sse { headers, .. } => headers.clone(),
    };
    [own, ready.secrets.clone()].concat()
}
