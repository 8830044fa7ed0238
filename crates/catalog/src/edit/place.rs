//! Finds the places of hooks and of their keys in each form.

use ollm_protocol::hook::action::ActionType;
use ollm_protocol::hook::key::{ApprovedPart, HookKey, find};
use serde_json::{Map, Value, json};

use super::{EditError, index_of};
use crate::entry::canonical;
use crate::format::Form;
use crate::node::{Cursor, Node, Part};

/// Whether a key belongs inside the action, if there is one.
fn is_of_action(key: &str) -> bool {
    let beside = HookKey::find(key).is_some_and(|row| !matches!(row.approved, ApprovedPart::InAction));
    let inside = key == "type" || ActionType::of_files().any(|kind| find(kind.keys, key).is_some());
    inside && !beside
}

/// The place of a hook: the indexes on the path to it.
#[derive(Debug)]
pub(super) struct HookPlace {
    form: Form,
    pub(super) entry: Vec<usize>,
    pub(super) group: Option<Group>,
}

#[derive(Debug)]
pub(super) struct Group {
    pub(super) steps: Vec<usize>,
    pub(super) hooks: usize,
}

/// The place of a key: the map it belongs to, and the keys from there.
#[derive(Debug)]
pub(super) struct Path {
    base: Vec<usize>,
    keys: Vec<String>,
}

/// A key in an existing map.
#[derive(Debug)]
pub(super) struct KeyPosition {
    pub(super) steps: Vec<usize>,
    pub(super) key: String,
}

impl HookPlace {
    /// The nth hook.
    pub(super) fn find(root: &Cursor<'_>, which: usize) -> Result<HookPlace, EditError> {
        Form::of(root).ok_or(EditError::Formless)?;
        HookPlace::all(root).into_iter().nth(which).ok_or(EditError::NoSuch)
    }

    /// Every hook of a file, in its order.
    pub(super) fn all(root: &Cursor<'_>) -> Vec<HookPlace> {
        match Form::of(root) {
            None => Vec::new(),
            Some(form @ (Form::Modern | Form::WhenThen)) => vec![HookPlace { form, entry: Vec::new(), group: None }],
            Some(form @ (Form::Events | Form::Agent)) => listed(root, form),
        }
    }

    /// The place where a key of this hook is written.
    pub(super) fn path(&self, root: &Cursor<'_>, key: &str) -> Result<Path, EditError> {
        let mut keys: Vec<String> = key.split('.').map(|key| canonical(key).into_owned()).collect();
        let first = keys.first().map_or("", String::as_str);
        let fixed = |help| Err(EditError::Fixed { key: key.to_owned(), help });
        let mut base = self.entry.clone();
        let home = match (self.form, first) {
            (Form::Events | Form::Agent, "event" | "eventType" | "events") => {
                return fixed("remove the hook and add it under the other event");
            }
            (Form::Modern, "event" | "events") => Some(vec!["eventType"]),
            (Form::WhenThen, "event" | "events" | "eventType") => Some(vec!["when", "type"]),
            (Form::WhenThen, "filePatterns") => Some(vec!["when", "patterns"]),
            (Form::WhenThen, "action") => Some(vec!["then"]),
            (Form::WhenThen, first) if is_of_action(first) => Some(vec!["then", first]),
            (Form::Events | Form::Modern, first) if is_of_action(first) && self.acts(root) => {
                Some(vec!["action", first])
            }
            (Form::Agent, "matcher") => {
                base = self.matcher_base()?;
                None
            }
            (Form::Agent, "action" | "args" | "dialect") => return fixed("it holds lines of shell only"),
            _ => None,
        };
        if let Some(home) = home {
            let home: Vec<String> = home.into_iter().map(str::to_owned).collect();
            keys.splice(..1, home);
        }
        Ok(Path { base, keys })
    }

    fn acts(&self, root: &Cursor<'_>) -> bool {
        root.node.at(&self.entry).is_some_and(|entry| index_of(entry, "action").is_some())
    }

    fn matcher_base(&self) -> Result<Vec<usize>, EditError> {
        match &self.group {
            Some(group) if group.hooks == 1 => Ok(group.steps.clone()),
            Some(group) => Err(EditError::Shared { key: "matcher".to_owned(), hooks: group.hooks }),
            None => Ok(self.entry.clone()),
        }
    }
}

