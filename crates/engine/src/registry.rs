//! The registered hooks, and an index that finds the hooks for an event without checking all others.
//!
//! Matchers are compiled once, at registration. Exact names and prefixes go into maps, so the cost of an event depends
//! on its matches, even among ten thousand hooks. All names of a tool share one key, which is looked up once per
//! matcher and event.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ollm_protocol::event::EVENTS;
use ollm_protocol::matcher::{Pattern, prefix_key};
use ollm_protocol::{EventKind, Hook, Layer, Matcher, Source, Subject};

use crate::report::{Reason, Skip, declared};
use crate::twin;

/// A hook with this id is registered already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hook id `{id}` is taken by {holder}; give one of the two another `id`")]
pub struct DuplicateId {
    /// The id.
    pub id: String,
    /// Where the hook with this id was declared.
    pub holder: String,
}

/// All registered hooks, in the order of their registration.
#[derive(Debug, Default)]
pub struct Registry {
    ids: HashMap<String, Arc<Hook>>,
    events: HashMap<EventKind, EventIndex>,
    registered: u64,
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Adds a hook to the index of each of its events.
    pub fn register(&mut self, hook: Hook) -> Result<Arc<Hook>, DuplicateId> {
        if let Some(holder) = self.ids.get(hook.id()) {
            return Err(DuplicateId { id: hook.id().to_owned(), holder: declared(holder) });
        }
        let hook = Arc::new(hook);
        self.registered += 1;
        for kind in &hook.events {
            self.events.entry(*kind).or_default().put(*kind, &hook, self.registered);
        }
        self.ids.insert(hook.id().to_owned(), Arc::clone(&hook));
        Ok(hook)
    }

    /// The hooks of an event, in the order of their registration.
    pub fn for_event(&self, kind: EventKind) -> Vec<Arc<Hook>> {
        self.events.get(&kind).map(|index| index.hooks().cloned().collect()).unwrap_or_default()
    }

    /// Removes a hook from all its events; false if no hook has this id.
    pub fn unregister(&mut self, id: &str) -> bool {
        let Some(hook) = self.ids.remove(id) else { return false };
        for kind in &hook.events {
            self.keep(*kind, |kept| kept.id() != id);
        }
        true
    }

    /// Every event that has hooks, with its hooks, in the order of the event table.
    pub fn all(&self) -> Vec<(EventKind, Vec<Arc<Hook>>)> {
        let kinds = EVENTS.iter().map(|row| row.kind);
        kinds.map(|kind| (kind, self.for_event(kind))).filter(|(_, hooks)| !hooks.is_empty()).collect()
    }

    /// Removes all hooks of an event; hooks with other events stay registered for those.
    pub fn clear_event(&mut self, kind: EventKind) {
        self.keep(kind, |_| false);
        let events = &self.events;
        self.ids.retain(|_, hook| {
            hook.events.iter().any(|event| {
                events.contains_key(event)
                    && events.get(event).is_some_and(|index| index.hooks().any(|kept| Arc::ptr_eq(kept, hook)))
            })
        });
    }

    /// Removes all hooks.
    pub fn clear(&mut self) {
        *self = Registry { registered: self.registered, ..Registry::default() };
    }

    /// How many hooks there are.
    pub fn count(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is a hook with this id.
    pub fn has(&self, id: &str) -> bool {
        self.ids.contains_key(id)
    }

    /// The hook with this id.
    pub fn get(&self, id: &str) -> Option<&Arc<Hook>> {
        self.ids.get(id)
    }

    /// The hooks of an event whose matcher fits the subject, in the order they should run.
    pub fn candidates(&self, kind: EventKind, subject: Option<&str>) -> Vec<&Arc<Hook>> {
        let subject = subject.map(|name| Subject::new(kind, name));
        self.events.get(&kind).map(|index| index.fitting(subject)).unwrap_or_default()
    }

    /// All hooks of an event, in the order they should run, for an event without a subject: any of them may be for it.
    pub(crate) fn possible(&self, kind: EventKind) -> Vec<&Arc<Hook>> {
        let mut entries: Vec<&Entry> =
            self.events.get(&kind).map(|index| index.entries.iter().collect()).unwrap_or_default();
        entries.sort_unstable_by_key(|entry| entry.turn);
        entries.into_iter().map(|entry| &entry.hook).collect()
    }

    /// The hooks of an event whose matcher does not fit the subject.
    pub fn unfitting(&self, kind: EventKind, subject: Option<&str>) -> Vec<Skip> {
        let hooks = self.events.get(&kind).into_iter().flat_map(EventIndex::hooks);
        let about = subject.map(|name| Subject::new(kind, name));
        let others = hooks.filter(|hook| !hook.matcher.matches(about));
        let subject =
            subject.map_or_else(|| "an event that names no tool".to_owned(), |subject| format!("`{subject}`"));
        let why = |hook: &Hook| format!("`{}` does not match {subject}", hook.matcher.text());
        others.map(|hook| Skip::new(hook, Reason::Matcher, why(hook))).collect()
    }

    /// Whether two hooks of an event may be identical in what they do.
    pub(crate) fn has_twins(&self, kind: EventKind) -> bool {
        self.events.get(&kind).is_some_and(|index| index.has_twins)
    }

    fn keep(&mut self, kind: EventKind, stays: impl Fn(&Hook) -> bool) {
        let Some(full) = self.events.remove(&kind) else { return };
        let mut kept = EventIndex::default();
        for entry in full.entries.into_iter().filter(|entry| stays(&entry.hook)) {
            kept.put(kind, &entry.hook, entry.turn.2);
        }
        if !kept.entries.is_empty() {
            self.events.insert(kind, kept);
        }
    }
}

/// Scope rank, priority and registration number: the order of execution.
type Turn = (u8, ollm_protocol::Priority, u64);

#[derive(Debug)]
struct Entry {
    turn: Turn,
    hook: Arc<Hook>,
}

/// The hooks of one event.
#[derive(Debug, Default)]
struct EventIndex {
    entries: Vec<Entry>,
    any: Vec<usize>,
    exact: HashMap<String, Vec<usize>>,
    prefixes: HashMap<String, Vec<usize>>,
    prefix_lengths: Vec<usize>,
    /// Matchers that have no place in the maps and must check the subject.
    others: Vec<usize>,
    /// The fingerprints of what the hooks do.
    fingerprints: HashSet<u64>,
    has_twins: bool,
}

impl EventIndex {
    fn hooks(&self) -> impl Iterator<Item = &Arc<Hook>> {
        self.entries.iter().map(|entry| &entry.hook)
    }

