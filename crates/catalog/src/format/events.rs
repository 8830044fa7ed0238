//! Hook files in the form `{"hooks": {EVENT: [ENTRY, …]}}`, also without the wrapper.

use ollm_protocol::Code;

use super::{EntryLocation, Form, HookCollector, RejectedHook};
use crate::entry;
use crate::file::Finding;
use crate::node::{Cursor, Node, Part};
use crate::problem::Severity;

/// Keys that may stand beside `hooks`.
pub(crate) const BESIDE: &[&str] = &["hooks", "$schema", "name", "version", "description"];

/// Takes in every hook of a file.
pub(crate) fn take(root: &Cursor<'_>, intake: &mut HookCollector<'_>) {
    if root.get("hooks").is_none() {
        return take_events(root, intake);
    }
    for (key, value) in root.entries() {
        match key {
            "hooks" if matches!(value.node, Node::Map(_)) => take_events(&value, intake),
            "hooks" => not_events(&value, intake),
            key if BESIDE.contains(&key) => {}
            key => intake.unknown_key(key, &value, BESIDE),
        }
    }
}

/// Takes in the hooks of a map of events.
pub(crate) fn take_events(events: &Cursor<'_>, intake: &mut HookCollector<'_>) {
    for (event, list) in events.entries() {
        let before = intake.findings.len();
        if !intake.is_event(event, &list) {
            continue;
        }
        if !intake.is_list(&format!("`{event}`"), &list) {
            intake.fail_closed_placeholder(
                before,
                RejectedHook::default(),
                EntryLocation { event, group: None, entry: &list },
            );
            continue;
        }
        for entry in list.items() {
            take_entry(event, &entry, intake);
        }
    }
}

/// Takes in one entry of an event.
pub(super) fn take_entry(event: &str, entry: &Cursor<'_>, intake: &mut HookCollector<'_>) {
    let (before, at) = (intake.findings.len(), EntryLocation { event, group: None, entry });
    if let Err(untaken) = try_entry(at, intake) {
        intake.reject(before, untaken, at);
    }
}

fn try_entry(at: EntryLocation<'_>, intake: &mut HookCollector<'_>) -> Result<(), RejectedHook> {
    let draft = entry::read(at.entry, intake.context, &mut intake.findings, entry::no_own);
    let mut draft = draft.ok_or_else(RejectedHook::default)?;
    let action = at.entry.get("action");
    let action = draft.act(action.as_ref().unwrap_or(at.entry), intake.context, &mut intake.findings);
    intake.take(draft, action.ok_or_else(RejectedHook::default)?, at)
}

fn not_events(at: &Cursor<'_>, intake: &mut HookCollector<'_>) {
    intake.findings.push(Finding {
        code: Code::WrongForm,
        severity: Severity::Error,
        spot: Some(at.spot(Part::Value)),
        value: Some(at.node.shown()),
        message: format!("a map of events to hooks is needed, not {}; nothing is loaded", at.node.kind()),
        help: Some(Form::Events.example().to_owned()),
        remedy: None,
    });
}
