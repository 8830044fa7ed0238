//! Hook files in the form `{"hooks": {EVENT: [ENTRY, …]}}`, also without the wrapper.

use super::{Form, Intake, Spotted};
use crate::entry;
use crate::file::Finding;
use crate::node::{Cursor, Node, Part};
use crate::problem::Severity;

/// Keys that may stand beside `hooks`.
const BESIDE: &[&str] = &["hooks", "$schema", "name", "version", "description"];

/// Takes in every hook of a file.
pub(crate) fn take(root: &Cursor<'_>, intake: &mut Intake<'_>) {
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
pub(crate) fn take_events(events: &Cursor<'_>, intake: &mut Intake<'_>) {
    for (event, list) in events.entries() {
        if !intake.is_event(event, &list) || !intake.is_list(&format!("`{event}`"), &list) {
            continue;
        }
        let fits = intake.context.moment.is_none_or(|moment| moment.fits_event(event));
        for entry in list.items() {
            if !intake.is_beside_the_point(event, fits, &entry) {
                take_entry(event, &entry, intake);
            }
        }
    }
}

fn take_entry(event: &str, entry: &Cursor<'_>, intake: &mut Intake<'_>) {
    let Some(mut draft) = entry::read(entry, intake.context, &mut intake.findings, entry::no_own) else {
        return;
    };
    let action = entry.get("action");
    if let Some(action) = draft.act(action.as_ref().unwrap_or(entry), intake.context, &mut intake.findings) {
        intake.take(draft, action, Spotted { event, group: None, entry });
    }
}

fn not_events(at: &Cursor<'_>, intake: &mut Intake<'_>) {
    intake.findings.push(Finding {
        severity: Severity::Error,
        spot: Some(at.spot(Part::Value)),
        value: Some(at.node.shown()),
        message: format!("a map of events to hooks is needed, not {}; nothing is loaded", at.node.kind()),
        help: Some(Form::Events.example().to_owned()),
    });
}
