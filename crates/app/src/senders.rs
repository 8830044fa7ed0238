//! Finds out which programs send events on this machine, and which hooks wait for events that nothing sends.
//!
//! Our own agent sends most events itself. A repository's hook or a program that watches a project sends the others.

use std::collections::BTreeSet;

use ollm_protocol::{EventKind, Hook, Remedy, Source};

use crate::app_context::AppContext;
use crate::{git_hook, watch};

/// An event that hooks wait for although nothing sends it.
pub(crate) struct UnsentEvent {
    /// The warning for the person, with the remedy.
    pub(crate) line: String,
    /// Whether the event never comes; otherwise it comes only sometimes.
    pub(crate) never: bool,
}

/// The events that hooks wait for although nothing on this machine sends them. One line each, with the remedy.
pub fn unsent_events<'h>(hooks: impl Iterator<Item = &'h Hook>, context: &AppContext) -> Vec<String> {
    unsent(hooks, context).into_iter().map(|event| event.line).collect()
}

pub(crate) fn unsent<'h>(hooks: impl Iterator<Item = &'h Hook>, context: &AppContext) -> Vec<UnsentEvent> {
    let hooks = hooks.filter(|hook| hook.spec.source != Source::Builtin);
    let awaited: BTreeSet<EventKind> = hooks.flat_map(|hook| hook.events.iter().copied()).collect();
    let mut found = Vec::new();
    if awaited.contains(&EventKind::GitCommit) {
        found.extend(git_hook::why_unsent(context).map(|line| UnsentEvent { line, never: true }));
    }
    if awaited.iter().any(|kind| kind.is_file()) {
        found.extend(unwatched(context).map(|line| UnsentEvent { line, never: false }));
    }
    found
}

fn unwatched(context: &AppContext) -> Option<String> {
    if watch::is_watched(context) {
        return None;
    }
    let way_out = context.tell(&Remedy::WatchFiles);
    Some(format!("this project is not watched: hooks hear only of files that an agent's tools change; {way_out}"))
}
