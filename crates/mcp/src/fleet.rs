//! All servers, for programs that have no runtime: the methods block. One thread keeps the servers alive; whoever waits
//! for an answer does its work meanwhile (`keeper`).
//!
//! Methods must not be called from the ports, which run in the midst of that work; they fail there instead of waiting for
//! themselves.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::task::JoinHandle;

use crate::declaration::Declaration;
use crate::error::{CallError, Trouble};
use crate::keeper::{Keeper, Post};
use crate::list::Listing;
use crate::server::{Call, Memory, Server};
use crate::shared::Context;
use crate::status::Status;

/// How long it may take until a question is given up.
const GIVING_UP: Duration = Duration::from_millis(500);

/// All servers and the thread they live on. Dropped, all end at once; [`Fleet::close`] gives them time.
#[derive(Debug)]
pub struct Fleet {
    context: Arc<Context>,
    servers: RwLock<BTreeMap<String, Arc<Server>>>,
    keeper: Keeper,
}

impl Fleet {
    /// No servers yet; only the thread is started.
    pub fn new(context: Arc<Context>) -> io::Result<Self> {
        Ok(Self { context, servers: RwLock::default(), keeper: Keeper::new()? })
    }

    /// Adds a server, which is not started by that; one of the same name is ended.
    pub fn add(&self, declaration: Declaration, memory: Memory) {
        let post = self.keeper.post();
        let _here = post.handle().enter();
        let name = declaration.name.clone();
        let server = Arc::new(Server::kept(Arc::clone(&self.context), declaration, memory, Arc::clone(post)));
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
        let unknown = || CallError::new(name, Trouble::Unknown);
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
    pub fn prompts(&self, name: &str) -> Result<Pending<Listing>, CallError> {
        self.later(name, |server| async move { server.prompts().await })
    }

    /// Lists the resources of a server.
    pub fn resources(&self, name: &str) -> Result<Pending<Listing>, CallError> {
        self.later(name, |server| async move { server.resources().await })
    }

    /// Lists the patterns of the resources of a server.
    pub fn templates(&self, name: &str) -> Result<Pending<Listing>, CallError> {
        self.later(name, |server| async move { server.templates().await })
    }

    /// Waits, for a while, until the tools are known that servers have announced.
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

    /// Offers the tools again of servers that ended unasked, so that a call starts them.
    pub fn offer(&self) {
        for server in self.servers().iter().filter(|server| server.is_crashed()) {
            let _ = self.ask(server.name(), |server| async move {
                server.offer().await;
                Ok(())
            });
        }
    }

    /// Has servers that are to end do so with little time for it.
    pub fn hurry(&self) {
        self.context.hurry();
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
        children.kill_adopted();
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
        let post = self.keeper.post();
        if post.is_here() {
            let text = "it cannot be waited for by those who do the waiting".to_owned();
            return Err(CallError::new(name, Trouble::Unavailable(text)));
        }
        let task = RefCell::new(Some(post.spawn(question(server))));
        Ok(Pending { server: name.to_owned(), task, post: Arc::clone(post) })
    }
}

/// An answer on its way. Dropped, the question is cancelled.
#[derive(Debug)]
pub struct Pending<T> {
    server: String,
    /// Absent once the answer was given.
    task: RefCell<Option<JoinHandle<Result<T, CallError>>>>,
    post: Arc<Post>,
}

impl<T> Pending<T> {
    /// Waits for the answer.
    pub fn wait(self) -> Result<T, CallError> {
        self.within(None).unwrap_or_else(|| Err(self.gone()))
    }

    /// Waits for the answer for a while.
    pub fn wait_for(&self, time: Duration) -> Option<Result<T, CallError>> {
        self.within(Some(time))
    }

    /// Gives the question up, so that the server hears of that before anything that is asked of it later.
    pub fn cancel(self) -> CallError {
        if let Some(task) = self.task.borrow_mut().as_mut() {
            task.abort();
            let _ = self.post.wait(task, Some(GIVING_UP));
        }
        self.gone()
    }

    fn within(&self, limit: Option<Duration>) -> Option<Result<T, CallError>> {
        let mut task = self.task.borrow_mut();
        let answer = match task.as_mut() {
            Some(task) => self.post.wait(task, limit)?,
            None => return Some(Err(self.gone())),
        };
        *task = None;
        Some(answer.unwrap_or_else(|_| Err(self.gone())))
    }

    fn gone(&self) -> CallError {
        CallError::new(&self.server, Trouble::Cancelled)
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut() {
            task.abort();
        }
    }
}
