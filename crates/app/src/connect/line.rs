//! The line of shell by which an agent asks us.

use std::path::Path;

use ollm_protocol::dialect::AgentDialect;
use ollm_protocol::dialect::agents::{AgentEvent, Way};
use ollm_protocol::{Dialect, Event, EventKind, Reply, Request, Verdict};
use ollm_shell::shell_word;

use super::{Scope, ShellCalls};

/// Who is asked, and what becomes of the agent's shell calls.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// Our own program.
    pub program: &'a Path,
    /// What becomes of shell calls.
    pub shell_calls: ShellCalls,
}

/// What people are told who work in a project without us.
const MISSING: &str = "the hooks of this project do not run: ollm is not installed";

/// The line of shell by which an agent asks us at an event.
pub fn line(agent: &AgentDialect, scope: Scope, event: &str, caller: &Caller<'_>) -> String {
    let asking = asking(agent, event, caller.shell_calls);
    match scope {
        Scope::User => {
            let program = caller.program.display().to_string();
            format!("{} {asking}", shell_word(&program))
        }
        Scope::Project => {
            format!("command -v ollm >/dev/null 2>&1 || {}; ollm {asking}", without_us(agent, event))
        }
    }
}

/// What we are told at an event: for whom it is, how long that agent waits, and what becomes of its shell calls.
fn asking(agent: &AgentDialect, event: &str, shell_calls: ShellCalls) -> String {
    let is_call = |known: &&AgentEvent| known.kind == EventKind::BeforeTool && known.can.modify.is_possible();
    let mut calls = agent.events.iter().filter(is_call);
    let is_boxed = shell_calls == ShellCalls::InBox && (event.is_empty() || calls.any(|known| known.name == event));
    let boxed = if is_boxed { " --box" } else { "" };
    let within = agent.told_to_wait(event).map(|wait| format!(" --within {}s", wait.as_secs()));
    let event = if event.is_empty() { String::new() } else { format!(" {event}") };
    format!("hook run{event} --from {}{}{boxed}", agent.name, within.unwrap_or_default())
}

/// What happens at an event where we are not installed: the agent goes on, and when it begins to work it is told why no hook runs,
/// on the channel that it shows.
fn without_us(agent: &AgentDialect, event: &str) -> String {
    let is_asked = |known: &&AgentEvent| agent.home.events.contains(&known.name);
    let begins = |kind: EventKind| agent.events.iter().filter(is_asked).find(|known| known.kind == kind);
    let first = begins(EventKind::SessionStart).or_else(|| begins(EventKind::BeforeAgent));
    let is_named = |first: &&AgentEvent| event.is_empty() || first.name == event;
    let Some(first) = first.filter(is_named) else { return "exit 0".to_owned() };
    let told = |verdict: &Verdict| {
        let mut request = Request::new(Event::unchecked(first.kind, []));
        first.name.clone_into(&mut request.spelling.event);
        agent.write_verdict(&request, verdict)
    };
    let said = match (first.can.message, first.can.context) {
        (Way::Json(_) | Way::Text, _) => told(&Verdict { messages: vec![MISSING.to_owned()], ..Verdict::default() }),
        (_, Way::Json(_)) => told(&Verdict { context: vec![MISSING.to_owned()], ..Verdict::default() }),
        // A hook that failed is shown with its words.
        _ => Reply { exit: 1, ..Reply::default() },
    };
    let answer = String::from_utf8_lossy(&said.stdout).trim_end().to_owned();
    let says = if answer.is_empty() {
        format!("echo {} >&2", shell_word(MISSING))
    } else {
        format!("echo {}", shell_word(&answer))
    };
    format!("{{ {says}; exit {}; }}", said.exit)
}
