//! Reads all extensions again, for long-lived processes.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;

use super::{Extension, ExtensionState, Extensions, Surroundings, load};
use crate::problem::Problem;

/// The differences after reading again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Extensions that are new.
    pub added: Vec<String>,
    /// Extensions that no longer exist.
    pub removed: Vec<String>,
    /// Extensions that have changed.
    pub updated: Vec<String>,
    /// Extensions that are now unreadable, with the reason; they stay in their earlier state.
    pub kept: Vec<(String, String)>,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }
}

/// The present extensions, and the differences to `previous`.
///
/// Unchanged manifests are not read again, and manifests with the same content are not parsed again. The previous
/// extensions stay unchanged, and their users continue with them until the new ones are complete. If an extension was
/// on and its folder is now invalid, it stays in its earlier state. Its approval, which covers the present folder,
/// decides whether its hooks still run.
pub fn reload(previous: &Extensions, surroundings: &Surroundings<'_>) -> (Extensions, Changes, Vec<Problem>) {
    let (mut fresh, problems) = load(surroundings, previous);
    let mut changes = Changes::default();
    let known: HashMap<&OsStr, &Extension> = previous.iter().map(|old| (old.root.as_os_str(), old)).collect();
    for new in &mut fresh.all {
        let old = known.get(new.root.as_os_str()).copied();
        match old {
            None => changes.added.push(new.name.clone()),
            Some(old) if is_broken_now(old, new) && !is_switched_off(old, surroundings) => {
                let why = new.error().unwrap_or_default().to_owned();
                *new = old.clone();
                changes.kept.push((new.name.clone(), why));
            }
            Some(old) if !is_same(old, new) => changes.updated.push(new.name.clone()),
            Some(_) => {}
        }
    }
    let there: HashSet<&OsStr> = fresh.iter().map(|new| new.root.as_os_str()).collect();
    let is_gone = |old: &&Extension| !there.contains(old.root.as_os_str());
    changes.removed = previous.all.iter().filter(is_gone).map(|old| old.name.clone()).collect();
    (fresh, changes, problems)
}

/// Whether an extension was on and its manifest is now broken. A missing setting or dependency does not count as
/// broken.
fn is_broken_now(old: &Extension, new: &Extension) -> bool {
    old.is_on() && matches!(new.state, ExtensionState::Failed(_)) && new.fingerprint != old.fingerprint
}

/// Whether a person switched it off: a broken extension can be switched off without repairing it.
fn is_switched_off(old: &Extension, surroundings: &Surroundings<'_>) -> bool {
    surroundings.switches.get(&old.switch_name(), surroundings.now).is_some_and(|switch| !switch.on)
}

fn is_same(old: &Extension, new: &Extension) -> bool {
    let variables = |one: &Extension| one.hooks.first().map(|hook| hook.settings.clone());
    old.fingerprint == new.fingerprint
        && old.state == new.state
        && old.values == new.values
        && variables(old) == variables(new)
}
