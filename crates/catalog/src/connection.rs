//! Adds our entries to the settings files of other agents, one per event, without touching anything else.

use ollm_protocol::dialect::agents::AgentDialect;
use ollm_protocol::dialect::agents::home::{FlatEntry, Form, Home};
use serde_json::{Map, Value, json};

use crate::file::{Syntax, loose};
use crate::node::Node;
use crate::text_edit::{Draft, EmptiedMap, Op, Refusal};

mod calls;
mod files;
mod filter;
mod import;
mod rule;
pub(crate) mod written;

pub use calls::{about_event, asks_us, called_programs, without_own_lines};
use calls::{is_own_entry, leads_to_us};
pub use files::{WrittenFile, in_home, written_by_user, written_in_project};
pub use import::ImportedHooks;

/// The key of the hooks in such a file.
const HOOKS: &str = "hooks";
/// The key where Codex records which hooks a person has reviewed, beside the hooks in its own file.
const STATE: &str = "state";

/// The entries to write for an agent.
#[derive(Clone, Copy)]
pub struct ConnectionSpec<'a> {
    /// The agent.
    pub agent: &'a AgentDialect,
    /// Makes the shell line for an event.
    pub line: &'a dyn Fn(&str) -> String,
}

/// The parts that were added around our entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeParts {
    /// Whether the map of all hooks was added.
    pub hooks: bool,
    /// The events whose lists were added.
    pub events: Vec<String>,
}

/// A settings file with our entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectedSettings {
    /// Its text.
    pub text: String,
    /// The parts that were added.
    pub made: MadeParts,
}

/// One of our entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnEntry {
    /// The agent's event.
    pub event: String,
    /// The line that it runs.
    pub command: String,
    /// Whether it runs for every subject of the event.
    pub is_for_all: bool,
}

/// The text of a settings file with exactly one of our entries per event; other entries of ours are removed.
pub fn connected(text: &str, wish: &ConnectionSpec<'_>) -> Result<ConnectedSettings, String> {
    let mut draft = draft(text)?;
    let was = Shape::of(draft.root());
    let keys = Keys::of(wish.agent.home.form);
    let wanted = |event: &str| Node::from_json(&entry(wish, event));
    // Correct entries of ours stay. All others of ours are removed, including duplicates.
    let mut kept: Vec<String> = Vec::new();
    while let Some(ours) = find(draft.root(), keys, wish.agent.name).into_iter().find(|ours| {
        let asked = wish.agent.home.events.contains(&ours.event.as_str()) && !kept.contains(&ours.event);
        let is_right = asked && draft.root().at(&ours.whole) == Some(&wanted(&ours.event));
        if is_right {
            kept.push(ours.event.clone());
        }
        !is_right
    }) {
        kept.clear();
        perform(&mut draft, &ours.removal())?;
    }
    for event in wish.agent.home.events.iter().filter(|event| !kept.iter().any(|kept| kept == *event)) {
        add(&mut draft, event, wanted(event), wish.agent.home.form)?;
    }
    // Removes lists that only had our entries, for events that we no longer register for.
    tidy(&mut draft, |event| !was.events.iter().any(|known| known == event), !was.hooks)?;
    let events = wish.agent.home.events.iter().filter(|event| !was.events.iter().any(|known| known == *event));
    let made = MadeParts { hooks: !was.hooks, events: events.map(|event| (*event).to_owned()).collect() };
    Ok(ConnectedSettings { text: draft.into_text(), made })
}

/// The text of a settings file without our entries, and whether it is empty then. The parts in `made` are removed if
/// they are empty.
pub fn disconnected(text: &str, agent: &str, form: Form, made: &MadeParts) -> Result<(String, bool), String> {
    let mut draft = draft(text)?;
    while let Some(ours) = find(draft.root(), Keys::of(form), agent).into_iter().next() {
        perform(&mut draft, &ours.removal())?;
    }
    tidy(&mut draft, |event| made.events.iter().any(|known| known == event), made.hooks)?;
    let left = match draft.root() {
        Node::Map(pairs) => pairs.iter().any(|(key, _)| key != "version"),
        Node::Null => false,
        _ => true,
    };
    let text = draft.into_text();
    // Comments in a file belong to the person, so a file with comments is not empty.
    let is_empty = !left && !loose(text.trim_start_matches('\u{feff}')).comments;
    Ok((text, is_empty))
}

/// Our entries in a settings file.
pub fn own_entries(text: &str, agent: &str, form: Form) -> Result<Vec<OwnEntry>, String> {
    let draft = draft(text)?;
    let found = find(draft.root(), Keys::of(form), agent);
    let is_for_all = |ours: &FoundEntry| {
        let matcher = draft.root().at(&ours.whole).and_then(|entry| self::text(entry, "matcher"));
        matcher.is_none_or(|matcher| matches!(matcher, "" | "*"))
    };
    let entry = |ours: FoundEntry| OwnEntry { is_for_all: is_for_all(&ours), event: ours.event, command: ours.command };
    Ok(found.into_iter().map(entry).collect())
}

