//! The server that carries out orders: one thread of the conversation listens, and each order gets a thread.
//!
//! A process that watches the folder of the sockets notices every change. A conversation touches its socket when one of
//! its servers changes. At its end it closes a file there.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ollm_store::{current_uid, lock_file};
use serde_json::{Value, json};

use super::client::sockets;
use super::{
    ControlCommand, ControlRequest, LONGEST_ORDER, SUFFIX, VERSION, folder, is_own, peer, place, receive, send, way,
};
use crate::agent_signs::agent_above;
use crate::app_context::AppContext;
use crate::servers::McpTools;

/// How many orders are carried out at the same time.
const AT_ONCE: usize = 8;
/// How long an order may take to arrive, and how long the client may take to read the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The listening socket of a conversation; closed when dropped.
#[derive(Debug)]
pub struct Control {
    folder: PathBuf,
    name: String,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Closed when we end, which other programs notice.
    _open: Option<File>,
}

/// The data that a thread needs to carry out orders.
struct OrderContext {
    mcp_tools: Arc<McpTools>,
    session: String,
    busy: AtomicUsize,
}

impl Control {
    /// Listens for orders, if the conversation can have servers.
    pub fn open(
        mcp_tools: Option<&Arc<McpTools>>,
        session: &str,
        context: &AppContext,
    ) -> Result<Option<Control>, String> {
        let Some(mcp_tools) = mcp_tools else { return Ok(None) };
        let obeying =
            OrderContext { mcp_tools: Arc::clone(mcp_tools), session: session.to_owned(), busy: AtomicUsize::new(0) };
        let folder = folder(context);
        let opened = own(&folder).and_then(|()| {
            sweep(&folder);
            listen(&folder)
        });
        let (listener, name) = opened.map_err(|error| {
            format!("other programs cannot stop or restart servers of this conversation: {}: {error}", folder.display())
        })?;
        let open = open_file(&folder);
        mcp_tools.touch_with_changes(folder.join(&name));
        let closing = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&closing);
        let thread = thread::Builder::new().name("control".to_owned()).spawn(move || hear(&listener, obeying, &closed));
        Ok(Some(Control { folder, name, closing, thread: thread.ok(), _open: open }))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        // One last connection wakes the listener.
        let woken = way(&self.folder, &self.name, |path| UnixStream::connect(path)).is_ok();
        let _ = fs::remove_file(self.folder.join(&self.name));
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

/// Makes the folder, or checks that it is only ours.
fn own(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if is_own(&fs::symlink_metadata(folder)?) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a folder of yours alone: chmod 700 it"))
}

/// A file that closes at our end in every case. It has no name any more, but its folder still reports that it closes.
/// Without it, only programs that ask notice that we were killed.
fn open_file(folder: &Path) -> Option<File> {
    let path = folder.join(format!(".{}.open", std::process::id()));
    let open = lock_file(&path).ok();
    let _ = fs::remove_file(path);
    open
}

/// Removes the sockets of killed conversations.
fn sweep(folder: &Path) {
    for name in sockets(folder).unwrap_or_default() {
        let gone = way(folder, &name, |path| UnixStream::connect(path));
        if gone.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            let _ = fs::remove_file(folder.join(name));
        }
    }
}

/// Listens first and renames the socket then, so that every visible socket has a listener.
fn listen(folder: &Path) -> io::Result<(UnixListener, String)> {
    let process = std::process::id();
    let (draft, name) = (format!(".{process}"), format!("{process}{SUFFIX}"));
    let _ = fs::remove_file(folder.join(&draft));
    let listener = way(folder, &draft, |path| UnixListener::bind(path))?;
    fs::rename(folder.join(draft), folder.join(&name))?;
    Ok((listener, name))
}

