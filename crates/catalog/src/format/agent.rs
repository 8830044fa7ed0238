//! Settings files of shell-command agents: `{"hooks": {EVENT: [{"matcher": …, "hooks": [{"command": …}]}]}}`. An entry of type
//! `http` has a `url` in place of the command, and the event is posted there.
//!
//! The file belongs to another tool: everything in it beside `hooks` is left alone.

use ollm_protocol::Code;
use ollm_protocol::hook::key::{HookKey, Unknown};

use super::{EntryLocation, HookCollector, RejectedHook};
use crate::entry::{self, canonical, not_loaded};
use crate::file::Finding;
use crate::node::{Cursor, Node, Part};
use crate::problem::Severity;
use crate::value::{self, ReadValue};

const GROUP: &[&str] = &["matcher", "hooks"];

/// Keys of an entry that have no effect on a shell line. Ignoring them would change what runs, or when.
pub(crate) const MEANINGLESS: &[&str] = &["args", "action", "dialect", "matcher"];

/// Takes in every hook of a file.
pub(crate) fn take(root: &Cursor<'_>, intake: &mut HookCollector<'_>) {
    if !matches!(root.node, Node::Map(_)) {
        let message = format!("settings must be a map, not {}; nothing is loaded", root.node.kind());
        return intake.findings.push(wrong(root, message));
    }
    for (_, events) in root.entries().filter(|(key, value)| *key == "hooks" && !matches!(value.node, Node::Null)) {
        if !matches!(events.node, Node::Map(_)) {
            let message = format!("`hooks` must be a map of events, not {}; nothing is loaded", events.node.kind());
            intake.findings.push(wrong(&events, message));
        }
        take_events(&events, intake);
    }
}

fn take_events(events: &Cursor<'_>, intake: &mut HookCollector<'_>) {
    for (event, groups) in events.entries() {
        if !intake.is_event(event, &groups) || !intake.is_list(&format!("`{event}`"), &groups) {
            continue;
        }
        for group in groups.items() {
            take_group(event, &group, intake);
        }
    }
}

fn take_group(event: &str, group: &Cursor<'_>, intake: &mut HookCollector<'_>) {
    let Some(hooks) = group.get("hooks") else {
        let message = "a group must have a list `hooks`; nothing of it is loaded";
        return intake.findings.push(wrong(group, message.to_owned()));
    };
    let before = intake.findings.len();
    let mut is_sound = true;
    for (key, value) in group.entries().filter(|(key, _)| !GROUP.contains(key)) {
        is_sound &= take_beside(key, &value, intake);
    }
    let matcher = match group.get("matcher").map(|matcher| (matcher, value::plain(matcher.node))) {
        None => None,
        Some((_, ReadValue::Exact(text))) => Some(text),
        Some((matcher, _)) => {
            let message = format!("`matcher` must be text, not {}; the group is not loaded", matcher.node.kind());
            intake.findings.push(wrong(&matcher, message));
            for entry in hooks.items() {
                intake.fail_closed_placeholder(
                    before,
                    RejectedHook::default(),
                    EntryLocation { event, group: Some(group), entry: &entry },
                );
            }
            return;
        }
    };
    if !intake.is_list("`hooks`", &hooks) {
        return intake.fail_closed_placeholder(
            before,
            RejectedHook::default(),
            EntryLocation { event, group: Some(group), entry: &hooks },
        );
    }
    for entry in hooks.items() {
        let at = EntryLocation { event, group: Some(group), entry: &entry };
        if !is_sound {
            intake.fail_closed_placeholder(before, RejectedHook::default(), at);
            continue;
        }
        let before = intake.findings.len();
        if let Err(untaken) = take_entry(matcher.clone(), at, intake) {
            intake.reject(before, untaken, at);
        }
    }
}

/// Reads a key beside the hooks of a group that has no effect; returns whether the hooks can still be loaded. A key
/// that promises a limit or a gate was meant for all of them, and nothing would enforce it.
fn take_beside(key: &str, at: &Cursor<'_>, intake: &mut HookCollector<'_>) -> bool {
    let word = canonical(key);
    let own = HookKey::find(&word).filter(|row| row.unknown == Unknown::Refused);
    let promised = own.or_else(|| HookKey::promised(&word)).filter(|_| !matches!(at.node, Node::Null));
    let Some(row) = promised else {
        intake.unknown_key(key, at, GROUP);
        return true;
    };
    let help = if GROUP.contains(&row.name) {
        format!("did you mean `{}`?", row.name)
    } else {
        format!("write `{}` into each of its hooks", row.name)
    };
    let message = format!("`{key}` says nothing in a group");
    intake.findings.push(not_loaded(Code::UnknownKey, at, &message, Some(help)));
    false
}

fn take_entry(
    matcher: Option<String>,
    at: EntryLocation<'_>,
    intake: &mut HookCollector<'_>,
) -> Result<(), RejectedHook> {
    let entry = at.entry;
    let posts = entry.get("type").is_some_and(|kind| kind.node.as_text() == Some(entry::HTTP));
    let own = if posts { entry::own_http } else { entry::no_own };
    let draft = entry::read(entry, intake.context, &mut intake.findings, own);
    let mut draft = draft.ok_or_else(RejectedHook::default)?;
    let is_set = |key: &&str| entry.get(key).filter(|value| !matches!(value.node, Node::Null));
    if let Some(value) = MEANINGLESS.iter().find_map(is_set) {
        let key = value.key().unwrap_or_default();
        let beside = if posts { "an address" } else { "a line of shell" };
        let help = if key == "matcher" { "move it to the group" } else { "remove it" };
        let message = format!("`{key}` has no meaning beside {beside}");
        intake.findings.push(not_loaded(Code::WrongValue, &value, &message, Some(help.to_owned())));
        return Err(RejectedHook::default());
    }
    if posts && is_set(&"url").is_none() {
        let help = "add \"url\": the address that the event is posted to";
        intake.findings.push(not_loaded(
            Code::MissingKey,
            entry,
            "a hook of type \"http\" needs `url`",
            Some(help.to_owned()),
        ));
        return Err(RejectedHook::default());
    }
    draft.spec.matcher = matcher;
    draft.spec.dialect = Some("agent".to_owned());
    let action = if posts { draft.spec.action.clone() } else { draft.shell() };
    intake.take(draft, action, at)
}

fn wrong(at: &Cursor<'_>, message: String) -> Finding {
    Finding { code: Code::WrongForm,
        severity: Severity::Error,
        spot: Some(at.spot(Part::Value)),
        value: Some(at.node.shown()),
        message,
        help: Some(
            "write {\"hooks\": {\"PreToolUse\": [{\"matcher\": \"*\", \"hooks\": [{\"type\": \"command\", \"command\": …}]}]}}"
                .to_owned(),
        ),
        remedy: None,
    }
}
