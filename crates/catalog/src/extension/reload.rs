//! Reading everything anew, for processes that live on.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;

use super::{Extension, Extensions, State, Surroundings, load};
use crate::problem::Problem;

/// What became different.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Those that were not there before.
    pub added: Vec<String>,
    /// Those that are gone.
    pub removed: Vec<String>,
    /// Those that are not what they were.
    pub updated: Vec<String>,
    /// Those that can no longer be read, and why; they stay as they were before.
    pub kept: Vec<(String, String)>,
}

impl Changes {
    /// Whether everything is as it was.
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }
}

/// The extensions there are now, and what became different since `previous`.
///
/// Manifests that nobody touched are not read again, and those that are still what they were are not understood anew. The
/// previous ones are not touched: who uses them goes on until the new ones are there as a whole. An extension that was on
/// and whose folder can no longer be understood stays what it was. Whether its hooks still run is up to their approval,
/// which covers the folder as it is.
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

/// Whether an extension was on and its manifest is now broken; a missing setting or dependency is a change, no failure.
fn is_broken_now(old: &Extension, new: &Extension) -> bool {
    old.is_on() && matches!(new.state, State::Failed(_)) && new.fingerprint != old.fingerprint
}

/// Nobody has to mend an extension to be rid of it.
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
