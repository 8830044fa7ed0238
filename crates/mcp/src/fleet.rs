//! All servers, for programs that have no runtime: the methods block, one thread does the waiting.
//!
//! The thread starts all programs, so they die with it and not with whoever asked for them. Methods must not be called
//! from the ports, which run on that thread; they fail there instead of waiting for themselves.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

use ollm_process::PipeShield;
use serde_json::{Map, Value};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::declaration::Declaration;
use crate::error::{CallError, Trouble};
use crate::list::Listing;
use crate::server::{Call, Memory, Server};
use crate::shared::Context;
use crate::status::Status;

/// How long work that cannot be interrupted, such as looking up a name, is waited for at the end.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// All servers and the thread they live on. Dropped, all end at once; [`Fleet::close`] gives them time.
#[derive(Debug)]
pub struct Fleet {
    context: Arc<Context>,
    servers: RwLock<BTreeMap<String, Arc<Server>>>,
    runtime: Handle,
    /// Dropped to end the thread.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    thread_id: ThreadId,
}

impl Fleet {
    /// No servers yet; only the thread is started.
    pub fn new(context: Arc<Context>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let thread = thread::Builder::new().name("mcp".to_owned()).spawn(move || keep(runtime, ended))?;
        let thread_id = thread.thread().id();
        let servers = RwLock::default();
        Ok(Self { context, servers, runtime: handle, end: Some(end), thread: Some(thread), thread_id })
    }

    /// Adds a server, which is not started by that; one of the same name is ended.
    pub fn add(&self, declaration: Declaration, memory: Memory) {
        let _here = self.runtime.enter();
        let name = declaration.name.clone();
        let server = Arc::new(Server::new(Arc::clone(&self.context), declaration, memory));
        let before = self.servers.write().unwrap_or_else(PoisonError::into_inner).insert(name, server);
        drop(before);
    }

    /// Ends a server, with time to do so, and forgets it.
    pub fn remove(&self, name: &str) -> Result<(), CallError> {
        self.stop(name)?;
        self.servers.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        Ok(())
    }

    /// The servers in the order of their names.
    pub fn servers(&self) -> Vec<Arc<Server>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The server of a name.
    pub fn server(&self, name: &str) -> Result<Arc<Server>, CallError> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        let unknown = || CallError { server: name.to_owned(), kind: Trouble::Unknown };
        servers.get(name).cloned().ok_or_else(unknown)
    }

    /// How all servers are.
    pub fn statuses(&self) -> Vec<Status> {
        self.servers().iter().map(|server| server.status()).collect()
    }

    /// Starts, without waiting for that, all servers but those whose tools are known and which start with the first
    /// call only.
    pub fn begin(&self) {
        for server in self.servers() {
            if !(server.declaration().lazy && server.status().tools > 0) {
                server.begin();
            }
        }
    }

    /// Starts a server and waits for the outcome.
    pub fn start(&self, name: &str) -> Result<(), CallError> {
        self.ask(name, |server| async move { server.start().await })
    }

    /// Starts these servers at once and waits for all outcomes, which are in the order of the names.
    pub fn start_all(&self, names: &[String]) -> Vec<Result<(), CallError>> {
        let starts: Vec<_> =
            names.iter().map(|name| self.later(name, |server| async move { server.start().await })).collect();
        starts.into_iter().map(|start| start.and_then(Pending::wait)).collect()
    }

    /// Ends a server, with time to do so.
    pub fn stop(&self, name: &str) -> Result<(), CallError> {
        self.ask(name, |server| async move {
            server.stop().await;
            Ok(())
        })
    }

    /// Ends a server and starts it again.
    pub fn restart(&self, name: &str) -> Result<(), CallError> {
        self.ask(name, |server| async move { server.restart().await })
    }

    /// Calls a tool; starts the server if it does not run.
    pub fn call(&self, name: &str, call: Call) -> Result<Pending<Value>, CallError> {
        self.later(name, |server| async move { server.call(call).await })
    }

    /// Gets a prompt, filled in.
    pub fn prompt(&self, name: &str, prompt: String, args: Map<String, Value>) -> Result<Pending<Value>, CallError> {
        self.later(name, |server| async move { server.prompt(prompt, args).await })
    }

    /// Reads a resource.
    pub fn read(&self, name: &str, uri: String) -> Result<Pending<Value>, CallError> {
        self.later(name, |server| async move { server.read(uri).await })
    }

    /// Lists the prompts of a server.
    pub fn prompts(&self, name: &str) -> Result<Listing, CallError> {
        self.ask(name, |server| async move { server.prompts().await })
    }

    /// Lists the resources of a server.
    pub fn resources(&self, name: &str) -> Result<Listing, CallError> {
        self.ask(name, |server| async move { server.resources().await })
    }

    /// Lists the patterns of the resources of a server.
    pub fn templates(&self, name: &str) -> Result<Listing, CallError> {
        self.ask(name, |server| async move { server.templates().await })
    }

    /// Ends all servers at once, with time to do so.
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

    /// Ends all servers at once, with time to do so, and then what they have left behind, if that came to us.
    pub fn close(self) {
        self.stop_all();
        let children = Arc::clone(&self.context.children);
        drop(self);
        children.reap_strays();
    }

    fn ask<T, F>(&self, name: &str, question: impl FnOnce(Arc<Server>) -> F) -> Result<T, CallError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, CallError>> + Send + 'static,
    {
        self.later(name, question)?.wait()
    }

    fn later<T, F>(&self, name: &str, question: impl FnOnce(Arc<Server>) -> F) -> Result<Pending<T>, CallError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, CallError>> + Send + 'static,
    {
        let server = self.server(name)?;
        if thread::current().id() == self.thread_id {
            let text = "it cannot be waited for on the thread that does the waiting".to_owned();
            return Err(CallError { server: name.to_owned(), kind: Trouble::Unavailable(text) });
        }
        let (sender, receiver) = sync_channel(1);
        let question = question(server);
        let task = self.runtime.spawn(async move {
            let _ = sender.try_send(question.await);
        });
        Ok(Pending { server: name.to_owned(), receiver, task: task.abort_handle() })
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take()
            && thread::current().id() != self.thread_id
        {
            let _ = thread.join();
        }
    }
}

/// An answer on its way. Dropped, the question is cancelled.
#[derive(Debug)]
pub struct Pending<T> {
    server: String,
    receiver: Receiver<Result<T, CallError>>,
    task: AbortHandle,
}

impl<T> Pending<T> {
    /// Waits for the answer.
    pub fn wait(self) -> Result<T, CallError> {
        self.receiver.recv().unwrap_or_else(|_| Err(self.gone()))
    }

    /// Waits for the answer for a while.
    pub fn wait_for(&self, time: Duration) -> Option<Result<T, CallError>> {
        match self.receiver.recv_timeout(time) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(self.gone())),
        }
    }

    fn gone(&self) -> CallError {
        CallError { server: self.server.clone(), kind: Trouble::Cancelled }
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The life of the thread.
fn keep(runtime: Runtime, ended: oneshot::Receiver<()>) {
    let _shield = PipeShield::raise();
    let _ = runtime.block_on(ended);
    runtime.shutdown_timeout(LAST_WAIT);
}
