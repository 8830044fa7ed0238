//! A client of many servers for programs without a runtime: its methods block. The tasks of the servers run on a thread
//! of the client (`runtime`). A waiting caller drives them itself (`wait`).
//!
//! The ports run inside the runtime. Methods that wait fail there, because they would wait for themselves.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Map, Value};
use tokio::task::JoinHandle;

use crate::cache::ServerMemory;
use crate::error::{CallError, CallErrorKind};
use crate::list::Listing;
use crate::ready::ReadyServer;
use crate::runtime::{RuntimeHandle, RuntimeThread};
use crate::server::{Call, Server};
use crate::shared::ClientContext;
use crate::status::ServerStatus;
use crate::wait::WaitEnd;

/// How long a cancelled request may take to end.
const CANCEL_TIME: Duration = Duration::from_millis(500);
/// How often a caller gets to do something else while it waits.
const TICK: Duration = Duration::from_millis(20);

/// A blocking client of many servers. Dropping it ends all servers at once; [`BlockingClient::close`] gives them time.
#[derive(Debug)]
pub struct BlockingClient {
    context: Arc<ClientContext>,
    servers: RwLock<BTreeMap<String, Arc<Server>>>,
    runtime: RuntimeThread,
}

impl BlockingClient {
    /// A client without servers; only the thread is started.
    pub fn new(context: Arc<ClientContext>) -> io::Result<Self> {
        Ok(Self { context, servers: RwLock::default(), runtime: RuntimeThread::new()? })
    }

    /// Adds a server without starting it. A server of the same name is ended.
    pub fn add(&self, ready: ReadyServer, memory: ServerMemory) {
        let runtime = self.runtime.handle();
        let _entered = runtime.enter();
        let name = ready.name.clone();
        let server = Arc::new(Server::on_thread(Arc::clone(&self.context), ready, memory, Arc::clone(runtime)));
        let before = self.servers.write().unwrap_or_else(PoisonError::into_inner).insert(name, server);
        drop(before);
    }

    /// Stops a server with time to end by itself, and forgets it.
    pub fn remove(&self, name: &str) -> Result<(), CallError> {
        self.stop(name)?;
        self.servers.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        Ok(())
    }

    /// The servers in the order of their names.
    pub fn servers(&self) -> Vec<Arc<Server>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The server with this name.
    pub fn server(&self, name: &str) -> Result<Arc<Server>, CallError> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        let unknown = || CallError::new(name, CallErrorKind::Unknown);
        servers.get(name).cloned().ok_or_else(unknown)
    }

    /// The status of every server.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.servers().iter().map(|server| server.status()).collect()
    }

    /// Starts the servers without waiting. Lazy servers whose tools are already known are left to their first call.
    pub fn begin(&self) {
        for server in self.servers() {
            if !(server.ready().lazy && server.status().tools > 0) {
                server.begin();
            }
        }
    }

    /// Starts a server and waits for the outcome.
    pub fn start(&self, name: &str) -> Result<(), CallError> {
        self.ask(name, |server| async move { server.start().await })
    }

    /// Starts all servers at once; the outcomes are in the order of their names.
    pub fn start_all(&self) -> Result<PendingAnswer<Vec<Result<(), CallError>>>, CallError> {
        let servers = self.servers();
        self.spawn("", async move { Ok(join_all(servers.iter().map(|server| server.start())).await) })
    }

    /// Stops a server with time to end by itself.
    pub fn stop(&self, name: &str) -> Result<(), CallError> {
        self.ask(name, |server| async move {
            server.stop().await;
            Ok(())
        })
    }

    /// Stops a server and starts it again.
    pub fn restart(&self, name: &str) -> Result<(), CallError> {
        self.ask(name, |server| async move { server.restart().await })
    }

    /// Calls a tool; starts the server if it does not run.
    pub fn call(&self, name: &str, call: Call) -> Result<PendingAnswer<Value>, CallError> {
        self.later(name, |server| async move { server.call(call).await })
    }

    /// Gets a prompt, filled in.
    pub fn prompt(
        &self,
        name: &str,
        prompt: String,
        args: Map<String, Value>,
    ) -> Result<PendingAnswer<Value>, CallError> {
        self.later(name, |server| async move { server.prompt(prompt, args).await })
    }

    /// Reads a resource.
    pub fn read(&self, name: &str, uri: String) -> Result<PendingAnswer<Value>, CallError> {
        self.later(name, |server| async move { server.read(uri).await })
    }

    /// Lists the prompts of a server.
    pub fn prompts(&self, name: &str) -> Result<PendingAnswer<Listing>, CallError> {
        self.later(name, |server| async move { server.prompts().await })
    }

    /// Lists the resources of a server.
    pub fn resources(&self, name: &str) -> Result<PendingAnswer<Listing>, CallError> {
        self.later(name, |server| async move { server.resources().await })
    }

    /// Lists the patterns of the resources of a server.
    pub fn templates(&self, name: &str) -> Result<PendingAnswer<Listing>, CallError> {
        self.later(name, |server| async move { server.templates().await })
    }

    /// Waits for a while until servers that announced new tools have listed them.
    pub fn refresh(&self) {
        let stale = self.servers().into_iter().filter(|server| server.is_stale());
        let waits = stale.filter_map(|server| {
            let wait = |server: Arc<Server>| async move {
                server.refresh().await;
                Ok(())
            };
            self.later(server.name(), wait).ok()
        });
        for wait in waits.collect::<Vec<_>>() {
            let _ = wait.wait();
        }
    }

    /// Offers the tools of crashed servers again, so that a call starts them.
    pub fn offer(&self) {
        for server in self.servers().iter().filter(|server| server.is_crashed()) {
            let _ = self.ask(server.name(), |server| async move {
                server.offer().await;
                Ok(())
            });
        }
    }

    /// Gives servers little time to end from now on.
    pub fn hurry(&self) {
        self.context.hurry();
    }

    /// Stops all servers at the same time, with time to end by themselves.
    pub fn stop_all(&self) {
        let stops = self.servers().into_iter().filter_map(|server| {
            self.later(server.name(), |server| async move {
                server.stop().await;
                Ok(())
            })
            .ok()
        });
        for stop in stops.collect::<Vec<_>>() {
            let _ = stop.wait();
        }
    }

    /// Stops all servers at the same time, with time to end by themselves. Then kills orphaned processes that this
    /// process has adopted.
    pub fn close(self) {
        self.stop_all();
        let children = Arc::clone(&self.context.children);
        drop(self);
        children.kill_adopted();
    }

    fn ask<T, F>(&self, name: &str, request: impl FnOnce(Arc<Server>) -> F) -> Result<T, CallError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, CallError>> + Send + 'static,
    {
        self.later(name, request)?.wait()
    }

    fn later<T, F>(&self, name: &str, request: impl FnOnce(Arc<Server>) -> F) -> Result<PendingAnswer<T>, CallError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, CallError>> + Send + 'static,
    {
        self.spawn(name, request(self.server(name)?))
    }

    fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        work: impl Future<Output = Result<T, CallError>> + Send + 'static,
    ) -> Result<PendingAnswer<T>, CallError> {
        let runtime = self.runtime.handle();
        if runtime.is_current() {
            return Err(inside_runtime(name));
        }
        let task = RefCell::new(Some(runtime.spawn(work)));
        Ok(PendingAnswer { server: name.to_owned(), task, runtime: Arc::clone(runtime) })
    }
}

