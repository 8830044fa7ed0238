//! Who sends events on this machine, and for which events hooks wait in vain.
//!
//! Our own agent sends most events by itself. The others come from a repository's hook, or from whoever watches a project.

use std::collections::BTreeSet;

use ollm_protocol::{EventKind, Hook, Remedy, Source};

use crate::app_context::AppContext;
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
    lines
}

fn unwatched(context: &AppContext) -> Option<String> {
    if watch::is_watched(context) {
        return None;
    }
    let way_out = context.tell(&Remedy::WatchFiles);
    Some(format!("nobody watches this project: hooks hear only of files that an agent's tools change; {way_out}"))
}
