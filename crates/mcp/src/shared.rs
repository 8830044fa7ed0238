//! What servers share with one another, and what the handle and the task of one server share.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use ollm_process::{Children, Job, Resident, SpawnError};
use ollm_store::{Redactor, looks_secret};
use rmcp::model::ServerPeerInfo;
use serde_json::Value;
use tokio::sync::watch;

use crate::declaration::{Declaration, Endpoint};
use crate::desk::Desk;
use crate::keeper::Post;
use crate::link::Link;
use crate::list::Listing;
use crate::log::Log;
use crate::place::hidden;
use crate::port::{Notice, Ports};
use crate::settings::Settings;
use crate::status::State;
use crate::web;

/// What all servers share: settings, ports, one process keeper, one HTTP client.
#[derive(Debug)]
pub struct Context {
    pub(crate) settings: Settings,
    pub(crate) ports: Ports,
    pub(crate) children: Arc<Children>,
    web: OnceLock<Result<reqwest::Client, String>>,
    /// Whether nobody has the time to wait for servers that take theirs to end.
    hurried: AtomicBool,
}

impl Context {
    /// Nothing is started; the HTTP client is made when the first server needs it.
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
pub(crate) struct Shared {
    pub(crate) declaration: Declaration,
    pub(crate) context: Arc<Context>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) log: Arc<Log>,
    pub(crate) now: watch::Sender<Now>,
    /// Where its program is started; here when absent.
    pub(crate) post: Option<Arc<Post>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("name", &self.declaration.name).finish_non_exhaustive()
    }
}

/// How a server is now.
#[derive(Clone)]
pub(crate) struct Now {
    pub(crate) state: State,
    pub(crate) link: Option<Arc<Link>>,
    pub(crate) tools: Arc<[Value]>,
    /// The tools it offered until it ended unasked, which a call brings back.
    pub(crate) lapsed: Arc<[Value]>,
    pub(crate) info: Option<Arc<ServerPeerInfo>>,
    pub(crate) process: Option<u32>,
    /// How the last connection was made.
    pub(crate) transport: Option<&'static str>,
    /// The first line of the log that belongs to the last connection.
    pub(crate) mark: u64,
    pub(crate) warnings: Vec<String>,
}

impl Shared {
    /// Starts a program where nobody waits for anything else.
    pub(crate) async fn launch(&self, job: Job) -> Result<Resident, SpawnError> {
        match &self.post {
            Some(post) => post.start(&self.context.children, job).await,
            None => self.context.children.start(&job),
        }
    }

    /// Waits until nothing is left of programs that were being started and that nobody waits for any more.
    pub(crate) async fn calm(&self) {
        if let Some(post) = &self.post {
            post.calm().await;
        }
    }

    /// A list without what the server was entrusted with.
    pub(crate) fn cleaned(&self, mut listing: Listing) -> Listing {
        let redactor = self.log.strict();
        listing.items.iter_mut().for_each(|item| redact(item, &redactor));
        listing.warnings.iter_mut().for_each(|warning| *warning = redactor.redact_str(warning).into_owned());
        listing
    }

    pub(crate) fn now(&self) -> Now {
        self.now.borrow().clone()
    }

    /// Changes how the server is, and tells whoever watches.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Now)) {
        let mut notices = Vec::new();
        self.now.send_modify(|now| {
            let (state, tools) = (now.state.clone(), Arc::clone(&now.tools));
            change(now);
            notices.extend((state != now.state).then(|| Notice::State(now.state.clone())));
            notices.extend((tools != now.tools).then_some(Notice::Tools));
        });
        if let Some(watch) = &self.context.ports.watch {
            for notice in &notices {
                watch.notice(&self.declaration.name, notice);
            }
        }
    }

    pub(crate) fn set(&self, state: State) {
        self.change(|now| now.state = state);
    }

    /// Offers again what was offered until the server ended unasked, as if it had not been started yet.
    pub(crate) fn offer(&self) {
        self.change(|now| {
            if matches!(now.state, State::Crashed(_)) && !now.lapsed.is_empty() {
                now.state = State::Configured;
                now.tools = std::mem::replace(&mut now.lapsed, Arc::new([]));
            }
        });
    }

    /// Withdraws connection and tools. What was stopped by somebody is not brought back by a call, so its tools are not
    /// remembered either.
    pub(crate) fn withdraw(&self, state: State) {
        self.change(|now| {
            let lapsed = match (&state, now.tools.is_empty()) {
                (State::Stopped, _) => Arc::new([]) as Arc<[Value]>,
                (_, true) => Arc::clone(&now.lapsed),
                (_, false) => Arc::clone(&now.tools),
            };
            *now = Now {
                state,
                link: None,
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

/// What to do about a server that wants to know who we are.
pub(crate) fn needs_auth(shared: &Shared, challenge: &str) -> String {
    let name = &shared.declaration.name;
    if let Endpoint::Http { headers, .. } | Endpoint::Sse { headers, .. } = &shared.declaration.endpoint
        && headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    {
        return "it does not take the `Authorization` header of its declaration; correct its value".to_owned();
    }
    let server = ollm_protocol::shell_word(name);
    let trouble = shared.context.ports.authorize.as_ref().and_then(|authorize| authorize.trouble(name));
    let trouble = trouble.map(|why| format!("; {why}")).unwrap_or_default();
    if web::is_insufficient(challenge) {
        let named = web::scopes(challenge).iter().map(|scope| format!(" `{scope}`")).collect::<Vec<_>>().join(",");
        return format!("it wants us to have more rights:{named}{trouble}; `ollm mcp login {server}` asks for them");
    }
    format!(
        "it wants to know who we are{trouble}; `ollm mcp login {server}` logs in, or declare its `Authorization` header"
    )
}

/// Hides secrets in every text of a value.
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

/// What must not be seen in anything that the server says.
pub(crate) fn secrets(declaration: &Declaration) -> Vec<(String, String)> {
    let own: Vec<(String, String)> = match &declaration.endpoint {
        Endpoint::Stdio { args, env, .. } => {
            let env = env.iter().filter(|(name, _)| looks_secret(name)).cloned();
            env.chain(hidden(args).map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
        }
        Endpoint::Http { headers, .. } | Endpoint::Sse { headers, .. } => headers.clone(),
    };
    [own, declaration.secrets.clone()].concat()
}
