//! Reading one event: from standard input, which some hosts keep open, or from the command line.

use std::io::{IsTerminal, Read};
use std::time::Duration;

use ollm_protocol::dialect::{OLLM, UnknownEvent};
use ollm_protocol::{Dialect, DialectError, ObjectEnd, Request};
use serde_json::{Value, json};

use crate::error::{Failure, Kind};

/// A larger event is refused.
const LARGEST_EVENT: usize = 64 << 20;

/// How long to wait for an event to begin: what makes it may take its time.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long to wait for the next piece of an event; hosts wait for us no longer than 30 seconds themselves.
const PAUSE: Duration = Duration::from_secs(10);

/// Why there is no event.
#[derive(Debug)]
pub(super) enum Unread {
    /// Nobody sent one.
    Usage(Failure),
    /// It is one we do not know.
    UnknownEvent(UnknownEvent),
    /// It makes no sense.
    Broken(String),
}

impl From<Unread> for Failure {
    fn from(unread: Unread) -> Failure {
        let why = match unread {
            Unread::Usage(failure) => return failure,
            Unread::UnknownEvent(unknown) => return unknown.into(),
            Unread::Broken(why) => why,
        };
        Failure::new(Kind::Configuration, why).hint(
            "an event is {\"event\": NAME, \"data\": {…}}, for instance {\"event\": \"before_tool\", \"data\": {\"tool_name\": \"shell\"}}",
        )
    }
}

/// The event that comes on standard input; `name` is what it is called where it does not say that itself.
pub(super) fn sent(name: Option<&str>, host: &dyn Dialect) -> Result<Request, Unread> {
    if std::io::stdin().is_terminal() {
        let message = "there is no event: pipe one in, or name it as in `ollm hook run session_start`";
        return Err(Unread::Usage(Failure::usage(message)));
    }
    let bytes = received().map_err(Unread::Broken)?;
    let read = match name {
        Some(name) => host.read_event_named(name, &bytes),
        None => host.read_event(&bytes),
    };
    read.map_err(unread)
}

/// The event that stands on the command line.
pub(super) fn given(name: &str, data: Option<&str>) -> Result<Request, Unread> {
    let data: Value = serde_json::from_str(data.unwrap_or("{}"))
        .map_err(|error| Unread::Broken(format!("--data is not valid JSON: {error}")))?;
    OLLM.read_event(json!({"event": name, "data": data}).to_string().as_bytes()).map_err(unread)
}

fn unread(error: DialectError) -> Unread {
    match error {
        DialectError::UnknownEvent(unknown) => Unread::UnknownEvent(unknown),
        other => Unread::Broken(other.to_string()),
    }
}

/// Reads until the event's JSON ends, not until the stream does: some hosts keep it open.
fn received() -> Result<Vec<u8>, String> {
    let mut stdin = std::io::stdin().lock();
    let mut bytes: Vec<u8> = Vec::with_capacity(16 << 10);
    let mut chunk = [0; 16 << 10];
    let mut end = ObjectEnd::default();
    loop {
        await_more(&stdin, if bytes.is_empty() { PATIENCE } else { PAUSE })?;
        let count = match stdin.read(&mut chunk) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(format!("standard input cannot be read: {error}")),
        };
        let read = chunk.get(..count).unwrap_or_default();
        let before = bytes.len();
        bytes.extend_from_slice(read);
        if let Some(at) = end.push(read).map_err(|error| format!("the event is not valid JSON: {error}"))? {
            bytes.truncate(before + at);
            return Ok(bytes);
        }
        if count == 0 {
            let empty = bytes.iter().all(u8::is_ascii_whitespace);
            return if empty { Err("standard input holds no event".to_owned()) } else { Ok(bytes) };
        }
        if bytes.len() > LARGEST_EVENT {
            return Err(format!("the event is larger than {LARGEST_EVENT} bytes"));
        }
    }
}

/// A host that sends half an event and stalls must not keep us for ever.
#[cfg(unix)]
fn await_more(stdin: &std::io::StdinLock<'_>, patience: Duration) -> Result<(), String> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let limit = Timespec::try_from(patience).ok();
    match poll(&mut [PollFd::new(stdin, PollFlags::IN)], limit.as_ref()) {
        Ok(0) => Err(format!("the rest of the event did not arrive within {patience:?}")),
        // Whatever is wrong with the stream, reading it tells.
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the twin can fail")]
fn await_more(_stdin: &std::io::StdinLock<'_>, _patience: Duration) -> Result<(), String> {
    Ok(())
}