fn inside_runtime(name: &str) -> CallError {
    let text = "called from the runtime thread, which would deadlock".to_owned();
    CallError::new(name, CallErrorKind::Unavailable(text))
}

/// A pending answer. Dropping it cancels the request.
#[derive(Debug)]
pub struct PendingAnswer<T> {
    server: String,
    /// Absent once the answer has been returned.
    task: RefCell<Option<JoinHandle<Result<T, CallError>>>>,
    runtime: Arc<RuntimeHandle>,
}

impl<T: Send> PendingAnswer<T> {
    /// Waits for the answer.
    pub fn wait(self) -> Result<T, CallError> {
        self.wait_within(None).unwrap_or_else(|| Err(self.cancelled()))
    }

    /// Waits for the answer for a while.
    pub fn wait_for(&self, time: Duration) -> Option<Result<T, CallError>> {
        self.wait_within(Some(time))
    }

    /// Waits for the answer, and calls `meanwhile` on this thread every 20 ms and when the answer has come. Cancels the
    /// request once `stop` returns true.
    pub fn wait_until(self, stop: impl Fn() -> bool, mut meanwhile: impl FnMut()) -> Result<T, CallError> {
        while !stop() {
            let answer = self.wait_for(TICK);
            meanwhile();
            if let Some(answer) = answer {
                return answer;
            }
        }
        Err(self.cancel())
    }

    /// Cancels the request. The server learns of this before any later request.
    pub fn cancel(self) -> CallError {
        if let Some(task) = self.task.borrow_mut().as_mut() {
            task.abort();
            self.runtime.wait(task, Some(CANCEL_TIME));
        }
        self.cancelled()
    }

    fn wait_within(&self, limit: Option<Duration>) -> Option<Result<T, CallError>> {
        let mut task = self.task.borrow_mut();
        let Some(running) = task.as_mut() else {
            return Some(Err(self.cancelled()));
        };
        let answer = match self.runtime.wait(running, limit) {
            WaitEnd::Answered(answer) => answer,
            WaitEnd::TimedOut => return None,
            WaitEnd::Cancelled => Err(self.cancelled()),
            WaitEnd::InsideRuntime => return Some(Err(inside_runtime(&self.server))),
        };
        *task = None;
        Some(answer)
    }

    fn cancelled(&self) -> CallError {
        CallError::new(&self.server, CallErrorKind::Cancelled)
    }
}

impl<T> Drop for PendingAnswer<T> {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut() {
            task.abort();
        }
    }
}
