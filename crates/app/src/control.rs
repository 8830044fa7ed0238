//! Orders to a running chat or run: `ollm mcp stop` in one terminal acts on the servers of another.
//!
//! Each conversation with servers listens on a socket of its own. Only its owner can enter the folder of the socket. An
//! order is one line of JSON, and so is the answer. Both ends check that the other one is the same user. A conversation
//! also refuses orders from a process that an agent started: it could stop the server that judges it.
//!
//! Commands that need no conversation never come here.

use std::fs::Metadata;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use ollm_store::current_uid;
use serde_json::{Value, json};

use crate::app_context::AppContext;

mod client;
mod host;

pub use client::{Chat, FoundChats, ask};
pub use host::Control;

/// The version of the messages.
const VERSION: u64 = 1;
/// The longest request, in bytes.
const LONGEST_ORDER: u64 = 64 << 10;
/// The longest answer, in bytes; the servers bound their own logs.
const LONGEST_ANSWER: u64 = 8 << 20;
/// The suffix of socket names.
const SUFFIX: &str = ".sock";

/// An order to a conversation about its servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlCommand {
    /// Report their state.
    Status,
    /// Stop them.
    Stop,
    /// Stop them and start them again.
    Restart,
    /// Return their logs.
    Logs,
}

impl ControlCommand {
    const ALL: [(&'static str, ControlCommand); 4] = [
        ("status", ControlCommand::Status),
        ("stop", ControlCommand::Stop),
        ("restart", ControlCommand::Restart),
        ("logs", ControlCommand::Logs),
    ];

    fn name(self) -> &'static str {
        ControlCommand::ALL.iter().find(|(_, deed)| *deed == self).map_or("status", |(name, _)| name)
    }

    fn named(name: &str) -> Option<ControlCommand> {
        ControlCommand::ALL.iter().find(|(known, _)| *known == name).map(|(_, deed)| *deed)
    }

    /// Whether the order changes anything.
    fn changes(self) -> bool {
        matches!(self, ControlCommand::Stop | ControlCommand::Restart)
    }
}

/// A request.
#[derive(Debug, PartialEq, Eq)]
struct ControlRequest {
    deed: ControlCommand,
    /// The project whose conversations should act.
    place: String,
    /// The names of the servers; empty means all.
    servers: Vec<String>,
}

impl ControlRequest {
    fn to_json(&self) -> Value {
        json!({"version": VERSION, "do": self.deed.name(), "place": self.place, "servers": self.servers})
    }

    fn from_json(value: &Value) -> Result<ControlRequest, String> {
        if value.get("version").and_then(Value::as_u64) != Some(VERSION) {
            return Err(format!("this conversation understands version {VERSION} of orders; update both programs"));
        }
        let text = |name: &str| value.get(name).and_then(Value::as_str).ok_or(format!("the order has no `{name}`"));
        let word = text("do")?;
        let deed = ControlCommand::named(word).ok_or_else(|| format!("there is no order `{word}`"))?;
        let servers = value.get("servers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let servers = servers.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
        Ok(ControlRequest { deed, place: text("place")?.to_owned(), servers })
    }
}

/// The folder of the sockets.
pub(crate) fn folder(context: &AppContext) -> PathBuf {
    context.state().join("chats")
}

/// Whether only the folder's owner can enter it.
fn is_own(meta: &Metadata) -> bool {
    const OTHERS: u32 = 0o077;
    meta.is_dir() && meta.uid() == current_uid() && meta.mode() & OTHERS == 0
}

/// The identifier of a project, by which its conversations differ from others.
fn place(context: &AppContext) -> String {
    let place = context.places.project.as_deref().unwrap_or(&context.cwd);
    place.canonicalize().as_deref().unwrap_or(place).to_string_lossy().into_owned()
}

/// Opens a socket by a path that is short enough for the system, however long its folder's path is.
fn way<T>(folder: &Path, name: &str, go: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    /// The limit on Linux; other systems allow a little less.
    const LONGEST: usize = 100;
    let path = folder.join(name);
    if path.as_os_str().len() <= LONGEST {
        return go(&path);
    }
    let folder = std::fs::File::open(folder)?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&folder);
    go(&PathBuf::from(format!("/proc/self/fd/{number}")).join(name))
}

/// The user and process at the other end, if the system tells.
#[cfg(target_os = "linux")]
fn peer(stream: &UnixStream) -> io::Result<Option<(u32, u32)>> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    Ok(Some((peer.uid.as_raw(), u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or_default())))
}

#[cfg(not(target_os = "linux"))]
fn peer(_: &UnixStream) -> io::Result<Option<(u32, u32)>> {
    // The folder's permissions keep other users out.
    Ok(None)
}

/// Sends one message as a line of JSON.
fn send(mut stream: &UnixStream, message: &Value) -> io::Result<()> {
    stream.write_all(format!("{message}\n").as_bytes())
}

fn receive(stream: &UnixStream, most: u64) -> io::Result<Value> {
    let mut line = Vec::new();
    BufReader::new(stream.take(most)).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        let why = if line.len() as u64 >= most { "the message is too long" } else { "the message broke off" };
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    serde_json::from_slice(&line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written_and_another_version_is_refused() {
        for (_, deed) in ControlCommand::ALL {
            let order = ControlRequest { deed, place: "/p".to_owned(), servers: vec!["a".to_owned()] };
            assert_eq!(ControlRequest::from_json(&order.to_json()), Ok(order));
        }
        let newer = json!({"version": 2, "do": "stop", "place": "/p"});
        assert!(ControlRequest::from_json(&newer).unwrap_err().contains("version 1"));
        let unknown = json!({"version": 1, "do": "dance", "place": "/p"});
        assert_eq!(ControlRequest::from_json(&unknown), Err("there is no order `dance`".to_owned()));
    }

    #[test]
    fn a_message_ends_and_has_an_end() {
        for (text, why) in [("{\"a\": 1}", "broke off"), ("\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\n", "too long")] {
            let (here, mut there) = UnixStream::pair().unwrap();
            there.write_all(text.as_bytes()).unwrap();
            drop(there);
            assert!(receive(&here, 16).unwrap_err().to_string().contains(why), "{text}");
        }
        let (here, there) = UnixStream::pair().unwrap();
        send(&there, &json!({"a": 1})).unwrap();
        assert_eq!(receive(&here, 16).unwrap(), json!({"a": 1}));
    }
}
