//! The hooks that are there, and an index that finds the ones for an event without looking at the others.
//!
//! Matchers are compiled once, at registration: exact names and prefixes go into maps, so that one event among ten
//! thousand hooks costs as much as its matches. All names of a tool share one key, looked up once per matcher and event.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ollm_protocol::event::EVENTS;
use ollm_protocol::matcher::Pattern;
use ollm_protocol::{EventKind, Hook, Layer, Matcher, RateLimit, Reach, Source, Subject};

use crate::facts;
use crate::plan::duplicate;

/// A hook with this id is registered already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hook id `{id}` is taken by {holder}; give one of the two another `id`")]
pub struct DuplicateId {
    /// The id.
    pub id: String,
    /// Where the hook that has it was declared.
    pub holder: String,
}

/// All registered hooks, in the order of their registration.
#[derive(Debug, Default)]
pub struct Registry {
    ids: HashMap<String, Arc<Hook>>,
    shelves: HashMap<EventKind, Shelf>,
    registered: u64,
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Adds a hook for all its events.
    pub fn register(&mut self, hook: Hook) -> Result<Arc<Hook>, DuplicateId> {
        if let Some(holder) = self.ids.get(hook.id()) {
            return Err(DuplicateId { id: hook.id().to_owned(), holder: declared(holder) });
        }
        let hook = Arc::new(hook);
        self.registered += 1;
        for kind in &hook.events {
            self.shelves.entry(*kind).or_default().put(*kind, &hook, self.registered);
        }
        self.ids.insert(hook.id().to_owned(), Arc::clone(&hook));
        Ok(hook)
    }

    /// The hooks of an event, in the order of their registration.
    pub fn for_event(&self, kind: EventKind) -> Vec<Arc<Hook>> {
        self.shelves.get(&kind).map(|shelf| shelf.hooks().cloned().collect()).unwrap_or_default()
    }

    /// Removes a hook from all its events; false when there is none with this id.
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

    /// Removes all hooks of an event; those with other events stay there.
    pub fn clear_event(&mut self, kind: EventKind) {
        self.keep(kind, |_| false);
        let shelves = &self.shelves;
        self.ids.retain(|_, hook| {
            hook.events.iter().any(|event| {
                shelves.contains_key(event)
                    && shelves.get(event).is_some_and(|shelf| shelf.hooks().any(|kept| Arc::ptr_eq(kept, hook)))
            })
        });
    }

    /// Removes everything.
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
    pub(crate) fn fitting(&self, kind: EventKind, subject: Option<&str>) -> Vec<&Arc<Hook>> {
        let subject = subject.map(|name| Subject::new(kind, name));
        self.shelves.get(&kind).map(|shelf| shelf.fitting(subject)).unwrap_or_default()
    }

    /// What the hooks of an event need to be planned.
    pub(crate) fn needs(&self, kind: EventKind) -> Needs {
        self.shelves.get(&kind).map(|shelf| shelf.needs).unwrap_or_default()
    }

    fn keep(&mut self, kind: EventKind, stays: impl Fn(&Hook) -> bool) {
        let Some(full) = self.shelves.remove(&kind) else { return };
        let mut kept = Shelf::default();
        for entry in full.entries.into_iter().filter(|entry| stays(&entry.hook)) {
            kept.put(kind, &entry.hook, entry.turn.2);
        }
        if !kept.entries.is_empty() {
            self.shelves.insert(kind, kept);
        }
    }
}

/// Where a hook was declared, for people.
pub(crate) fn declared(hook: &Hook) -> String {
    let origin = &hook.spec.origin;
    match (origin.file.as_os_str().is_empty(), origin.line) {
        (true, _) => format!("a {} hook", hook.spec.source.name()),
        (false, 0) => origin.file.display().to_string(),
        (false, line) => format!("{}:{line}:{}", origin.file.display(), origin.column),
    }
}