/// Our lines that an agent runs, from a settings file or from a file that we own.
pub fn own_lines(text: &str, agent: &str, form: Form) -> Result<Vec<String>, String> {
    match form {
        Form::Own(_) => Ok(calls::own_lines(text, agent)),
        Form::Groups | Form::Flat(_) => {
            Ok(own_entries(text, agent, form)?.into_iter().map(|entry| entry.command).collect())
        }
    }
}

/// Why the agent would not read a file with this text, although we can.
pub fn rejected(text: &str, home: &Home) -> Option<String> {
    let (mark, plain) = text.strip_prefix('\u{feff}').map_or((false, text), |plain| (true, plain));
    if mark && !home.taste.mark {
        return Some("it begins with a byte order mark".to_owned());
    }
    let found = loose(plain);
    match () {
        () if found.comments && !home.taste.comments => Some("it has comments".to_owned()),
        () if found.commas && !home.taste.commas => {
            Some("it has a comma after the last item of a list or an object".to_owned())
        }
        () => unknown_key(plain, home.taste.keys?).map(|key| format!("it has `{key}`, which is no key of such a file")),
    }
}

/// The first top-level key of a file that is not one of these.
fn unknown_key(text: &str, known: &[&str]) -> Option<String> {
    let draft = draft(text).ok()?;
    let Node::Map(pairs) = draft.root() else { return None };
    pairs.iter().map(|(key, _)| key.clone()).find(|key| !known.contains(&key.as_str()))
}

/// Whether a settings file switches off all hooks of the agent, including ours.
pub fn switches_hooks_off(text: &str) -> bool {
    draft(text).is_ok_and(|draft| !written::Switch::of(draft.root()).on)
}

/// The entry in a file for one event.
fn entry(wish: &ConnectionSpec<'_>, event: &str) -> Value {
    let command = (wish.line)(event);
    let timeout =
        wish.agent.told_to_wait(event).map(|wait| wait.as_millis() / wish.agent.timeout_unit.as_millis().max(1));
    let timeout = timeout.and_then(|timeout| u64::try_from(timeout).ok());
    match wish.agent.home.form {
        Form::Flat(FlatEntry { typed, command: key, timeout: timeout_key, shows, .. }) => {
            let mut entry = Map::new();
            if typed {
                entry.insert("type".to_owned(), "command".into());
            }
            entry.insert(key.to_owned(), command.into());
            entry.extend(timeout_key.zip(timeout).map(|(key, timeout)| (key.to_owned(), timeout.into())));
            entry.extend(shows.map(|key| (key.to_owned(), true.into())));
            Value::Object(entry)
        }
        Form::Groups | Form::Own(_) => {
            let mut handler =
                Map::from_iter([("type".to_owned(), "command".into()), ("command".to_owned(), command.into())]);
            handler.extend(timeout.map(|timeout| ("timeout".to_owned(), timeout.into())));
            json!({"hooks": [handler]})
        }
    }
}

fn draft(text: &str) -> Result<Draft, String> {
    let draft = Draft::read(text, Syntax::LooseJson).map_err(|broken| broken.placed())?;
    structure(draft.root()).map(|()| draft)
}

/// Checks the structure that agents expect: `hooks` once, with a list for each event.
fn structure(root: &Node) -> Result<(), String> {
    let pairs = match root {
        Node::Map(pairs) => pairs,
        Node::Null => return Ok(()),
        other => return Err(format!("it is {}, not a JSON object", other.kind())),
    };
    let mut hooks = pairs.iter().filter(|(key, _)| key == HOOKS).map(|(_, value)| value);
    match (hooks.next(), hooks.next()) {
        (_, Some(_)) => Err(format!("`{HOOKS}` is in it twice, and agents differ in which of the two counts")),
        (Some(Node::Map(events)), None) => {
            match events.iter().find(|(event, list)| event != STATE && !matches!(list, Node::List(_))) {
                Some((event, other)) => Err(format!("`{HOOKS}.{event}` is {}, not a list", other.kind())),
                None => once(events),
            }
        }
        (Some(other), None) => Err(format!("`{HOOKS}` is {}, not an object", other.kind())),
        (None, None) => Ok(()),
    }
}

fn once(events: &[(String, Node)]) -> Result<(), String> {
    let doubled =
        events.iter().enumerate().find(|(at, (event, _))| events.iter().take(*at).any(|(other, _)| other == event));
    doubled.map_or(Ok(()), |(_, (event, _))| {
        Err(format!("`{HOOKS}.{event}` is in it twice, and agents differ in which of the two counts"))
    })
}

