//! The client that sends orders: it finds the running conversations and collects their answers.

use std::fs;
use std::io;
use std::net::Shutdown;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use ollm_store::current_uid;
use serde_json::Value;

use super::{
    ControlCommand, ControlRequest, LONGEST_ANSWER, SUFFIX, VERSION, folder, is_own, peer, place, receive, send, way,
};
use crate::app_context::AppContext;

/// More conversations are not asked.
const MOST: usize = 64;
/// How long a conversation may take to report its state.
const TELLING: Duration = Duration::from_secs(5);
/// How long it may take to carry out an order: three tries of a slow server, and some more.
const DOING: Duration = Duration::from_mins(3);

/// A conversation and the state of its servers.
#[derive(Debug)]
pub struct Chat {
    /// Its process.
    pub process: u64,
    /// Its session.
    pub session: String,
    /// One object per server.
    pub servers: Vec<Value>,
}

/// All conversations of the project, and the problems with others.
#[derive(Debug, Default)]
pub struct FoundChats {
    /// The conversations.
    pub chats: Vec<Chat>,
    /// The reasons why others could not be asked.
    pub troubles: Vec<String>,
}

impl Chat {
    /// The state of one server.
    pub fn server(&self, name: &str) -> Option<&Value> {
        self.servers.iter().find(|server| server.get("name").and_then(Value::as_str) == Some(name))
    }
}

/// Asks all conversations of this project that have servers at the same time; the oldest comes first.
pub fn ask(context: &AppContext, deed: ControlCommand, servers: &[String]) -> FoundChats {
    let folder = folder(context);
    let order = ControlRequest { deed, place: place(context), servers: servers.to_vec() };
    let names = match sockets(&folder) {
        Ok(names) => names,
        Err(why) => return FoundChats { chats: Vec::new(), troubles: vec![why] },
    };
    let mut found = FoundChats::default();
    thread::scope(|scope| {
        let asking: Vec<_> = names
            .iter()
            .map(|name| scope.spawn(|| ask_one(&folder, name, &order).map_err(|why| format!("{}: {why}", shown(name)))))
            .collect();
        for asked in asking {
            match asked.join() {
                Ok(Ok(chat)) => found.chats.extend(chat.filter(|chat| !chat.servers.is_empty())),
                Ok(Err(why)) => found.troubles.push(why),
                Err(_) => {}
            }
        }
    });
    found.chats.sort_by(|one, other| one.session.cmp(&other.session));
    found
}

/// The names of the sockets; empty if there is no folder. An error if the folder is not only ours.
pub(super) fn sockets(folder: &Path) -> Result<Vec<String>, String> {
    let Ok(meta) = fs::symlink_metadata(folder) else { return Ok(Vec::new()) };
    if !is_own(&meta) {
        return Err(format!("{} is not a folder of yours alone: chmod 700 it, or remove it", folder.display()));
    }
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let sockets = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    let names = sockets.filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| name.ends_with(SUFFIX)).take(MOST).collect())
}

/// The answer of one conversation; `None` if it belongs to another project or is gone. An order may take minutes, so we
/// ask for the state before it and repeatedly meanwhile. We do not wait for a frozen conversation. A conversation that
/// was frozen ignores an order that is long overdue.
fn ask_one(folder: &Path, name: &str, order: &ControlRequest) -> Result<Option<Chat>, String> {
    if !order.deed.changes() {
        return tell_one(folder, name, order);
    }
    let look =
        ControlRequest { deed: ControlCommand::Status, place: order.place.clone(), servers: order.servers.clone() };
    if tell_one(folder, name, &look)?.is_none() {
        return Ok(None);
    }
    let Some(stream) = connect(folder, name)? else { return Ok(None) };
    let (tell, told) = channel();
    thread::scope(|scope| {
        scope.spawn(|| drop(tell.send(exchange(&stream, order, DOING))));
        loop {
            match told.recv_timeout(TELLING) {
                Ok(answer) => return read(&answer.map_err(|error| unanswered(name, DOING, &error))?),
                Err(_) => {
                    if let Err(why) = tell_one(folder, name, &look) {
                        let _ = stream.shutdown(Shutdown::Both);
                        return Err(format!("{why}; it was told to {} servers, and does so then", order.deed.name()));
                    }
                }
            }
        }
    })
}

fn tell_one(folder: &Path, name: &str, order: &ControlRequest) -> Result<Option<Chat>, String> {
    let Some(stream) = connect(folder, name)? else { return Ok(None) };
    read(&exchange(&stream, order, TELLING).map_err(|error| unanswered(name, TELLING, &error))?)
}

/// The connection to one conversation; `None` if it is gone.
fn connect(folder: &Path, name: &str) -> Result<Option<UnixStream>, String> {
    let stream = match way(folder, name, |path| UnixStream::connect(path)) {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            // The process that listened there was killed. A socket appears under this name only when a process listens
            // on it.
            let _ = fs::remove_file(folder.join(name));
            return Ok(None);
        }
        Err(error) => return Err(error.to_string()),
    };
    if let Some((user, _)) = peer(&stream).map_err(|error| error.to_string())?
        && user != current_uid()
    {
        return Err(format!("another user ({user}) answers there"));
    }
    Ok(Some(stream))
}

fn unanswered(name: &str, patience: Duration, error: &io::Error) -> String {
    let (process, time) = (name.trim_end_matches(SUFFIX), patience.as_secs());
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!(
            "it did not answer within {time} seconds; process {process} is frozen or busy, `kill -CONT {process}` thaws it"
        ),
        _ => format!("its answer cannot be read: {error}"),
    }
}

fn exchange(stream: &UnixStream, order: &ControlRequest, patience: Duration) -> io::Result<Value> {
    stream.set_write_timeout(Some(TELLING))?;
    stream.set_read_timeout(Some(patience))?;
    send(stream, &order.to_json())?;
    receive(stream, LONGEST_ANSWER)
}

fn read(answer: &Value) -> Result<Option<Chat>, String> {
    if let Some(why) = answer.get("error").and_then(Value::as_str) {
        return Err(why.to_owned());
    }
    if answer.get("version").and_then(Value::as_u64) != Some(VERSION) {
        return Err("it speaks another version; update both programs".to_owned());
    }
    if answer.get("elsewhere").and_then(Value::as_bool) == Some(true) {
        return Ok(None);
    }
    Ok(Some(Chat {
        process: answer.get("pid").and_then(Value::as_u64).unwrap_or_default(),
        session: answer.get("session").and_then(Value::as_str).unwrap_or_default().to_owned(),
        servers: answer.get("servers").and_then(Value::as_array).cloned().unwrap_or_default(),
    }))
}

fn shown(name: &str) -> String {
    format!("conversation {}", name.trim_end_matches(SUFFIX))
}
