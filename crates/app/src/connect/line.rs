//! The shell line by which an agent asks us.

use std::path::Path;

use ollm_protocol::dialect::AgentDialect;
use ollm_protocol::dialect::agents::{AgentEvent, Way};
use ollm_protocol::{Dialect, Event, EventKind, Reply, Request, Verdict};
use ollm_shell::shell_word;

use super::{Scope, ShellCalls};

/// The program to call, and how the agent's shell calls run.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// Our own program.
    pub program: &'a Path,
    /// How shell calls run.
    pub shell_calls: ShellCalls,
}

/// The message for people who work in a project without our program.
pub(super) const MISSING: &str = "the hooks of this project do not run: ollm is not installed";

/// The shell line by which an agent asks us at an event.
pub fn line(agent: &AgentDialect, scope: Scope, event: &str, caller: &Caller<'_>) -> String {
    let asking = asking(agent, event, caller.shell_calls);
    match scope {
        Scope::User => {
            let program = caller.program.display().to_string();
            format!("{} {asking}", shell_word(&program))
        }
        Scope::Project => format!("{}{asking}", project_start(agent, event)),
    }
}

/// Whether a line of a project's settings has exactly our form. Every other line came with the project, and is not run.
pub(super) fn is_ours(agent: &AgentDialect, line: &str) -> bool {
    let begins = |event: &&str| line.strip_prefix(&project_start(agent, event));
    let arguments = agent.home.events.iter().chain([&""]).find_map(begins);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.= ".contains(letter);
    arguments.is_some_and(|arguments| arguments.starts_with("hook run ") && arguments.chars().all(is_plain))
}

fn project_start(agent: &AgentDialect, event: &str) -> String {
    format!("command -v ollm >/dev/null 2>&1 || {}; ollm ", without_us(agent, event))
}

/// The arguments of our program at an event: the agent, its timeout, and how its shell calls run.
fn asking(agent: &AgentDialect, event: &str, shell_calls: ShellCalls) -> String {
    let is_call = |known: &&AgentEvent| known.kind == EventKind::BeforeTool && known.can.modify.is_possible();
    let mut calls = agent.events.iter().filter(is_call);
    let is_boxed = shell_calls == ShellCalls::InBox && (event.is_empty() || calls.any(|known| known.name == event));
    let boxed = if is_boxed { " --box" } else { "" };
    let within = agent.told_to_wait(event).map(|wait| format!(" --within {}s", wait.as_secs()));
    let event = if event.is_empty() { String::new() } else { format!(" {event}") };
    format!("hook run{event} --from {}{}{boxed}", agent.name, within.unwrap_or_default())
}

/// The part of the line for machines without our program: the agent goes on. At the start of a session, it is told on
/// its visible channel that no hook runs.
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
        // The agent shows the output of a failed hook.
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
