//! Replaces a broken hook of the user whose failure should refuse. Until the hook is repaired, the placeholder refuses
//! everything that the hook is for. If the hook's events are unreadable, the placeholder runs for all events.
//!
//! This is only for the user's own hooks. An unapproved mistake in a project or extension must not be able to refuse
//! anything.

use ollm_protocol::hook::Reach;
use ollm_protocol::hook::key::HookKey;
use ollm_protocol::pattern::FilePatterns;
use ollm_protocol::{
    ActionSpec, Builtin, Event, Hook, HookSpec, Matcher, OnFailure, Priority, Rules, Verdict, dialect,
};

use super::{EntryLocation, HookCollector, RejectedHook};
use crate::entry::{Draft, canonical};
use crate::node::{Cursor, Node, Part};
use crate::problem::Severity;
use crate::value::{self, ReadValue};

const LEFT_OUT: &str = "; the hook is not loaded";
const REFUSES: &str = "; until that is mended it refuses whatever it is for";

impl HookCollector<'_> {
    /// Adds a placeholder for an entry that could not be read. The faults since `before` are its reason.
    pub(super) fn fail_closed_placeholder(&mut self, before: usize, untaken: RejectedHook, at: EntryLocation<'_>) {
        if !self.context.is_users_own() || is_idle(at) {
            return;
        }
        let found = self.findings.get(before..).unwrap_or_default();
        let Some(first) = found.iter().find(|finding| finding.severity <= Severity::Error) else { return };
        let message = first.message.trim_end_matches(LEFT_OUT);
        let field = first.spot.as_ref().map(|spot| spot.field.as_str()).filter(|field| !field.is_empty());
        let place = field.map(|field| format!("{field} in ")).unwrap_or_default();
        let why = format!("it cannot be loaded: {message} ({place}{})", self.context.path.display());
        let Some(hook) = self.stand(at, untaken.id, why) else { return };
        for finding in self.findings.iter_mut().skip(before) {
            if let Some(message) = finding.message.strip_suffix(LEFT_OUT) {
                finding.message = format!("{message}{REFUSES}");
            }
        }
        self.ids.taken.insert(hook.spec.own_id().to_owned(), None);
        self.spots.push(at.entry.spot(Part::Value));
        self.hooks.push(hook);
    }

    /// The placeholder hook, if the entry's failure counts.
    fn stand(&mut self, at: EntryLocation<'_>, made_up: Option<String>, why: String) -> Option<Hook> {
        let events = events(at);
        let event = events.first()?.clone();
        let name = text(at.entry, "name").map(str::to_owned);
        let chosen = text(at.entry, "id").filter(|id| !id.is_empty() && !self.ids.taken.contains_key(*id));
        let id = match chosen.map(str::to_owned).or(made_up) {
            Some(id) => id,
            None => self.made_up(&Draft::named(name.clone()), &event),
        };
        let nothing = ActionSpec::Builtin(Builtin::new(|_: &Event| Verdict::default()));
        let mut spec = HookSpec {
            name: name.unwrap_or_else(|| "a hook without a name".to_owned()),
            events,
            matcher: matcher(at).filter(|text| Matcher::parse(text).is_ok()).map(str::to_owned),
            file_patterns: patterns(at.entry),
            condition: text(at.entry, "if").map(str::to_owned),
            dialect: spoken(at),
            on_failure: on_failure(at),
            priority: text(at.entry, "priority").and_then(Priority::from_name).unwrap_or_default(),
            reach: text(at.entry, "scope").and_then(Reach::from_name),
            source: self.context.source,
            layer: self.context.layer,
            ..HookSpec::new(id, event, nothing)
        };
        self.context.place(&mut spec);
        // If the matcher is invalid even so, as for two events that exclude each other, every subject counts.
        let any = HookSpec { matcher: None, ..spec.clone() };
        let hook = Hook::new(spec, &Rules::default()).or_else(|_| Hook::new(any, &Rules::default())).ok()?;
        hook.is_gate().then_some(Hook { broken: Some(why), ..hook })
    }
}

