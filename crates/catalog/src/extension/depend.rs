//! Resolves dependencies between extensions: their order, and which cannot be on without another.

use ollm_protocol::{Code, Layer, Remedy};

use super::fault::{Fault, Field};
use super::{Dependency, Extension, ExtensionState};

/// Removes extensions with an unmet dependency, and sorts each after those it needs.
pub(super) fn settle(all: &mut Vec<Extension>) {
    if all.iter().all(|extension| extension.manifest.dependencies.is_empty()) {
        return;
    }
    refuse_cycles(all);
    // If an extension needs one that was just removed, it is removed next. Each round removes at least one, or is the
    // last.
    while let Some((index, fault)) = first_unmet(all) {
        if let Some(extension) = all.get_mut(index) {
            extension.fail(fault);
        }
    }
    order(all);
}

/// Refuses extensions that depend on themselves, each with the cycle.
fn refuse_cycles(all: &mut [Extension]) {
    let cycles: Vec<(usize, Fault)> = (0..all.len())
        .filter(|index| all.get(*index).is_some_and(Extension::is_on))
        .filter_map(|index| Some((index, cycle(all, index)?)))
        .collect();
    for (index, fault) in cycles {
        if let Some(extension) = all.get_mut(index) {
            extension.fail(fault);
        }
    }
}

/// The shortest cycle from an extension back to itself.
fn cycle(all: &[Extension], start: usize) -> Option<Fault> {
    let mut from: Vec<Option<usize>> = vec![None; all.len()];
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for next in needed(all, at) {
            if next == start {
                return Some(way(all, &from, start, at));
            }
            if let Some(place) = from.get_mut(next).filter(|place| place.is_none()) {
                *place = Some(at);
                queue.push_back(next);
            }
        }
    }
    None
}

fn way(all: &[Extension], from: &[Option<usize>], start: usize, last: usize) -> Fault {
    let mut steps = vec![start, last];
    let mut at = last;
    while let Some(before) = from.get(at).copied().flatten().filter(|_| at != start) {
        steps.push(before);
        at = before;
    }
    if last == start {
        steps.truncate(2);
    }
    steps.reverse();
    let names: Vec<&str> = steps.iter().filter_map(|step| all.get(*step)).map(|one| one.name.as_str()).collect();
    Fault {
        code: Code::MissingDependency,
        at: Field::Needed(names.get(1).copied().unwrap_or_default().to_owned()),
        message: format!("it needs itself: {}", names.join(" → ")),
        help: Some("remove one of these dependencies".to_owned()),
        remedy: None,
    }
}

/// The dependencies of an extension that are on.
fn needed(all: &[Extension], index: usize) -> Vec<usize> {
    let dependencies = all.get(index).map(|extension| extension.manifest.dependencies.as_slice()).unwrap_or_default();
    dependencies.iter().filter_map(|dependency| position(all, dependency)).collect()
}

fn position(all: &[Extension], dependency: &Dependency) -> Option<usize> {
    all.iter().position(|extension| extension.name == dependency.name && extension.is_on())
}

/// The first extension with an unmet dependency, and the fault.
fn first_unmet(all: &[Extension]) -> Option<(usize, Fault)> {
    let mut on = all.iter().enumerate().filter(|(_, extension)| extension.is_on());
    on.find_map(|(index, extension)| {
        let mut dependencies = extension.manifest.dependencies.iter();
        Some((index, dependencies.find_map(|dependency| unmet(all, extension.layer, dependency))?))
    })
}

/// The unmet dependencies of an extension that is not among these.
pub(super) fn lacking(all: &[Extension], extension: &Extension) -> Vec<Fault> {
    // Its future place is unknown. An extension of a project may use both the user's and the project's.
    let unmet = |dependency| unmet(all, Layer::Workspace, dependency);
    extension.manifest.dependencies.iter().filter_map(unmet).collect()
}

fn unmet(all: &[Extension], layer: Layer, dependency: &Dependency) -> Option<Fault> {
    let Dependency { name, range } = dependency;
    let needed = |message: String| Fault {
        code: Code::MissingDependency,
        at: Field::Needed(name.clone()),
        message,
        help: None,
        remedy: None,
    };
    let by = |message: String, remedy: Remedy| Some(Fault { remedy: Some(Box::new(remedy)), ..needed(message) });
    let Some(found) = all.iter().find(|one| one.name == *name && one.is_on()) else {
        return match all.iter().find(|one| one.name == *name).map(|one| &one.state) {
            None => {
                let message = format!("it needs the extension `{name}` ({range}), which is not there");
                Some(Fault { help: Some("install it".to_owned()), ..needed(message) })
            }
            Some(ExtensionState::Off(_)) => {
                let message = format!("it needs the extension `{name}`, which is switched off");
                by(message, Remedy::EnableExtension(name.clone()))
            }
            Some(ExtensionState::Failed(_) | ExtensionState::On) => {
                let message = format!("it needs the extension `{name}`, which cannot be loaded");
                by(message, Remedy::ShowExtension(name.clone()))
            }
        };
    };
    let version = &found.manifest.version;
    if dependency.accepts_release_of(version) {
        let message = format!("it needs `{name}` {range}, but version {version} is there, which is a pre-release");
        let help = format!("a pre-release must be named in the range, such as \">={version}\"");
        return Some(Fault { at: Field::Range(name.clone()), help: Some(help), ..needed(message) });
    }
    if !dependency.accepts(version) {
        let message = format!("it needs `{name}` {range}, but version {version} is there");
        let help = "update one of the two".to_owned();
        return Some(Fault { at: Field::Range(name.clone()), help: Some(help), ..needed(message) });
    }
    if layer == Layer::User && found.layer == Layer::Workspace {
        let message = format!("it needs `{name}`, which only this project has");
        return Some(Fault { help: Some("install it for yourself".to_owned()), ..needed(message) });
    }
    None
}

/// Sorts each after those it needs, with the user's before the project's; otherwise keeps the order.
fn order(all: &mut Vec<Extension>) {
    let mut ordered: Vec<usize> = Vec::with_capacity(all.len());
    for index in 0..all.len() {
        visit(all, index, &mut ordered);
    }
    let mut places: Vec<Option<Extension>> = std::mem::take(all).into_iter().map(Some).collect();
    all.extend(ordered.into_iter().filter_map(|index| places.get_mut(index)?.take()));
    all.sort_by_key(|extension| extension.layer);
}

/// Visits dependencies first. The extensions that are on have no cycles, so this ends.
fn visit(all: &[Extension], index: usize, ordered: &mut Vec<usize>) {
    let mut open = vec![(index, false)];
    while let Some((at, done)) = open.pop() {
        if ordered.contains(&at) {
            continue;
        }
        if done {
            ordered.push(at);
            continue;
        }
        open.push((at, true));
        if all.get(at).is_some_and(Extension::is_on) {
            open.extend(needed(all, at).into_iter().rev().map(|next| (next, false)));
        }
    }
}
