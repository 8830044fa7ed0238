//! `ollm hook run`: one event in, one verdict out. Other agents start this for every event.

use std::ffi::OsString;
use std::io::{IsTerminal, Read};
use std::time::Duration;

use ollm_catalog::Positions;
use ollm_engine::{Outcome, Reason};
use ollm_protocol::dialect::{self, OLLM};
use ollm_protocol::{Dialect, ObjectEnd, Request};
use serde_json::{Value, json};

use crate::app::App;
use crate::error::{BLOCKED, Failure, Kind, OK};
use crate::output::Output;
use crate::world::World;

/// A larger event is refused.
const LARGEST_EVENT: usize = 64 << 20;

/// How long to wait for an event to begin: what makes it may take its time.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long to wait for the next piece of an event; hosts wait for us no longer than 30 seconds themselves.
const PAUSE: Duration = Duration::from_secs(10);

/// What was asked for.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    event: Option<String>,
    data: Option<String>,
    from: Option<String>,
    explain: bool,
}

impl Arguments {
    pub(crate) fn parse(words: &[OsString]) -> Result<Arguments, Failure> {
        use lexopt::prelude::{Long, Value, ValueExt};
        let mut parser = lexopt::Parser::from_args(words);
        let mut arguments = Arguments::default();
        while let Some(word) = parser.next()? {
            match word {
                Long("data") => arguments.data = Some(parser.value()?.string()?),
                Long("from") => arguments.from = Some(parser.value()?.string()?),
                Long("explain") => arguments.explain = true,
                Value(event) if arguments.event.is_none() => arguments.event = Some(event.string()?),
                other => return Err(other.unexpected().into()),
            }
        }
        if arguments.data.is_some() && arguments.event.is_none() {
            return Err(Failure::usage(
                "--data needs the EVENT it belongs to, as in `ollm hook run before_tool --data '{}'`",
            ));
        }
        if arguments.from.is_some() && arguments.event.is_some() {
            return Err(Failure::usage("--from reads the event from standard input; leave EVENT out"));
        }
        Ok(arguments)
    }
}

pub(crate) fn run(arguments: &Arguments, world: &World, output: &mut Output) -> Result<u8, Failure> {
    let host = arguments.from.as_deref().map(host).transpose()?;
    if host.is_some() {
        output.silence();
    }
    let request = request(arguments, host.unwrap_or(OLLM))?;
    // What double-forks away from a hook comes back to us, and is ended with it; where that cannot be had, it is reported
    // as leaky at least.
    let _ = ollm_process::become_subreaper();
    let app = App::load(world, Positions::OnDemand)?;
    world.tell_notices(output);
    app.tell_problems(output);
    // Whoever asks us to end from now on waits until the hooks and what they left have ended.
    let children = app.engine.children();
    children.hold_signals();
    let outcome = if arguments.explain {
        app.engine.dispatch_explained(&request.event)
    } else {
        app.engine.dispatch(&request.event)
    };
    children.reap_strays();
    children.release_signals();
    tell(&outcome, output);
    let code = answer(&outcome, host, &request, output);
    // The guard of our children ends by itself when we do; taking everything down in order would only hold up the host.
    std::mem::forget(app);
    code
}

fn answer(
    outcome: &Outcome,
    host: Option<&dyn Dialect>,
    request: &Request,
    output: &mut Output,
) -> Result<u8, Failure> {
    if let Some(host) = host {
        let reply = host.write_verdict(request, &outcome.verdict);
        return output.bytes(&reply.stdout, &reply.stderr, reply.exit);
    }
    output.json(&super::to_json(outcome))?;
    Ok(if outcome.continues() { OK } else { BLOCKED })
}

fn host(name: &str) -> Result<&'static dyn Dialect, Failure> {
    dialect::by_name(name).ok_or_else(|| {
        let known: Vec<&str> = dialect::DIALECTS.iter().map(|dialect| dialect.name()).collect();
        Failure::usage(format!("--from {name}: there is no such dialect"))
            .hint(format!("known are {}", known.join(", ")))
    })
}

fn request(arguments: &Arguments, host: &dyn Dialect) -> Result<Request, Failure> {
    let unreadable = |why: String| {
        let failure = Failure::new(Kind::Configuration, why);
        if arguments.from.is_some() {
            return failure.hint(format!("it must have the form that `{}` hooks are sent", host.name()));
        }
        failure
            .hint("an event is {\"event\": NAME, \"data\": {…}}, for instance {\"event\": \"before_tool\", \"data\": {\"tool_name\": \"shell\"}}")
    };
    if arguments.event.is_none() && std::io::stdin().is_terminal() {
        return Err(Failure::usage("there is no event: pipe one in, or name it as in `ollm hook run session_start`"));
    }
    let bytes = match &arguments.event {
        Some(event) => given(event, arguments.data.as_deref()).map_err(unreadable)?,
        None => received().map_err(unreadable)?,
    };
    host.read_event(&bytes).map_err(|error| unreadable(error.to_string()))
}

fn given(event: &str, data: Option<&str>) -> Result<Vec<u8>, String> {
    let data: Value =
        serde_json::from_str(data.unwrap_or("{}")).map_err(|error| format!("--data is not valid JSON: {error}"))?;
    Ok(json!({"event": event, "data": data}).to_string().into_bytes())
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

/// What a person should know about the run, one line each.
fn tell(outcome: &Outcome, output: &mut Output) {
    for skip in &outcome.skipped {
        if matches!(skip.reason, Reason::Untrusted | Reason::Modified | Reason::Unsafe | Reason::Missing) {
            let (name, source) = (&skip.hook.spec.name, skip.hook.spec.source.name());
            output.tell(&format!("{source} hook `{name}` did not run: {}", skip.detail));
        }
    }
    for report in &outcome.reports {
        if let Some(error) = &report.error {
            output.tell(&format!(
                "{} hook `{}` failed: {error}",
                report.hook.spec.source.name(),
                report.hook.spec.name
            ));
        }
    }
}
