//! Hook files in the form `{"hooks": {EVENT: [ENTRY, …]}}`, also without the wrapper.

use ollm_protocol::dialect;

use super::{Intake, Spotted};
use crate::entry;
use crate::file::Finding;
use crate::node::{Cursor, Node, Part};
use crate::problem::Severity;

/// Keys that may stand beside `hooks`.
const BESIDE: &[&str] = &["hooks", "$schema", "name", "version", "description"];

/// Takes in every hook of a file.
pub(crate) fn take(root: &Cursor<'_>, intake: &mut Intake<'_>) {
    let is_map = matches!(root.node, Node::Map(_));
    if is_map && root.get("hooks").is_none() && root.entries().next().is_some() {
        if root.entries().all(|(key, _)| dialect::event_named(key).is_ok()) {
            return take_events(root, intake);
        }
        return not_hooks(root, intake);
    }
    if !is_map {
        return not_hooks(root, intake);
    }
    for (key, value) in root.entries() {
        match key {
            "hooks" if matches!(value.node, Node::Map(_)) => take_events(&value, intake),
            "hooks" => not_hooks(&value, intake),
            key if BESIDE.contains(&key) => {}
            key => intake.unknown_key(key, &value, BESIDE),
        }
    }
}

fn take_events(events: &Cursor<'_>, intake: &mut Intake<'_>) {
    for (event, list) in events.entries() {
        if !intake.is_event(event, &list) || !intake.is_list(&format!("`{event}`"), &list) {
            continue;
        }
        for entry in list.items() {
            take_entry(event, &entry, intake);
        }
    }
}

fn take_entry(event: &str, entry: &Cursor<'_>, intake: &mut Intake<'_>) {
    let Some(mut draft) = entry::read(entry, intake.context, &mut intake.findings) else {
        return;
    };
    if let Some(action) = draft.program(entry, intake.context, &mut intake.findings) {
        intake.take(draft, action, Spotted { event, group: None, entry });
    }
}

fn not_hooks(at: &Cursor<'_>, intake: &mut Intake<'_>) {
    let other_form = ["eventType", "when", "then", "action"].iter().any(|key| at.get(key).is_some());
    let stranger = at.entries().map(|(key, _)| key).find(|key| dialect::event_named(key).is_err());
    let mixed = at.entries().any(|(key, _)| dialect::event_named(key).is_ok());
    let message = match at.node {
        Node::Map(_) if mixed => {
            let key: String = stranger.unwrap_or_default().chars().take(80).collect();
            format!("it has no `hooks`, and `{key}` is not the name of an event; nothing is loaded")
        }
        Node::Map(_) if other_form => {
            "this form of hook file is not supported by this version; nothing is loaded".to_owned()
        }
        Node::Map(_) => "it has no `hooks`; nothing is loaded".to_owned(),
        node => format!("a map of events to hooks is needed, not {}; nothing is loaded", node.kind()),
    };
    intake.findings.push(Finding {
        severity: Severity::Error,
        spot: Some(at.spot(Part::Value)),
        value: Some(at.node.shown()),
        message,
        help: Some("write {\"hooks\": {\"before_tool\": [{\"name\": …, \"command\": …}]}}".to_owned()),
    });
}
