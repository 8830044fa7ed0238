//! Checks a server of a project or an extension once more, right before its program starts. A chat lives long and
//! starts a server more than once. Meanwhile other programs, and the model too, may have rewritten the approved files.
//! It also checks each call: the tool may have changed since the caller chose it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ollm_catalog::{ServerSpec, Severity, configuration};
use ollm_mcp::Admit;
use ollm_protocol::Source;
use serde_json::Value;

use super::ready::told_refusal as told;
use super::{DeclaredServer, ToolReview};
use crate::app_context::AppContext;

/// The servers that are checked.
#[derive(Debug)]
pub(super) struct Gate(Mutex<WatchedServers>);

#[derive(Debug)]
struct WatchedServers {
    context: AppContext,
    servers: BTreeMap<String, Arc<ServerSpec>>,
    tools: BTreeMap<String, WatchedTools>,
    /// Servers that were refused at their last start.
    refused: BTreeSet<String>,
}

/// The tools of a server that a person has reviewed.
#[derive(Debug)]
struct WatchedTools {
    spec: Arc<ServerSpec>,
    review: ToolReview,
    /// A list without waiting tools, which need not be compared again.
    settled: Option<Arc<[Value]>>,
}

impl Gate {
    pub(super) fn new(context: &AppContext) -> Gate {
        let (servers, tools, refused) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Gate(Mutex::new(WatchedServers { context: context.clone(), servers, tools, refused }))
    }

    /// Looks up files and approvals in this context from now on.
    pub(super) fn enter(&self, context: &AppContext) {
        context.clone_into(&mut self.lock().context);
    }

    /// Checks this server from now on. The user's own servers need no approval, and those of extensions run from an
    /// approved copy.
    pub(super) fn watch(&self, known: &DeclaredServer) {
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

    /// Whether a server was refused at its last start. Only the first call says so: its caller restarts the server.
    pub(super) fn refused(&self, server: &str) -> bool {
        self.lock().refused.remove(server)
    }

    fn lock(&self) -> MutexGuard<'_, WatchedServers> {
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
    // The setting that demands signatures may have changed too.
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
