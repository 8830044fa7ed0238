//! The tools of MCP servers, for an agent and for hooks. Nothing is read or started before the first request.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ollm_agent::{Cancel, Failure, Limits, Order, ToolSource};
use ollm_engine::{ToolCall, ToolCaller, ToolFailure};
use ollm_mcp::{
    Call, Offer, Ports, Progress, ServerNotice, ServerState, ServerStatus, Watch, bound_result, read_result,
};
use ollm_protocol::{Content, Remedy, Tool, ToolResult};
use serde_json::{Value, json};

use super::loaded::LoadedServers;
use super::server_set::ServerSet;
use super::wait::{GLANCE, wait};
use super::{taken, told};
use crate::app_context::AppContext;
use crate::port::Notices;
use crate::questions::Questions;

/// The engine ends a hook in time; our limit counts only for background hooks.
const MARGIN: Duration = Duration::from_secs(1);
/// After this time, a waiting person is told which servers are slow.
const SILENCE: Duration = Duration::from_secs(2);

/// How long servers have to hear of abandoned calls before they are ended.
const FAREWELL: Duration = Duration::from_millis(500);

/// The limit on failures between two looks: a server that fails again and again says nothing new.
const MOST_FAILURES: usize = 32;

/// All servers that may be started, as one set of tools.
#[derive(Debug)]
pub struct McpTools {
    context: Mutex<AppContext>,
    opened: Mutex<Option<Arc<LoadedServers>>>,
    changes: Arc<Changes>,
    /// The tools at a certain count of changes.
    offered: Mutex<(u64, Arc<Vec<OfferedTool>>)>,
    /// Servers whose start the model's first request waits for.
    awaited: Mutex<BTreeSet<String>>,
    /// The remarks on tools that are not offered, as far as they were told.
    told: Mutex<BTreeSet<String>>,
    /// Answers the questions of servers, if questions are answered.
    questions: OnceLock<Arc<Questions>>,
    /// The number of running calls, including abandoned ones.
    calls: AtomicUsize,
    closing: AtomicBool,
}

/// A running call.
struct RunningCall<'a>(&'a AtomicUsize);

