//! Reading one event: from standard input, which some hosts keep open, or from the command line.

use std::io::{BufRead, IsTerminal};
use std::time::{Duration, Instant};

use ollm_protocol::dialect::agents::sender_of;
use ollm_protocol::dialect::{AgentDialect, OLLM, UnknownEvent, agent_named};
use ollm_protocol::event::Power;
use ollm_protocol::{Code, Dialect, DialectError, EventKind, ObjectEnd, Request};
use serde_json::json;

use crate::error::Failure;
use crate::problem::json_input;

/// A larger event is refused.
const LARGEST_EVENT: usize = 64 << 20;

/// How long to wait for an event to begin: what makes it may take its time.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long to wait for the next piece of an event; hosts wait for us no longer than 30 seconds themselves.
const PAUSE: Duration = Duration::from_secs(10);

/// What an event looks like.
const EXAMPLE: &str = "an event is {\"event\": NAME, \"data\": {…}}, for instance {\"event\": \"before_tool\", \"data\": {\"tool_name\": \"shell\"}}";

/// The reason why there is no event.
#[derive(Debug)]
pub(super) enum Unread {
    /// No event was sent.
    Usage(Failure),
    /// The event is unknown.
    UnknownEvent(UnknownEvent),
    /// The event cannot be understood.
    Broken(String),
    /// Another agent sent it than the one that the command names.
    Misdirected(Box<Misdirected>),
}

/// An event of another agent than the one that was named.
#[derive(Debug)]
pub(super) struct Misdirected {
    /// The agent that sent it.
    pub(super) sender: &'static AgentDialect,
    /// The event, as that agent means it.
    pub(super) request: Request,
    /// What a person should know.
    pub(super) why: String,
}

impl From<Unread> for Failure {
    fn from(unread: Unread) -> Failure {
        let why = match unread {
            Unread::Usage(failure) => return failure,
            Unread::UnknownEvent(unknown) => return unknown.into(),
            Unread::Broken(why) => why,
            Unread::Misdirected(misdirected) => misdirected.why,
        };
        Failure::new(Code::InvalidEvent, why).hint(EXAMPLE)
    }
}

/// The event on standard input. `name` is its name if the event itself gives none. After `deadline` its host goes on
/// without us.
pub(super) fn sent(name: Option<&str>, host: &dyn Dialect, deadline: Option<Instant>) -> Result<Request, Unread> {
    if std::io::stdin().is_terminal() {
        let message = "there is no event: pipe one in, or name it as in `ollm hook run session_start`";
        return Err(Unread::Usage(Failure::usage(message)));
    }
    let (bytes, more) = received(deadline).map_err(|missing| Unread::Broken(missing.why))?;
    // What an agent sends at once is one event; if there were two, the second would not be judged.
    if !more.is_empty() && agent_named(host.name()).is_some() {
        let why = "something follows the event; send one JSON object, and nothing after it";
        return Err(Unread::Broken(why.to_owned()));
    }
    let read = match name {
        Some(name) => host.read_event_named(name, &bytes),
        None => host.read_event(&bytes),
    };
    let agent = agent_named(host.name());
    let lacking = read.as_ref().ok().and_then(|request| agent?.lacks(request));
    // An event that fits the announced name is taken for that, because several agents run each other's hooks.
    let is_known = read.as_ref().is_ok_and(|request| agent.is_none_or(|agent| agent.knows(request)));
    if (!is_known || lacking.is_some())
        && let Some(misdirected) = misdirected(host, &bytes, name)
    {
        return Err(Unread::Misdirected(Box::new(misdirected)));
    }
    match lacking {
        Some(field) => Err(Unread::Broken(format!("it does not say `{field}`, so the call cannot be judged"))),
        None => read.map_err(unread),
    }
}

/// An event that another agent sent than the one that was named. In our own dialects, an event that cannot be read may
/// be an agent's, if that could stop something there.
fn misdirected(host: &dyn Dialect, bytes: &[u8], name: Option<&str>) -> Option<Misdirected> {
    let stops = |kind: EventKind| kind != EventKind::Custom && kind.row().power == Power::Stops;
    let (title, (sender, request)) = match agent_named(host.name()) {
        Some(agent) => (agent.title, agent.actual_sender(bytes, name)?),
        None => (host.name(), sender_of(bytes).filter(|(_, request)| stops(request.event.kind))?),
    };
    // Without `--from`, the line names no agent that could be wrong.
    let line = match agent_named(host.name()) {
        Some(agent) => format!("says `--from {}`", agent.name),
        None => format!("needs `--from {}`", sender.name),
    };
    let why = format!(
        "{title} has no event `{}`, which is one of {}; the line that asks {line}, and `ollm connect AGENT` writes the right one",
        request.spelling.event, sender.title,
    );
    Some(Misdirected { sender, request, why })
}