impl Path {
    /// The map that has to change, and its key. Missing maps on the path become part of the value.
    pub(super) fn nested(&self, root: &Cursor<'_>, value: Value) -> (Value, KeyPosition) {
        let mut steps = self.base.clone();
        let mut keys = self.keys.iter();
        let mut key = keys.next().cloned().unwrap_or_default();
        for next in keys.clone() {
            let here = root.node.at(&steps);
            let Some(index) = here.and_then(|here| index_of(here, &key)) else { break };
            let inner = here.and_then(|here| here.at(&[index]));
            if !matches!(inner, Some(Node::Map(_))) {
                break;
            }
            steps.push(index);
            keys.next();
            key.clone_from(next);
        }
        let value = keys.rev().fold(value, |value, key| json!({ key: value }));
        let written = root.node.at(&steps).and_then(|here| written(here, &key));
        (value, KeyPosition { steps, key: written.unwrap_or(key) })
    }

    /// The map and the index of the key, if it is there.
    pub(super) fn found(&self, root: &Cursor<'_>) -> Option<(Vec<usize>, usize)> {
        let mut steps = self.base.clone();
        let (last, way) = self.keys.split_last()?;
        for key in way {
            steps.push(index_of(root.node.at(&steps)?, key)?);
        }
        let index = index_of(root.node.at(&steps)?, last)?;
        Some((steps, index))
    }
}

/// The hooks in lists under events.
fn listed(root: &Cursor<'_>, form: Form) -> Vec<HookPlace> {
    let wrapped = root.get("hooks");
    let mut all = Vec::new();
    for (_, list) in wrapped.as_ref().unwrap_or(root).entries() {
        for item in list.items() {
            let steps = item.spot(Part::Value).steps;
            let Some(hooks) = item.get("hooks").filter(|_| form == Form::Agent) else {
                all.push(HookPlace { form, entry: steps, group: None });
                continue;
            };
            let count = hooks.items().count();
            for entry in hooks.items() {
                let group = Some(Group { steps: steps.clone(), hooks: count });
                all.push(HookPlace { form, entry: entry.spot(Part::Value).steps, group });
            }
        }
    }
    all
}

/// The place of a new hook: the list to add it to, or the key of a map to set.
pub(super) fn slot(
    root: &Cursor<'_>,
    form: Form,
    event: &str,
    entry: &Map<String, Value>,
) -> (Vec<usize>, Option<String>, Value) {
    let hooks = root.get("hooks");
    // Without the `hooks` wrapper, every key is an event. An empty map has neither.
    let bare = hooks.is_none() && root.entries().next().is_some();
    if hooks.as_ref().is_none_or(|hooks| !matches!(hooks.node, Node::Map(_))) && !bare {
        return (Vec::new(), Some("hooks".to_owned()), events(form, event, entry));
    }
    let lists = hooks.as_ref().unwrap_or(root);
    let steps = lists.spot(Part::Value).steps;
    let Some(list) = lists.get(event).filter(|list| matches!(list.node, Node::List(_))) else {
        return (steps, Some(event.to_owned()), json!([item(form, entry)]));
    };
    if form == Form::Agent
        && let Some(group) = list.items().find(|group| matcher(group.node) == entry.get("matcher").cloned())
        && let Some(inner) = group.get("hooks").filter(|inner| matches!(inner.node, Node::List(_)))
    {
        return (inner.spot(Part::Value).steps, None, shell(entry));
    }
    (list.spot(Part::Value).steps, None, item(form, entry))
}

/// A whole file with this hook.
pub(super) fn fresh(form: Form, event: &str, entry: &Map<String, Value>) -> Value {
    match form {
        Form::Events | Form::Agent => json!({"hooks": events(form, event, entry)}),
        Form::Modern => {
            let mut hook = Map::new();
            hook.insert("eventType".to_owned(), event.into());
            hook.extend(entry.clone());
            Value::Object(hook)
        }
        Form::WhenThen => super::convert::split(event, entry),
    }
}

/// A map of events with only this hook.
pub(super) fn events(form: Form, event: &str, entry: &Map<String, Value>) -> Value {
    json!({ event: [item(form, entry)] })
}

/// A hook as an item of its list.
fn item(form: Form, entry: &Map<String, Value>) -> Value {
    if form != Form::Agent {
        return Value::Object(entry.clone());
    }
    let matcher = entry.get("matcher").cloned().unwrap_or_else(|| "*".into());
    json!({"matcher": matcher, "hooks": [shell(entry)]})
}

/// A hook as an entry of a group.
fn shell(entry: &Map<String, Value>) -> Value {
    let mut hook = Map::new();
    hook.insert("type".to_owned(), "command".into());
    hook.extend(entry.iter().filter(|(key, _)| *key != "matcher").map(|(key, value)| (key.clone(), value.clone())));
    Value::Object(hook)
}

fn matcher(group: &Node) -> Option<Value> {
    index_of(group, "matcher").and_then(|index| group.at(&[index])).map(Node::to_json)
}

/// The key as this map spells it.
fn written(node: &Node, key: &str) -> Option<String> {
    let Node::Map(entries) = node else { return None };
    entries.get(index_of(node, key)?).map(|(written, _)| written.clone())
}
