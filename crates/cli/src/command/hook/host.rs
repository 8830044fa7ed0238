//! The answer to another agent: one event in its form, and in every case a verdict in its form.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::time::Instant;

use ollm_app::AppContext;
use ollm_app::dispatch::agent::{
    AgentQuestion, ends, judged, misdirected, named, nameless, not_judged, without_folder,
};
use ollm_protocol::dialect::agents::sender_of;
use ollm_protocol::dialect::{AGENT, agent_named, by_name};
use ollm_protocol::{Dialect, Request, Verdict};

use super::event::{self, Unread};
use crate::error::Failure;
use crate::output::Output;

/// Answers an agent.
pub(super) fn answer(
    host: &'static dyn Dialect,
    request: Result<Request, Unread>,
    context: Result<&AppContext, Failure>,
    named_event: Option<&str>,
    asked: &AgentQuestion<'_>,
    output: &mut Output,
) -> Result<u8, Failure> {
    output.silence();
    let (host, request, verdict) = match (request, context) {
        (Ok(request), Ok(context)) => {
            let verdict = judged(host, &request, context, asked, output);
            (host, request, verdict)
        }
        (Ok(request), Err(failure)) => {
            let verdict = without_folder(&request.event, &failure.message, output).verdict;
            (host, request, verdict)
        }
        (Err(Unread::Usage(failure)), _) => return Err(failure),
        // A newer host may send events that we do not know; no hook can be for them.
        (Err(Unread::UnknownEvent(_)), _) => (host, nameless(), Verdict::default()),
        (Err(Unread::Broken(why)), _) => {
            let request = named(named_event, host);
            let verdict = not_judged(&request.event, &why, output);
            (host, request, verdict)
        }
        (Err(Unread::Misdirected(found)), _) => misdirected(found.sender, found.request, &found.why, output),
    };
    let reply = host.write_verdict(&request, &verdict);
    output.reply(&reply)
}

/// Answers an agent whose command line is wrong, in its form, because every agent goes on when a hook merely fails.
/// Without an event or a named agent, the failure is returned.
pub(crate) fn misused(words: &[OsString], failure: Failure, output: &mut Output) -> Result<u8, Failure> {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let Some(from) = from(&words).filter(|_| !std::io::stdin().is_terminal()) else { return Err(failure) };
    let agent = agent_named(from);
    let is_event = |word: &&str| agent.is_some_and(|agent| agent.events.iter().any(|event| event.name == *word));
    let event = words.iter().copied().find(is_event);
    let patience = agent.and_then(|agent| agent.patience_at(event));
    let due = patience.map(|patience| ends(patience, Instant::now()));
    let Some(received) = event::received_or_nothing(due) else { return Err(failure) };
    output.silence();
    let why = format!("the line that asks makes no sense: {}", failure.message);
    let (host, request, verdict) = match by_name(from) {
        Some(host) => {
            let read = received.ok().and_then(|bytes| match event {
                Some(event) => host.read_event_named(event, &bytes).ok(),
                None => host.read_event(&bytes).ok(),
            });
            let request = read.unwrap_or_else(|| named(event, host));
            let verdict = not_judged(&request.event, &why, output);
            (host, request, verdict)
        }
        None => match received.ok().and_then(|bytes| sender_of(&bytes)) {
            Some((sender, request)) => misdirected(sender, request, &why, output),
            None => (AGENT, nameless(), not_judged(&nameless().event, &why, output)),
        },
    };
    let reply = host.write_verdict(&request, &verdict);
    output.reply(&reply)
}

/// The agent that a call of `hook run` names.
fn from<'w>(words: &[&'w str]) -> Option<&'w str> {
    let hook = words.iter().position(|word| *word == "hook")?;
    let mut words = words.iter().skip(hook + 1).filter(|word| !matches!(**word, "-v" | "--verbose"));
    words.next().filter(|word| **word == "run")?;
    let words: Vec<&str> = words.copied().collect();
    let value = |at: usize, word: &'w str| match word.split_once('=') {
        Some((option, name)) => (option, name),
        None => (word, words.get(at + 1).copied().unwrap_or_default()),
    };
    let mut options =
        words.iter().enumerate().filter(|(_, word)| word.starts_with("--")).map(|(at, word)| value(at, word));
    // The option may be misspelled, but an agent's name after it still counts.
    options.find(|(option, name)| *option == "--from" || agent_named(name).is_some()).map(|(_, name)| name)
}