impl<'a> RunningCall<'a> {
    fn new(calls: &'a AtomicUsize) -> RunningCall<'a> {
        calls.fetch_add(1, Ordering::AcqRel);
        RunningCall(calls)
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A tool and its server.
#[derive(Debug)]
struct OfferedTool {
    server: String,
    raw: String,
    tool: Tool,
    /// Whether its server crashed. Then it is not offered until a call restarts the server, or the person says
    /// something.
    lapsed: bool,
}

/// The count of changes of the servers, and the servers that failed.
#[derive(Debug)]
pub(super) struct Changes {
    count: AtomicU64,
    /// Servers that failed since the last look, with the reason; the same failure of one server counts once.
    failed: Mutex<Vec<(String, String)>>,
    /// A file that is touched at each change, so that other programs notice it.
    beacon: Mutex<Option<PathBuf>>,
}

impl Changes {
    fn add(&self) {
        self.count.fetch_add(1, Ordering::Release);
        if let Some(beacon) = &*guard(&self.beacon) {
            let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
            let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
            // A removed file has no watchers.
            let _ = rustix::fs::utimensat(rustix::fs::CWD, beacon, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        }
    }
}

impl Watch for Changes {
    fn notice(&self, server: &str, notice: &ServerNotice) {
        // A degraded server still works, or soon reports its next state.
        if let ServerNotice::State(ServerState::NeedsAuth(why) | ServerState::Crashed(why) | ServerState::Failed(why)) =
            notice
        {
            let failure = (server.to_owned(), why.clone());
            let mut failed = guard(&self.failed);
            if failed.len() < MOST_FAILURES && !failed.contains(&failure) {
                failed.push(failure);
            }
        }
        if matches!(notice, ServerNotice::State(_) | ServerNotice::Tools) {
            self.add();
        }
    }
}

impl McpTools {
    /// The servers that are declared in this context.
    pub fn new(context: &AppContext) -> McpTools {
        McpTools {
            context: Mutex::new(context.clone()),
            opened: Mutex::default(),
            changes: Arc::new(Changes { count: AtomicU64::new(1), failed: Mutex::default(), beacon: Mutex::default() }),
            offered: Mutex::default(),
            awaited: Mutex::default(),
            told: Mutex::default(),
            questions: OnceLock::new(),
            calls: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
        }
    }

    /// Sets who answers questions of servers; called before the first server starts.
    pub fn answer_with(&self, questions: Arc<Questions>) {
        let _ = self.questions.set(questions);
    }

    /// Answers the questions of servers, if questions are answered.
    pub fn questions(&self) -> Option<&Arc<Questions>> {
        self.questions.get()
    }

    /// Starts the servers whose tools are unknown, and does not wait for them.
    pub fn begin(&self, notices: &mut dyn Notices) {
        let opened = self.open();
        opened.notes.iter().for_each(|note| notices.tell(note));
        let Some(server_set) = &opened.server_set else { return };
        let known = |name: &str| server_set.fleet().server(name).is_ok_and(|server| server.status().tools > 0);
        let servers = server_set.fleet().servers();
        let (known, awaited): (Vec<&str>, Vec<&str>) =
            servers.iter().map(|server| server.name()).partition(|name| known(name));
        for name in known {
            self.tell_remarks(server_set, name, &mut |remark| notices.tell(remark));
        }
        *guard(&self.awaited) = awaited.into_iter().map(str::to_owned).collect();
        server_set.fleet().begin();
    }

    /// Reloads all declarations: ends servers that are gone, off or no longer approved, and starts new ones. Returns
    /// the changes, each in a few words. Does nothing before the first request for servers.
    pub fn reload(&self) -> Vec<String> {
        let Some(before) = guard(&self.opened).clone() else { return Vec::new() };
        let (after, begun, news) = before.renewed(&self.context(), self.ports());
        if let Some(server_set) = &after.server_set {
            begun.iter().filter_map(|name| server_set.fleet().server(name).ok()).for_each(|server| server.begin());
        }
        guard(&self.awaited).extend(begun);
        *guard(&self.opened) = Some(Arc::new(after));
        self.changes.add();
        news
    }

    /// Touches this file at each change from now on.
    pub(crate) fn touch_with_changes(&self, file: PathBuf) {
        *guard(&self.changes.beacon) = Some(file);
    }

    /// Uses the declarations of this context from the next [`McpTools::reload`] on.
    pub fn enter(&self, context: &AppContext) {
        context.clone_into(&mut guard(&self.context));
    }

    /// The context whose declarations are in force.
    pub fn context(&self) -> AppContext {
        guard(&self.context).clone()
    }

    /// The folders that were searched for extensions at the last reading of declarations.
    pub fn directories(&self) -> Vec<PathBuf> {
        guard(&self.opened).as_ref().map(|opened| opened.directories.clone()).unwrap_or_default()
    }

    /// Waits for the started servers, at most as long as one may take to connect, and tells their states. Offers the
    /// tools of crashed servers again, so that a call restarts them.
    pub fn settle(&self, cancel: &Cancel, tell: &mut dyn FnMut(&str)) {
        let Some(server_set) = self.server_set() else { return };
        server_set.fleet().offer();
        for name in server_set.names() {
            self.tell_remarks(&server_set, &name, tell);
        }
        let mut awaited = std::mem::take(&mut *guard(&self.awaited));
        let timeout = |name: &String| Some(server_set.fleet().server(name).ok()?.ready().connect_timeout);
        let longest = awaited.iter().filter_map(timeout).max().unwrap_or_default();
        let (began, mut quiet) = (Instant::now(), Instant::now());
        loop {
            awaited.retain(|name| match server_set.fleet().server(name).map(|server| server.status()) {
                // A server that was connected before is idle, because it was not used for a while.
                Ok(
                    ServerStatus { state: ServerState::Configured, revision: None, .. }
                    | ServerStatus { state: ServerState::Starting(_), .. },
                ) => true,
                Ok(ServerStatus { state, .. }) => {
                    if let ServerState::Degraded(why) = state {
                        tell(&format!("{}: {why}", server_set.label(name)));
                    }
                    self.tell_remarks(&server_set, name, tell);
                    false
                }
                Err(_) => false,
            });
            let names = || awaited.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            if awaited.is_empty() || cancel.is_set() {
                return;
            }
            if began.elapsed() >= longest {
                return tell(&format!("still starting: {}; we go on without their tools", names()));
            }
            if quiet.elapsed() > SILENCE {
                quiet = Instant::now();
                tell(&format!("still starting: {}", names()));
            }
            cancel.wait(GLANCE);
        }
    }

    /// Tells once why tools of a server are not offered, including tools that change during a session.
    fn tell_remarks(&self, server_set: &ServerSet, name: &str, tell: &mut dyn FnMut(&str)) {
        for remark in server_set.remarks(name) {
            if guard(&self.told).insert(remark.clone()) {
                tell(&remark);
            }
        }
    }

    /// The state of all servers: name, state, tools, problem.
    pub fn rows(&self) -> Vec<[String; 4]> {
        let opened = self.open();
        let statuses = opened.server_set.as_ref().map(|server_set| server_set.fleet().statuses()).unwrap_or_default();
        let live = statuses.into_iter().map(|status| {
            let problem = status.state.problem().unwrap_or_default().to_owned();
            [status.name, status.state.name().to_owned(), status.tools.to_string(), problem]
        });
        let closed = opened.closed.iter().map(|(name, why)| [name.as_str(), "stopped", "?", why].map(str::to_owned));
        live.chain(closed).collect()
    }

    /// The states of the servers that may be started.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.server_set().map(|server_set| server_set.fleet().statuses()).unwrap_or_default()
    }

    /// The tools that a server offers now, each with its name, description and schema.
    pub fn tools_of(&self, name: &str) -> Vec<Value> {
        let tools = self.server_set().map(|server_set| server_set.offers(name).tools).unwrap_or_default();
        let told = |Offer { tool, .. }: Offer| json!({"name": tool.name, "description": tool.description, "inputSchema": tool.input.0});
        tools.into_iter().map(told).collect()
    }

    /// The log of a server since the session began.
    pub fn log(&self, name: &str) -> Vec<String> {
        let server = self.server_set().and_then(|server_set| server_set.fleet().server(name).ok());
        server.map(|server| server.log(0).0).unwrap_or_default()
    }

    /// The prefix of a server's tool names.
    pub fn prefix(&self, name: &str) -> Result<String, String> {
        let server_set = self.member(name)?;
        Ok(server_set.prefix(name))
    }

    /// Stops a server of a running session and starts it again.
    pub fn restart(&self, name: &str) -> Result<(), String> {
        let server_set = self.member(name)?;
        server_set.fleet().restart(name).map_err(|error| error.to_string())
    }

    /// Stops a server of a running session.
    pub fn stop(&self, name: &str) -> Result<(), String> {
        let server_set = self.member(name)?;
        server_set.fleet().stop(name).map_err(|error| error.to_string())
    }

    /// Saves the servers' data and ends all running ones.
    pub fn close(&self, notices: &mut dyn Notices) {
        let opened = guard(&self.opened).clone();
        let Some(server_set) = opened.as_ref().and_then(|opened| opened.server_set.as_ref()) else { return };
        server_set.keep().iter().for_each(|trouble| notices.tell(trouble));
        // A server should hear that a call was abandoned before it hears that it should end.
        self.closing.store(true, Ordering::Release);
        let began = Instant::now();
        while self.calls.load(Ordering::Acquire) > 0 && began.elapsed() < FAREWELL {
            std::thread::sleep(GLANCE);
        }
        server_set.fleet().stop_all();
    }

    fn open(&self) -> Arc<LoadedServers> {
        let mut opened = guard(&self.opened);
        Arc::clone(opened.get_or_insert_with(|| Arc::new(LoadedServers::of(&self.context(), self.ports()))))
    }

    /// The ports that receive servers' news and answer their questions.
    fn ports(&self) -> Ports {
        let ports = self.questions.get().map(Questions::ports).unwrap_or_default();
        Ports { watch: Some(self.changes.clone()), ..ports }
    }

    fn server_set(&self) -> Option<Arc<ServerSet>> {
        self.open().server_set.clone()
    }

    /// The server set, if this server may be started.
    fn member(&self, name: &str) -> Result<Arc<ServerSet>, String> {
        let opened = self.open();
        if let Some(why) = opened.closed.get(name) {
            return Err(format!("server `{name}` is not started: {why}"));
        }
        let server_set = opened.server_set.clone().filter(|server_set| server_set.fleet().server(name).is_ok());
        server_set.ok_or_else(|| {
            let unknown = format!("there is no server `{name}`; {}", self.context().tell(&Remedy::ListServers));
            let notes = opened.notes.iter().map(String::as_str);
            std::iter::once(unknown.as_str()).chain(notes).collect::<Vec<_>>().join("; ")
        })
    }

    /// The tools that are offered now.
    fn offered(&self) -> Arc<Vec<OfferedTool>> {
        let Some(server_set) = self.server_set() else { return Arc::default() };
        server_set.fleet().refresh();
        let changes = self.changes.count.load(Ordering::Acquire);
        let mut offered = guard(&self.offered);
        if offered.0 != changes {
            *offered = (changes, Arc::new(listed(&server_set)));
        }
        Arc::clone(&offered.1)
    }
}

impl ToolSource for McpTools {
    fn tools(&self) -> Vec<Tool> {
        self.offered().iter().filter(|offered| !offered.lapsed).map(|offered| offered.tool.clone()).collect()
    }

    fn failures(&self) -> Vec<Failure> {
        let failed = std::mem::take(&mut *guard(&self.changes.failed));
        let server_set = failed.first().and_then(|_| self.server_set());
        let failure = |(name, why): (String, String)| {
            let server_set = server_set.as_ref();
            let stack = server_set.and_then(|set| Some(set.fleet().server(&name).ok()?.last_words()));
            let label = server_set.map(|set| set.label(&name)).unwrap_or(name);
            Failure { message: format!("{label}: {why}"), stack: stack.filter(|words| !words.is_empty()) }
        };
        failed.into_iter().map(failure).collect()
    }

    fn recalls(&self, name: &str) -> bool {
        self.offered().iter().any(|offered| offered.lapsed && offered.tool.name == name)
    }

    fn call(&self, order: &Order) -> ToolResult {
        let all = self.offered();
        let (Some(offered), Some(server_set)) =
            (all.iter().find(|offered| offered.tool.name == order.name), self.server_set())
        else {
            return ToolResult::error(format!("`{}` is not offered any more", order.name));
        };
        let _running = RunningCall::new(&self.calls);
        let (sender, steps) = channel();
        let call = Call {
            tool: offered.raw.clone(),
            args: order.args.clone(),
            timeout: None,
            progress: Some(Arc::new(move |step: Progress| drop(sender.send(step)))),
        };
        let questions = self.questions.get();
        let _floor = questions.map(|questions| questions.open(vec![offered.server.clone()]));
        let given_up = || order.cancel.is_set() || self.closing.load(Ordering::Acquire);
        let pending = match server_set.fleet().call(&offered.server, call) {
            Ok(pending) => pending,
            Err(error) => return ToolResult::error(error.to_string()),
        };
        let answer = wait(pending, questions, &given_up, || {
            for step in steps.try_iter() {
                (order.progress)(&told(&step));
            }
        });
        if answer.is_err() && given_up() {
            return ToolResult::error("interrupted");
        }
        match taken(answer, offered.tool.output.as_ref()) {
            Ok(taken) => {
                taken.notes.iter().for_each(|note| (order.progress)(note));
                let spill = server_set.spill(&self.context(), &offered.server);
                let bounded = bound_result(taken.result, Limits::default().result, &spill);
                bounded.notes.iter().for_each(|text| (order.progress)(text));
                bounded.result
            }
            Err(error) => ToolResult::error(error.to_string()),
        }
    }
}

impl ToolCaller for McpTools {
    fn call(&self, call: &ToolCall) -> Result<String, ToolFailure> {
        let began = Instant::now();
        let timeout = call.timeout.saturating_add(MARGIN);
        let server_set = self.member(&call.server)?;
        let what = Call { tool: call.tool.clone(), args: call.args.clone(), timeout: Some(timeout), progress: None };
        let pending = server_set.fleet().call(&call.server, what).map_err(|error| error.to_string())?;
        let answer = pending.wait_for(timeout.saturating_sub(began.elapsed()));
        let answer = answer.ok_or_else(|| late(&server_set, call))?;
        let result = read_result(&answer.map_err(|error| error.to_string())?, None).result;
        let text = text_of(&result);
        if !result.is_error {
            return Ok(text);
        }
        Err(ToolFailure { why: format!("`{}` of `{}` failed: {text}", call.tool, call.server), said: text })
    }

    fn last_words(&self, server: &str) -> String {
        // The caller has waited long enough; servers that are not loaded yet have said nothing.
        let opened = self.opened.try_lock().ok().and_then(|opened| opened.clone());
        let server_set = opened.and_then(|opened| opened.server_set.clone());
        server_set.and_then(|server_set| Some(server_set.fleet().server(server).ok()?.last_words())).unwrap_or_default()
    }
}

/// The message about a hook whose answer did not arrive.
fn late(server_set: &ServerSet, call: &ToolCall) -> String {
    let time = call.timeout.as_secs_f64();
    let text = format!("no answer to `{}` came from server `{}` within {time} seconds", call.tool, call.server);
    match server_set.fleet().server(&call.server).map(|server| server.last_words()) {
        Ok(said) if !said.is_empty() => format!("{text}; its last words:\n{said}"),
        _ => text,
    }
}

fn listed(server_set: &ServerSet) -> Vec<OfferedTool> {
    let mut all = Vec::new();
    for server in server_set.fleet().servers() {
        let name = server.name();
        for (offers, lapsed) in [(server_set.offers(name), false), (server_set.lapsed(name), true)] {
            let offered =
                |offer: Offer| OfferedTool { server: name.to_owned(), raw: offer.raw, tool: offer.tool, lapsed };
            all.extend(offers.tools.into_iter().map(offered));
        }
    }
    all
}

/// The text of a tool's result.
fn text_of(result: &ToolResult) -> String {
    let text = |content: &Content| match content {
        Content::Text(text) => Some(text.clone()),
        _ => None,
    };
    result.content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
