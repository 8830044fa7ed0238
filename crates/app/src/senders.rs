//! Who sends events on this machine, and for which events hooks wait in vain.
//!
//! Our own agent sends most events by itself. The others come from a repository's hook, or from whoever watches a project.

use std::collections::BTreeSet;

use ollm_protocol::{EventKind, Hook, Remedy, Source};

use crate::app_context::AppContext;
use crate::{git_hook, watch};

/// An event that hooks wait for in vain.
pub(crate) struct Unsent {
    /// What a person should know, with the way out.
    pub(crate) line: String,
    /// Whether it never comes; otherwise it comes only sometimes.
    pub(crate) never: bool,
}

/// The events that hooks wait for although nothing on this machine sends them, in a line each with the way out.
pub fn unsent_events<'h>(hooks: impl Iterator<Item = &'h Hook>, context: &AppContext) -> Vec<String> {
    unsent(hooks, context).into_iter().map(|event| event.line).collect()
}

pub(crate) fn unsent<'h>(hooks: impl Iterator<Item = &'h Hook>, context: &AppContext) -> Vec<Unsent> {
    let hooks = hooks.filter(|hook| hook.spec.source != Source::Builtin);
    let awaited: BTreeSet<EventKind> = hooks.flat_map(|hook| hook.events.iter().copied()).collect();
    let mut found = Vec::new();
    if awaited.contains(&EventKind::GitCommit) {
        found.extend(git_hook::why_unsent(context).map(|line| Unsent { line, never: true }));
    }
    if awaited.iter().any(|kind| kind.is_file()) {
        found.extend(unwatched(context).map(|line| Unsent { line, never: false }));
    }
    found
}

fn unwatched(context: &AppContext) -> Option<String> {
    if watch::is_watched(context) {
        return None;
    }
    let way_out = context.tell(&Remedy::WatchFiles);
    Some(format!("nobody watches this project: hooks hear only of files that an agent's tools change; {way_out}"))
}