/// The event that stands on the command line.
pub(super) fn given(name: &str, data: Option<&str>) -> Result<Request, Unread> {
    let data = json_input("--data", data.unwrap_or("{}"), Code::InvalidEvent)
        .map_err(|failure| Unread::Usage(failure.hint(EXAMPLE)))?;
    OLLM.read_event(json!({"event": name, "data": data}).to_string().as_bytes()).map_err(unread)
}

fn unread(error: DialectError) -> Unread {
    match error {
        DialectError::UnknownEvent(unknown) => Unread::UnknownEvent(unknown),
        other => Unread::Broken(other.to_string()),
    }
}

/// The content of standard input, or the reason why it is incomplete; `None` if it is empty.
pub(super) fn received_or_nothing(deadline: Option<Instant>) -> Option<Result<Vec<u8>, String>> {
    match received(deadline) {
        Ok((bytes, _)) => Some(Ok(bytes)),
        Err(Unreceived { is_empty: true, .. }) => None,
        Err(Unreceived { why, .. }) => Some(Err(why)),
    }
}

/// Why an event did not arrive.
struct Unreceived {
    why: String,
    /// Whether the stream ended before anything came.
    is_empty: bool,
}

impl From<String> for Unreceived {
    fn from(why: String) -> Unreceived {
        Unreceived { why, is_empty: false }
    }
}

/// Reads until the event's JSON ends, not until the stream does: some hosts keep it open. What came with it is beside it.
fn received(mut deadline: Option<Instant>) -> Result<(Vec<u8>, Vec<u8>), Unreceived> {
    let mut stdin = std::io::stdin().lock();
    let mut bytes: Vec<u8> = Vec::with_capacity(16 << 10);
    let mut end = ObjectEnd::default();
    loop {
        let patience = if bytes.is_empty() { PATIENCE } else { PAUSE };
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if !has_more(&stdin, left.map_or(patience, |left| left.min(patience))) {
            let what = if bytes.is_empty() { "no event" } else { "only a part of the event" };
            let why = match left.filter(|left| *left < patience) {
                Some(_) => format!("{what} had arrived when the time was up that its host waits"),
                None => format!("{what} arrived within {patience:?}"),
            };
            return Err(why.into());
        }
        // A buffer of our own would have to be filled with zeros first.
        let read = match stdin.fill_buf() {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(format!("standard input cannot be read: {error}").into()),
        };
        let (before, count) = (bytes.len(), read.len());
        // An event in tiny pieces must not take for ever either.
        deadline = deadline.or_else(|| Some(Instant::now() + PATIENCE));
        bytes.extend_from_slice(read);
        let ended = end.push(read).map_err(|error| format!("the event cannot be read: {error}"))?;
        stdin.consume(count);
        if let Some(at) = ended {
            let more = bytes.split_off(before + at);
            return Ok((bytes, more.trim_ascii().to_vec()));
        }
        if count == 0 {
            let empty = bytes.iter().all(u8::is_ascii_whitespace);
            let why = "standard input holds no event".to_owned();
            return if empty { Err(Unreceived { why, is_empty: true }) } else { Ok((bytes, Vec::new())) };
        }
        if bytes.len() > LARGEST_EVENT {
            return Err(format!("the event is larger than {LARGEST_EVENT} bytes").into());
        }
    }
}

/// Waits for more of an event. A host that sends half of one and stalls must not block us for ever.
#[cfg(unix)]
fn has_more(stdin: &std::io::StdinLock<'_>, patience: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let limit = Timespec::try_from(patience).ok();
    // Reading finds out what is wrong with the stream.
    !matches!(poll(&mut [PollFd::new(stdin, PollFlags::IN)], limit.as_ref()), Ok(0))
}

#[cfg(not(unix))]
fn has_more(_stdin: &std::io::StdinLock<'_>, _patience: Duration) -> bool {
    true
}
