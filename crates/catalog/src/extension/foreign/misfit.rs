//! Removes the parts of a translated manifest that our own reader refuses, so that they hide no other part.

use std::collections::BTreeMap;
use std::path::Path;

use ollm_protocol::Rules;
use serde_json::Value;

use super::TranslatedPackage;
use crate::extension::read::problems_of;
use crate::problem::Severity;

/// A part of a manifest that is removed as a whole.
struct ManifestItem {
    /// Its path in problems.
    field: String,
    /// The part around it, as a JSON pointer, and its name or index there.
    inside: String,
    key: String,
    /// Its description for people.
    shown: String,
}

/// Removes the refused parts, and lists them.
pub(super) fn leave_out_misfits(foreign: &mut TranslatedPackage, root: &Path, rules: &Rules) {
    // If two parts have the same name, removing one makes the other valid. Each round removes at least one part, or is
    // the last.
    while leave_out_some(foreign, root, rules) {}
}

fn leave_out_some(foreign: &mut TranslatedPackage, root: &Path, rules: &Rules) -> bool {
    let mut items = items(&foreign.manifest);
    let mut refused: BTreeMap<usize, String> = BTreeMap::new();
    for problem in problems_of(root, foreign.to_bytes(), rules) {
        let holder = || items.iter().position(|item| item.holds(&problem.field));
        if let Some(at) = (problem.severity <= Severity::Error).then(holder).flatten() {
            refused.entry(at).or_insert(problem.message);
        }
    }
    let any = !refused.is_empty();
    // Removes the last part first, so that the indexes of the others stay valid.
    for (at, why) in refused.into_iter().rev() {
        let item = items.remove(at);
        item.take_from(&mut foreign.manifest);
        foreign.left.push(format!("{}: {why}", item.shown));
    }
    any
}

impl ManifestItem {
    fn new(field: String, inside: &str, key: String, what: &str, name: &str) -> ManifestItem {
        ManifestItem { field, inside: format!("/{inside}"), key, shown: format!("the {what} `{name}`") }
    }

    /// Whether a field is this item, or lies in it.
    fn holds(&self, field: &str) -> bool {
        field.strip_prefix(self.field.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }

    fn take_from(&self, manifest: &mut Value) {
        match manifest.pointer_mut(&self.inside) {
            Some(Value::Object(map)) => _ = map.shift_remove(&self.key),
            Some(Value::Array(list)) => {
                if let Ok(at) = self.key.parse::<usize>()
                    && at < list.len()
                {
                    list.remove(at);
                }
            }
            _ => {}
        }
    }
}

/// The parts of a manifest, each after the earlier ones in its list.
fn items(manifest: &Value) -> Vec<ManifestItem> {
    let mut items = Vec::new();
    let map = |key: &str| manifest.get(key).and_then(Value::as_object).into_iter().flatten();
    for (name, _) in map("mcpServers") {
        items.push(ManifestItem::new(format!("mcpServers.{name}"), "mcpServers", name.clone(), "server", name));
    }
    for (event, list) in map("hooks") {
        items.extend(of_list(list, &format!("hooks.{event}"), &format!("hooks/{event}"), "hook"));
    }
    for (part, what) in [("settings", "setting"), ("skills", "skill")] {
        items.extend(manifest.get(part).into_iter().flat_map(|list| of_list(list, part, part, what)));
    }
    items
}

fn of_list(list: &Value, field: &str, inside: &str, what: &str) -> Vec<ManifestItem> {
    let item = |(at, value): (usize, &Value)| {
        let name = value.get("name").and_then(Value::as_str).unwrap_or_default();
        ManifestItem::new(format!("{field}[{at}]"), inside, at.to_string(), what, name)
    };
    list.as_array().into_iter().flatten().enumerate().map(item).collect()
}
