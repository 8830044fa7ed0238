//! Who sends events on this machine, and for which events hooks wait in vain.
//!
//! Our own agent sends most events by itself. The others come from a repository's hook, from whoever watches a project, or
//! from a connected agent.

use std::collections::BTreeSet;

use ollm_protocol::{EventKind, Hook, Remedy, Source};

use crate::app_context::AppContext;
use crate::connect::{self, AgentStatus};
use crate::{git_hook, watch};

/// The events that hooks wait for although nothing on this machine sends them, in a line each with the way out.
pub fn unsent_events<'h>(hooks: impl Iterator<Item = &'h Hook>, context: &AppContext) -> Vec<String> {
    let hooks = hooks.filter(|hook| hook.spec.source != Source::Builtin);
    let awaited: BTreeSet<EventKind> = hooks.flat_map(|hook| hook.events.iter().copied()).collect();
    let mut lines = Vec::new();
    if awaited.contains(&EventKind::GitCommit) {
        lines.extend(git_hook::why_unsent(context));
    }
    if awaited.iter().any(|kind| kind.is_file()) {
        lines.extend(unwatched(context));
    }
    let foreign: Vec<EventKind> = awaited.into_iter().filter(|kind| is_foreign(*kind)).collect();
    if !foreign.is_empty() {
        let agents = connect::agents(context);
        lines.extend(foreign.into_iter().filter_map(|kind| unconnected(kind, &agents, context)));
    }
    lines
}

/// Whether only other agents send an event.
fn is_foreign(kind: EventKind) -> bool {
    matches!(kind, EventKind::SubagentStart | EventKind::SubagentStop)
}

fn unwatched(context: &AppContext) -> Option<String> {
    if watch::is_watched(context) {
        return None;
    }
    let way_out = context.tell(&Remedy::WatchFiles);
    Some(format!("nobody watches this project: hooks hear only of files that an agent's tools change; {way_out}"))
}

fn unconnected(kind: EventKind, agents: &[AgentStatus], context: &AppContext) -> Option<String> {
    let senders = || agents.iter().filter(|status| status.agent.events.iter().any(|event| event.kind == kind));
    if senders().any(|status| !status.askers.is_empty()) {
        return None;
    }
    let titles = |statuses: &mut dyn Iterator<Item = &AgentStatus>| -> Vec<&'static str> {
        statuses.map(|status| status.agent.title).collect()
    };
    let installed = titles(&mut senders().filter(|status| status.program.is_some()));
    let why = if installed.is_empty() {
        format!("none of the agents that do is installed ({})", titles(&mut senders()).join(", "))
    } else {
        format!("{} would, and is not connected", installed.join(" or "))
    };
    let way_out = context.tell(&Remedy::ListAgents);
    Some(format!("nothing sends `{}` on this machine: {why}; {way_out}", kind.name()))
}