/// What hooks need to be planned beside their matchers. What none of them needs is not even looked at.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a look of its own, and any of them may be needed")]
pub(crate) struct Needs {
    /// A look at what the hook itself says about when it is for.
    pub(crate) narrowing: bool,
    /// What patterns and conditions see beside the event.
    pub(crate) surroundings: bool,
    /// A look at the world: what a hook requires, how often it ran.
    pub(crate) facts: bool,
    /// A look for hooks that do the very same thing.
    pub(crate) twins: bool,
}

impl Needs {
    /// What one hook needs; twins are for the others to tell.
    pub(crate) fn of(hook: &Hook) -> Needs {
        let seeing = !hook.patterns.is_empty() || hook.condition.is_some();
        Needs {
            surroundings: seeing,
            facts: facts::is_demanding(hook) || hook.spec.rate_limit != RateLimit::default(),
            narrowing: seeing || hook.reach.value != Reach::All || hook.broken.is_some(),
            twins: false,
        }
    }

    fn add(&mut self, other: Needs) {
        self.surroundings |= other.surroundings;
        self.facts |= other.facts;
        self.narrowing |= other.narrowing;
    }
}

/// Scope rank, priority, registration: the order of execution.
type Turn = (u8, ollm_protocol::Priority, u64);

#[derive(Debug)]
struct Entry {
    turn: Turn,
    hook: Arc<Hook>,
}

/// The hooks of one event.
#[derive(Debug, Default)]
struct Shelf {
    entries: Vec<Entry>,
    any: Vec<usize>,
    exact: HashMap<String, Vec<usize>>,
    prefixes: HashMap<String, Vec<usize>>,
    prefix_lengths: Vec<usize>,
    /// Matchers that only a look at the subject can decide.
    others: Vec<usize>,
    /// What the hooks do, by fingerprint.
    deeds: HashSet<u64>,
    needs: Needs,
}

impl Shelf {
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
        self.needs.add(Needs::of(hook));
        self.needs.twins |= !self.deeds.insert(duplicate::fingerprint(hook));
        self.entries.push(Entry { turn: turn(hook, registered), hook: Arc::clone(hook) });
    }

    fn index(&mut self, kind: EventKind, pattern: &Pattern, at: usize) {
        match pattern {
            Pattern::Exact(name) => {
                self.exact.entry(Subject::new(kind, name).key().to_owned()).or_default().push(at);
            }
            Pattern::Builtin => self.others.push(at),
            Pattern::Prefix(prefix) => {
                self.prefixes.entry(prefix.clone()).or_default().push(at);
                if let Err(place) = self.prefix_lengths.binary_search(&prefix.len()) {
                    self.prefix_lengths.insert(place, prefix.len());
                }
            }
        }
    }

    fn fitting(&self, subject: Option<Subject<'_>>) -> Vec<&Arc<Hook>> {
        let mut found: Vec<usize> = self.any.clone();
        if let Some(subject) = subject {
            found.extend(subject.keys().filter_map(|key| self.exact.get(key)).flatten());
            // A length that ends inside a character fits no prefix; a longer one still may.
            let beginnings =
                |length: &usize| subject.names().filter_map(|name| name.get(..*length)).collect::<Vec<_>>();
            let prefixes = self.prefix_lengths.iter().flat_map(beginnings);
            found.extend(prefixes.filter_map(|prefix| self.prefixes.get(prefix)).flatten());
            let fits =
                |at: &&usize| self.entries.get(**at).is_some_and(|entry| entry.hook.matcher.matches(Some(subject)));
            found.extend(self.others.iter().filter(fits));
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
        (Source::User, _) => 1,
        (Source::Extension | Source::Downloaded, Layer::User) => 2,
        (Source::Workspace, _) => 3,
        (Source::Extension | Source::Downloaded, Layer::Workspace) => 4,
    };
    (rank, hook.spec.priority, registered)
}