    fn put(&mut self, kind: EventKind, hook: &Arc<Hook>, registered: u64) {
        let at = self.entries.len();
        match &hook.matcher {
            Matcher::Any => self.any.push(at),
            Matcher::Expression(_) => self.others.push(at),
            Matcher::List(patterns) => patterns.iter().for_each(|pattern| self.index(kind, pattern, at)),
        }
        self.has_twins |= !self.fingerprints.insert(twin::fingerprint(hook));
        self.entries.push(Entry { turn: turn(hook, registered), hook: Arc::clone(hook) });
    }

    fn index(&mut self, kind: EventKind, pattern: &Pattern, at: usize) {
        match pattern {
            pattern if pattern.is_of_any_server() => self.others.push(at),
            Pattern::Exact(name) => {
                self.exact.entry(Subject::new(kind, name).key().into_owned()).or_default().push(at);
            }
            Pattern::Builtin => self.others.push(at),
            Pattern::Prefix(prefix) => {
                let prefix = prefix_key(prefix);
                if let Err(place) = self.prefix_lengths.binary_search(&prefix.len()) {
                    self.prefix_lengths.insert(place, prefix.len());
                }
                self.prefixes.entry(prefix.into_owned()).or_default().push(at);
            }
        }
    }

    fn fitting(&self, subject: Option<Subject<'_>>) -> Vec<&Arc<Hook>> {
        let mut found: Vec<usize> = self.any.clone();
        if let Some(subject) = subject {
            found.extend(subject.keys().filter_map(|key| self.exact.get(&*key)).flatten());
            // A length that ends inside a character fits no prefix; a longer one still may.
            let names: Vec<_> = subject.beginnings().filter(|_| !self.prefixes.is_empty()).collect();
            let beginnings = |length: &usize| names.iter().filter_map(|name| name.get(..*length)).collect::<Vec<_>>();
            let prefixes = self.prefix_lengths.iter().flat_map(beginnings);
            let fits =
                |at: &&usize| self.entries.get(**at).is_some_and(|entry| entry.hook.matcher.matches(Some(subject)));
            found.extend(prefixes.filter_map(|prefix| self.prefixes.get(prefix)).flatten().filter(fits));
            if subject.has_unnamed_server() {
                let all: Vec<usize> = (0..self.entries.len()).collect();
                found.extend(all.iter().filter(fits));
            } else {
                found.extend(self.others.iter().filter(fits));
            }
        }
        let mut entries: Vec<&Entry> = found.into_iter().filter_map(|at| self.entries.get(at)).collect();
        entries.sort_unstable_by_key(|entry| entry.turn);
        entries.dedup_by_key(|entry| entry.turn);
        entries.into_iter().map(|entry| &entry.hook).collect()
    }
}

fn turn(hook: &Hook, registered: u64) -> Turn {
    let rank = match (hook.spec.source, hook.spec.layer) {
        (Source::Builtin, _) => 0,
        (Source::Policy, _) => 1,
        (Source::User, _) => 2,
        (Source::Extension | Source::Downloaded, Layer::User) => 3,
        (Source::Workspace, _) => 4,
        (Source::Extension | Source::Downloaded, Layer::Workspace) => 5,
    };
    (rank, hook.spec.priority, registered)
}