fn hear(listener: &UnixListener, obeying: OrderContext, closing: &AtomicBool) {
    let obeying = Arc::new(obeying);
    for stream in listener.incoming() {
        if closing.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else {
            // Most likely too many files are open, so we wait before the next try.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        if obeying.busy.fetch_add(1, Ordering::AcqRel) >= AT_ONCE {
            obeying.busy.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let here = Arc::clone(&obeying);
        let begun = thread::Builder::new().name("order".to_owned()).spawn(move || {
            obey(&stream, &here);
            here.busy.fetch_sub(1, Ordering::AcqRel);
        });
        if begun.is_err() {
            obeying.busy.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Carries out one order. A client that does not take the answer does not get one.
fn obey(stream: &UnixStream, here: &OrderContext) {
    let answer = read(stream).and_then(|order| {
        if order.place != place(&here.mcp_tools.context()) {
            return Ok(json!({"version": VERSION, "elsewhere": true}));
        }
        allowed(stream, order.deed)?;
        let servers = carry_out(&order, &here.mcp_tools);
        Ok(json!({"version": VERSION, "pid": std::process::id(), "session": here.session, "servers": servers}))
    });
    let answer = answer.unwrap_or_else(|why| json!({"version": VERSION, "error": why}));
    let _ = send(stream, &answer);
}

fn read(stream: &UnixStream) -> Result<ControlRequest, String> {
    let unread = |error: io::Error| format!("the order cannot be read: {error}");
    stream.set_read_timeout(Some(PATIENCE)).map_err(unread)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(unread)?;
    if let Some((user, _)) = peer(stream).map_err(unread)?
        && user != current_uid()
    {
        return Err("this conversation is another user's".to_owned());
    }
    ControlRequest::from_json(&receive(stream, LONGEST_ORDER).map_err(unread)?)
}

/// Whether a client may give this order. A process that an agent started may only look: a hook may rely on the server.
fn allowed(stream: &UnixStream, deed: ControlCommand) -> Result<(), String> {
    if !deed.changes() {
        return Ok(());
    }
    let Some((_, process)) = peer(stream).map_err(|error| error.to_string())? else { return Ok(()) };
    match agent_above(process) {
        None => Ok(()),
        Some(sign) => Err(format!("an agent may not {} servers: {sign}", deed.name())),
    }
}

fn carry_out(order: &ControlRequest, mcp_tools: &McpTools) -> Vec<Value> {
    let outcomes: Vec<(String, Result<(), String>)> = match order.deed {
        ControlCommand::Status | ControlCommand::Logs => Vec::new(),
        ControlCommand::Stop => each(&named(order, mcp_tools), &|name| mcp_tools.stop(name)),
        ControlCommand::Restart => each(&named(order, mcp_tools), &|name| mcp_tools.restart(name)),
    };
    let mut told = Vec::new();
    for status in mcp_tools.statuses() {
        if !order.servers.is_empty() && !order.servers.contains(&status.name) {
            continue;
        }
        let failed = outcomes.iter().find(|(name, _)| *name == status.name).and_then(|(_, done)| done.as_ref().err());
        let mut server = json!({
            "name": status.name,
            "state": status.state.name(),
            "status": status.state.word(),
            "transport": status.transport,
            "tools": status.tools,
            "revision": status.revision,
            "process": status.process,
            "error": failed.map(String::as_str).or(status.state.problem()),
            "failed": failed.is_some(),
        });
        let more = match order.deed {
            ControlCommand::Logs => Some(("lines", mcp_tools.log(&status.name).into())),
            ControlCommand::Status => Some(("toolList", mcp_tools.tools_of(&status.name).into())),
            ControlCommand::Stop | ControlCommand::Restart => None,
        };
        if let (Some((key, value)), Some(server)) = (more, server.as_object_mut()) {
            server.insert(key.to_owned(), value);
        }
        told.push(server);
    }
    // The answer also names servers that this conversation does not have.
    let unknown =
        outcomes.iter().filter(|(name, _)| !told.iter().any(|server| server.get("name") == Some(&json!(name))));
    let unknown: Vec<Value> = unknown
        .filter_map(|(name, done)| Some((name, done.as_ref().err()?)))
        .map(|(name, why)| json!({"name": name, "state": "stopped", "status": "error", "error": why, "failed": true}))
        .collect();
    told.extend(unknown);
    told
}

fn named(order: &ControlRequest, mcp_tools: &McpTools) -> Vec<String> {
    if order.servers.is_empty() {
        return mcp_tools.statuses().into_iter().map(|status| status.name).collect();
    }
    order.servers.clone()
}

/// Works on all servers at the same time, so that a slow one delays no other.
fn each(names: &[String], work: &(dyn Fn(&str) -> Result<(), String> + Sync)) -> Vec<(String, Result<(), String>)> {
    thread::scope(|scope| {
        let working: Vec<_> = names.iter().map(|name| scope.spawn(|| work(name))).collect();
        let outcomes = working.into_iter().map(|one| one.join().unwrap_or_else(|_| Err("it broke down".to_owned())));
        let outcomes: Vec<_> = outcomes.collect();
        names.iter().cloned().zip(outcomes).collect()
    })
}
