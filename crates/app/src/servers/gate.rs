//! The last look at a server that came with a project or an extension. Right before its program is started: a chat lives
//! long, a server is started more than once in it, and what was approved may have been rewritten meanwhile, also by the
//! model. And before each call: a tool may be another one since the caller chose it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ollm_catalog::{ServerSpec, Severity, configuration};
use ollm_mcp::Admit;
use ollm_protocol::Source;
use serde_json::Value;

use super::{ServerEntry, ToolReview, told_refusal as told};
use crate::app_context::AppContext;

/// What is looked at.
#[derive(Debug)]
pub(super) struct Gate(Mutex<Watched>);

#[derive(Debug)]
struct Watched {
    context: AppContext,
    servers: BTreeMap<String, Arc<ServerSpec>>,
    tools: BTreeMap<String, WatchedTools>,
    /// Those that were not let through when they were last started.
    refused: BTreeSet<String>,
}

/// The tools of a server that a person knows.
#[derive(Debug)]
struct WatchedTools {
    spec: Arc<ServerSpec>,
    review: ToolReview,
    /// A list in which none waits: it is not compared again.
    settled: Option<Arc<[Value]>>,
}

impl Gate {
    pub(super) fn new(context: &AppContext) -> Gate {
        let (servers, tools, refused) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Gate(Mutex::new(Watched { context: context.clone(), servers, tools, refused }))
    }

    /// From now on files and approvals are looked up here.
    pub(super) fn enter(&self, context: &AppContext) {
        context.clone_into(&mut self.lock().context);
    }

    /// Looks at this server from now on. The user's own need no approval, and those of extensions run from a copy of what
    /// was approved.
    pub(super) fn watch(&self, known: &ServerEntry) {
        let name = known.spec.name.clone();
        let tools =
            |review: &ToolReview| WatchedTools { spec: Arc::clone(&known.spec), review: review.clone(), settled: None };
        match known.review().map(tools) {
            Some(tools) => self.lock().tools.insert(name.clone(), tools),
            None => self.lock().tools.remove(&name),
        };
        if known.spec.source == Source::User || known.bundle.is_some() {
            self.lock().servers.remove(&name);
        } else {
            self.lock().servers.insert(name, Arc::clone(&known.spec));
        }
    }

    /// Whether a server was not let through when it was last started. Asked once: whoever asks starts it anew.
    pub(super) fn refused(&self, server: &str) -> bool {
        self.lock().refused.remove(server)
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admit for Gate {
    fn refusal(&self, server: &str) -> Option<String> {
        let mut watched = self.lock();
        let refusal = refusal(watched.servers.get(server)?, &watched.context);
        if refusal.is_some() {
            watched.refused.insert(server.to_owned());
        }
        refusal
    }

    fn tool_refusal(&self, server: &str, tool: &str, listed: &Arc<[Value]>) -> Option<String> {
        let mut watched = self.lock();
        let tools = watched.tools.get_mut(server)?;
        if tools.settled.as_ref().is_some_and(|settled| Arc::ptr_eq(settled, listed)) {
            return None;
        }
        let admitted = |entry: &&Value| {
            entry.get("name").and_then(Value::as_str).is_some_and(|name| tools.spec.tools.admits(name))
        };
        let offered: Vec<Value> = listed.iter().filter(admitted).cloned().collect();
        match tools.review.refusal(tool, &offered) {
            Ok(settled) => {
                tools.settled = settled.then(|| Arc::clone(listed));
                None
            }
            Err(why) => Some(why),
        }
    }
}

fn refusal(spec: &Arc<ServerSpec>, context: &AppContext) -> Option<String> {
    // What must be signed may have changed as well.
    let variable = |name: &str| context.variable(name);
    let (config, problems) = configuration(&context.places, &variable, &context.overrides);
    if let Some(fatal) = problems.iter().find(|problem| problem.severity == Severity::Fatal) {
        return Some(fatal.to_string());
    }
    let trust = context.trust(&config);
    if let Some(trouble) = trust.trouble() {
        return Some(format!("no server is approved: {trouble}"));
    }
    trust.forecast(spec, &context.trust_context()).map(told)
}