/// The keys of commands in entries of a form.
#[derive(Clone, Copy)]
enum Keys {
    InGroups,
    InEntries(&'static str),
}

impl Keys {
    fn of(form: Form) -> Keys {
        match form {
            Form::Flat(entry) => Keys::InEntries(entry.command),
            Form::Groups | Form::Own(_) => Keys::InGroups,
        }
    }
}

/// One of our entries, with its place.
struct FoundEntry {
    event: String,
    command: String,
    /// The path to the item of the event's list that is the entry, or contains it.
    whole: Vec<usize>,
    /// The path to its list, and its index there.
    list: Vec<usize>,
    index: usize,
}

impl FoundEntry {
    fn removal(&self) -> Op<'_> {
        Op::Remove { at: &self.list, index: self.index }
    }
}

fn find(root: &Node, keys: Keys, agent: &str) -> Vec<FoundEntry> {
    let mut found = Vec::new();
    let Some((at, events)) = hooks_of(root) else { return found };
    for (place, (event, list)) in events.iter().enumerate() {
        for (index, item) in items(list).iter().enumerate() {
            let list = vec![at, place];
            let whole = vec![at, place, index];
            let ours = |command: &str, list, index| FoundEntry {
                event: event.clone(),
                command: command.to_owned(),
                whole: whole.clone(),
                list,
                index,
            };
            match keys {
                Keys::InEntries(key) => {
                    found.extend(
                        text(item, key).filter(|line| is_own_entry(line, agent)).map(|line| ours(line, list, index)),
                    );
                }
                Keys::InGroups => {
                    let Some((inner, handlers)) = pair(item, HOOKS) else { continue };
                    let alone = items(handlers).len() == 1;
                    for (handler, value) in items(handlers).iter().enumerate() {
                        let Some(line) = text(value, "command").filter(|line| is_own_entry(line, agent)) else {
                            continue;
                        };
                        // A group with only our entry is removed as a whole.
                        let own = if alone {
                            ours(line, list.clone(), index)
                        } else {
                            ours(line, vec![at, place, index, inner], handler)
                        };
                        found.push(own);
                    }
                }
            }
        }
    }
    found
}

fn add(draft: &mut Draft, event: &str, entry: Node, form: Form) -> Result<(), String> {
    let list = |entry| Node::List(vec![entry]);
    let events = |entry| Node::Map(vec![(event.to_owned(), list(entry))]);
    match hooks_of(draft.root()) {
        Some((at, found)) => match found.iter().position(|(name, _)| name == event) {
            Some(place) => perform(draft, &Op::Push { at: &[at, place], value: &entry }),
            None => perform(draft, &Op::Set { at: &[at], key: event, value: &list(entry) }),
        },
        None if *draft.root() == Node::Null => {
            let version = matches!(form, Form::Flat(FlatEntry { version: true, .. }));
            let version = version.then(|| ("version".to_owned(), Node::Whole(1)));
            let pairs = version.into_iter().chain([(HOOKS.to_owned(), events(entry))]).collect();
            perform(draft, &Op::Fill { value: &Node::Map(pairs) })
        }
        None => perform(draft, &Op::Set { at: &[], key: HOOKS, value: &events(entry) }),
    }
}

/// Removes empty parts that were added for us.
fn tidy(draft: &mut Draft, made: impl Fn(&str) -> bool, hooks_made: bool) -> Result<(), String> {
    loop {
        let Some((at, events)) = hooks_of(draft.root()) else { return Ok(()) };
        let empty = events.iter().position(|(event, list)| items(list).is_empty() && made(event));
        match empty {
            Some(index) => perform(draft, &Op::Unset { at: &[at], index, emptied: EmptiedMap::Map })?,
            None if events.is_empty() && hooks_made => {
                return perform(draft, &Op::Unset { at: &[], index: at, emptied: EmptiedMap::Map });
            }
            None => return Ok(()),
        }
    }
}

/// The parts that a file has before the change.
struct Shape {
    hooks: bool,
    events: Vec<String>,
}

impl Shape {
    fn of(root: &Node) -> Shape {
        let events = hooks_of(root).map(|(_, events)| events);
        Shape {
            hooks: events.is_some(),
            events: events.into_iter().flatten().map(|(event, _)| event.clone()).collect(),
        }
    }
}

fn hooks_of(root: &Node) -> Option<(usize, &Vec<(String, Node)>)> {
    match pair(root, HOOKS)? {
        (at, Node::Map(events)) => Some((at, events)),
        _ => None,
    }
}

fn pair<'n>(node: &'n Node, key: &str) -> Option<(usize, &'n Node)> {
    let Node::Map(pairs) = node else { return None };
    let index = pairs.iter().position(|(name, _)| name == key)?;
    pairs.get(index).map(|(_, value)| (index, value))
}

fn text<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    pair(node, key)?.1.as_text()
}

fn items(node: &Node) -> &[Node] {
    match node {
        Node::List(items) => items,
        _ => &[],
    }
}

fn perform(draft: &mut Draft, op: &Op<'_>) -> Result<(), String> {
    draft.perform(op).map_err(|refusal| match refusal {
        Refusal::ByHand { line, what } => format!("line {line} has to be changed by hand: {what}"),
        Refusal::NoSuch => "it changed while it was looked at".to_owned(),
    })
}
