//! A connection to the user's message bus: one socket, one deadline, no threads.
//!
//! It does not find the bus (the address comes in), start one, or serve calls of others.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::KeyringError;
use super::wire::{self, Call, FIXED, Message, MessageKind};

/// The longest line of the greeting.
const LONGEST_LINE: usize = 4096;
/// The most early signals that are kept.
const MOST_HEARD: usize = 16;

/// A connection after the greeting.
#[derive(Debug)]
pub(super) struct Bus {
    socket: UnixStream,
    serial: u32,
    deadline: Instant,
    /// The last few signals that came while a call waited for its answer.
    heard: VecDeque<Message>,
}

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum CallError {
    /// The other side refused; the text is the name of the error.
    Refused(String),
    Broken(KeyringError),
}

impl From<io::Error> for CallError {
    fn from(error: io::Error) -> CallError {
        CallError::Broken(unreachable(&error))
    }
}

impl Bus {
    /// Connects and authenticates.
    pub(super) fn open(address: &str, wait: Duration) -> Result<Bus, KeyringError> {
        let deadline = Instant::now() + wait;
        let mut last = KeyringError::Unreachable(format!("`{address}` is no address of a bus on this machine"));
        for place in addresses(address) {
            match knock(&place).map_err(|error| unreachable(&error)) {
                Ok(socket) => return Bus { socket, serial: 0, deadline, heard: VecDeque::new() }.greet(),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Sets the time that is left from now on.
    pub(super) fn allow(&mut self, wait: Duration) {
        self.deadline = Instant::now() + wait;
    }

    /// Calls a method and returns the body of the answer.
    pub(super) fn call(&mut self, call: &Call<'_>, body: &[u8]) -> Result<Vec<u8>, CallError> {
        self.serial += 1;
        let serial = self.serial;
        self.write(&wire::write(call, serial, body))?;
        loop {
            let message = self.next()?;
            if message.answers != Some(serial) {
                self.hear(message);
                continue;
            }
            return match message.kind {
                MessageKind::Return => Ok(message.body),
                _ => Err(CallError::Refused(message.error)),
            };
        }
    }

    /// Waits for a signal of an object and returns its body. The signal may have come before the answer to the last
    /// call.
    pub(super) fn signal(&mut self, path: &str, member: &str) -> Result<Vec<u8>, CallError> {
        loop {
            let message = match self.heard.pop_front() {
                Some(heard) => heard,
                None => self.next()?,
            };
            if message.kind == MessageKind::Signal && message.path == path && message.member == member {
                return Ok(message.body);
            }
        }
    }

    fn hear(&mut self, message: Message) {
        if message.kind == MessageKind::Signal {
            if self.heard.len() == MOST_HEARD {
                self.heard.pop_front();
            }
            self.heard.push_back(message);
        }
    }

    fn greet(mut self) -> Result<Bus, KeyringError> {
        const HELLO: Call<'static> = Call {
            to: "org.freedesktop.DBus",
            path: "/org/freedesktop/DBus",
            interface: "org.freedesktop.DBus",
            member: "Hello",
            signature: "",
        };
        let us = rustix::process::geteuid().as_raw().to_string();
        let us = us.bytes().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        self.write(format!("\0AUTH EXTERNAL {us}\r\n").as_bytes()).map_err(|error| unreachable(&error))?;
        let answer = self.line().map_err(|error| unreachable(&error))?;
        if !answer.starts_with(b"OK") {
            return Err(KeyringError::Unreachable("the message bus does not let us in".to_owned()));
        }
        self.write(b"BEGIN\r\n").map_err(|error| unreachable(&error))?;
        match self.call(&HELLO, &[]) {
            Ok(_) => Ok(self),
            Err(CallError::Broken(error)) => Err(error),
            Err(CallError::Refused(name)) => Err(KeyringError::Unreachable(format!("the message bus says {name}"))),
        }
    }

    fn next(&mut self) -> io::Result<Message> {
        let mut fixed = [0; FIXED];
        self.fill(&mut fixed)?;
        let no_message = || io::Error::new(io::ErrorKind::InvalidData, "what the message bus said is no message");
        let mut bytes = fixed.to_vec();
        bytes.resize(wire::length(&fixed).ok_or_else(no_message)?, 0);
        self.fill(bytes.get_mut(FIXED..).unwrap_or_default())?;
        wire::read(&bytes).ok_or_else(no_message)
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") && line.len() < LONGEST_LINE {
            let mut byte = [0];
            self.fill(&mut byte)?;
            line.extend(byte);
        }
        Ok(line)
    }

    fn fill(&mut self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            self.socket.set_read_timeout(Some(self.left()?))?;
            match self.socket.read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => buffer = buffer.get_mut(read..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.socket.set_write_timeout(Some(self.left()?))?;
            match self.socket.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

fn unreachable(error: &io::Error) -> KeyringError {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => KeyringError::Late,
        io::ErrorKind::UnexpectedEof => KeyringError::Unreachable("the message bus hung up".to_owned()),
        _ => KeyringError::Unreachable(format!("the message bus cannot be reached: {error}")),
    }
}

/// The address where a bus listens.
#[derive(Debug, PartialEq, Eq)]
enum BusAddress {
    Path(PathBuf),
    /// An abstract socket name, outside the file system.
    Abstract(Vec<u8>),
}

/// The sockets on this machine that an address names.
fn addresses(address: &str) -> Vec<BusAddress> {
    let places = address.split(';').filter_map(|one| one.strip_prefix("unix:"));
    places
        .filter_map(|pairs| {
            pairs.split(',').find_map(|pair| match pair.split_once('=')? {
                ("path", value) => Some(BusAddress::Path(path(unescape(value)))),
                ("abstract", value) => Some(BusAddress::Abstract(unescape(value))),
                _ => None,
            })
        })
        .collect()
}

fn path(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let code = || {
            let digits: Vec<u8> = rest.clone().take(2).collect();
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()
        };
        match (byte, code()) {
            (b'%', Some(code)) => {
                bytes.push(code);
                rest.nth(1);
            }
            _ => bytes.push(byte),
        }
    }
    bytes
}

/// Connects without waiting: a bus with a full queue counts as one that does not answer.
fn knock(place: &BusAddress) -> io::Result<UnixStream> {
    let address = match place {
        BusAddress::Path(path) => SocketAddrUnix::new(path.as_path())?,
        #[cfg(any(target_os = "linux", target_os = "android"))]
        BusAddress::Abstract(name) => SocketAddrUnix::new_abstract_name(name)?,
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        BusAddress::Abstract(_) => return Err(io::ErrorKind::Unsupported.into()),
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &address)?;
    let socket = UnixStream::from(socket);
    socket.set_nonblocking(false)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    #[test]
    fn an_address_names_places_and_escapes_what_it_must() {
        let path = |text: &str| BusAddress::Path(text.into());
        assert_eq!(addresses("unix:path=/run/user/1/bus"), [path("/run/user/1/bus")]);
        assert_eq!(addresses("unix:guid=1,path=/a%20b%zz"), [path("/a b%zz")]);
        assert_eq!(addresses("tcp:host=x;unix:abstract=/tmp/y,guid=2"), [BusAddress::Abstract(b"/tmp/y".to_vec())]);
        assert_eq!(addresses("autolaunch:"), []);
    }

    #[test]
    fn a_bus_that_is_not_there_is_unreachable() {
        let error = Bus::open("unix:path=/nonexistent/bus", SHORT).unwrap_err();
        assert!(matches!(error, KeyringError::Unreachable(_)), "{error}");
        let error = Bus::open("tcp:host=localhost,port=1", SHORT).unwrap_err();
        assert!(error.to_string().contains("tcp:host"), "{error}");
    }

    #[test]
    fn a_bus_that_says_nothing_is_late_and_one_that_hangs_up_is_unreachable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bus");
        let listener = UnixListener::bind(&path).unwrap();
        let address = format!("unix:path={}", path.display());
        // The listener accepts no connection: the queue takes ours, and no answer comes.
        assert!(matches!(Bus::open(&address, SHORT).unwrap_err(), KeyringError::Late));
        // With a full queue the result is the same, but immediate.
        let mut waiting = Vec::new();
        while let Ok(socket) = knock(&BusAddress::Path(path.clone())) {
            waiting.push(socket);
        }
        assert!(matches!(Bus::open(&address, SHORT).unwrap_err(), KeyringError::Late));
        drop(listener);
        assert!(matches!(Bus::open(&address, SHORT).unwrap_err(), KeyringError::Unreachable(_)));
    }

    #[test]
    fn a_bus_that_talks_without_end_does_not_hold_us() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bus");
        let listener = UnixListener::bind(&path).unwrap();
        let talker = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let _ = socket.write_all(b"OK 1\r\n");
            let mut signal = vec![b'l', 4, 0, 1];
            signal.resize(FIXED, 0);
            while socket.write_all(&signal).is_ok() {}
        });
        let address = format!("unix:path={}", path.display());
        assert!(matches!(Bus::open(&address, SHORT).unwrap_err(), KeyringError::Late));
        talker.join().unwrap();
    }
}