impl EntryLocation<'_> {
    /// Adds to an entry what stands around it: the event of its list, and the matcher and dialect of its group.
    pub(super) fn complete(self, spec: &mut HookSpec) {
        spec.events = events(self);
        if self.group.is_some() {
            spec.matcher = matcher(self).map(str::to_owned);
            spec.dialect = spoken(self);
        }
    }
}

/// Whether a hook would not decide anything even if it were loaded.
fn is_idle(at: EntryLocation<'_>) -> bool {
    let flag = |key: &str| match find(at.entry, key).map(value::flag) {
        Some(ReadValue::Exact(flag) | ReadValue::Converted(flag)) => Some(flag),
        Some(ReadValue::Wrong) | None => None,
    };
    let is_gate = || on_failure(at).is_some_and(|failure| failure != OnFailure::Allow);
    flag("enabled") == Some(false) || flag("async") == Some(true) && !is_gate()
}

/// The entry's failure policy. An unreadable policy counts as the strictest one, also if it belongs to the group.
fn on_failure(at: EntryLocation<'_>) -> Option<OnFailure> {
    let misspelt = |written: &str| HookKey::promised(&canonical(written)).is_some_and(|row| row.name == "onFailure");
    let in_map = |map: &Cursor<'_>| -> Vec<Node> {
        let misspelt = map.entries().filter(|(written, _)| misspelt(written)).map(|(_, value)| value.node);
        all(map, "onFailure").chain(misspelt).cloned().collect()
    };
    let said: Vec<OnFailure> = std::iter::once(at.entry)
        .chain(at.group)
        .flat_map(in_map)
        .filter(|node| !matches!(node, Node::Null))
        .map(|node: Node| node.as_text().and_then(OnFailure::from_name).unwrap_or(OnFailure::Block))
        .collect();
    [OnFailure::Block, OnFailure::Ask, OnFailure::Allow].into_iter().find(|one| said.contains(one))
}

/// The events that are known: that of the list it stands in, or those it names itself.
fn events(at: EntryLocation<'_>) -> Vec<String> {
    let when = at.entry.get("when");
    let own = find(at.entry, "eventType").or_else(|| when.as_ref()?.get("type").map(|at| at.node));
    let written: Vec<String> = match own.map(value::texts) {
        _ if !at.event.is_empty() => vec![at.event.to_owned()],
        Some(ReadValue::Exact(names) | ReadValue::Converted(names)) => names,
        _ => own.and_then(Node::as_text).map(str::to_owned).into_iter().collect(),
    };
    written.into_iter().filter(|name| dialect::is_event(name)).collect()
}

fn matcher(at: EntryLocation<'_>) -> Option<&str> {
    match at.group {
        Some(group) => text(group, "matcher"),
        None => text(at.entry, "matcher"),
    }
}

fn patterns(entry: &Cursor<'_>) -> Vec<String> {
    let when = entry.get("when");
    let written = find(entry, "filePatterns").or_else(|| when.as_ref()?.get("patterns").map(|at| at.node));
    match written.map(value::texts) {
        Some(ReadValue::Exact(patterns)) if FilePatterns::parse(&patterns).is_ok() => patterns,
        _ => Vec::new(),
    }
}

/// Its dialect, if it names a known one.
fn spoken(at: EntryLocation<'_>) -> Option<String> {
    if at.group.is_some() {
        return Some("agent".to_owned());
    }
    text(at.entry, "dialect").filter(|name| dialect::by_name(name).is_some()).map(str::to_owned)
}

fn text<'a>(entry: &'a Cursor<'a>, key: &str) -> Option<&'a str> {
    find(entry, key).and_then(Node::as_text)
}

/// The value of a key. `None` if the key occurs twice, because it is unknown which one counts.
fn find<'a>(entry: &'a Cursor<'a>, key: &str) -> Option<&'a Node> {
    let mut found = all(entry, key);
    found.next().filter(|_| found.next().is_none())
}

/// Every value of a key, by any word for it.
fn all<'a>(entry: &'a Cursor<'a>, key: &str) -> impl Iterator<Item = &'a Node> {
    entry.entries().filter(move |(written, _)| canonical(written) == key).map(|(_, value)| value.node)
}
