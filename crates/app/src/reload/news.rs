//! Lists the changes of a reload for a person in a chat.

use std::collections::BTreeMap;
use std::sync::Arc;

use ollm_catalog::{Config, Extension, ExtensionState};
use ollm_protocol::{Hook, Remedy, Source};
use ollm_store::Digest;
use ollm_trust::Standing;

use crate::app::App;

/// Further names are only counted.
const MOST_NAMES: usize = 5;

/// The changes of a reload, each in a few words. Changes of servers are reported elsewhere.
pub(super) fn between(before: &App, after: &App) -> Vec<String> {
    let mut news = extensions(before, after);
    news.extend(hooks(before, after));
    let settings = different(&settings(&before.config), &settings(&after.config));
    news.extend(listed("settings changed", &[settings.added, settings.changed, settings.removed].concat()));
    let fresh = after.problems.iter().filter(|problem| !before.problems.contains(problem));
    let told = |file: &_| after.kept.contains_key(file) || after.extensions.iter().any(|one| one.file() == *file);
    news.extend(fresh.filter(|problem| !told(&problem.file)).map(ToString::to_string));
    news
}

fn extensions(before: &App, after: &App) -> Vec<String> {
    let changes = &after.changes;
    let mut news: Vec<String> = Vec::new();
    for name in changes.added.iter().chain(&changes.updated) {
        let Some(extension) = after.extensions.get(name) else { continue };
        news.push(format!("extension `{name}` {}", standing(extension, before, after)));
    }
    news.extend(changes.removed.iter().map(|name| format!("extension `{name}` is gone")));
    let kept = changes.kept.iter().filter(|kept| !before.changes.kept.contains(kept));
    news.extend(kept.map(|(name, why)| format!("extension `{name}` stays as it was: {why}")));
    news
}

fn standing(extension: &Extension, before: &App, after: &App) -> String {
    let was = before.extensions.iter().find(|one| one.root == extension.root).map(|one| one.state.clone());
    let said = match (&extension.state, was) {
        (ExtensionState::Off(_), _) => return "is off".to_owned(),
        (ExtensionState::Failed(why), _) => return format!("is not loaded: {why}"),
        (ExtensionState::On, None) => "is new",
        (ExtensionState::On, Some(ExtensionState::On)) => "changed",
        (ExtensionState::On, Some(_)) => "is on",
    };
    let trust = &after.engine.trust;
    let digest = trust.tree_digest(&extension.root).ok();
    let approved = digest.map(|digest| trust.extension_standing(&extension.name, &extension.root, &digest));
    match approved {
        Some(Standing::Approved | Standing::Limited) => said.to_owned(),
        _ => format!("{said}, and {}", waits(&extension.name, after)),
    }
}

fn waits(extension: &str, app: &App) -> String {
    match app.context().commands.command(&Remedy::ApproveExtension(extension.to_owned())) {
        Some(command) => format!("waits for `{command}`"),
        None => "waits for approval".to_owned(),
    }
}

/// The approved extensions that have changed since their approval, with their present digests.
pub(super) type LapsedApprovals = BTreeMap<String, Digest>;

/// The approved extensions whose folder has changed. A change of a manifest is reported as a change of the extension.
pub(super) fn lapsed(app: &App) -> LapsedApprovals {
    let trust = &app.engine.trust;
    let told = |name: &String| app.changes.updated.contains(name) || app.changes.added.contains(name);
    let kept = |name: &String| app.changes.kept.iter().any(|(kept, _)| kept == name);
    let on = app.extensions.iter().filter(|one| one.is_on() && !told(&one.name) && !kept(&one.name));
    let lapsed = |one: &Extension| {
        trust.approved_extension(&one.name, &one.root)?;
        let digest = trust.tree_digest(&one.root).ok()?;
        let is_lapsed = trust.extension_standing(&one.name, &one.root, &digest) == Standing::Modified;
        is_lapsed.then(|| (one.name.clone(), digest))
    };
    on.filter_map(lapsed).collect()
}

/// The messages about such extensions that the person was not told of yet.
pub(super) fn lapses(known: &LapsedApprovals, now: &LapsedApprovals, app: &App) -> Vec<String> {
    let fresh = now.iter().filter(|(name, digest)| known.get(*name) != Some(*digest));
    fresh.map(|(name, _)| format!("files of the extension `{name}` changed, and it {}", waits(name, app))).collect()
}

/// The hooks of hook files; an extension's hooks are reported with the extension.
fn hooks(before: &App, after: &App) -> Vec<String> {
    let difference = different(&own(before), &own(after));
    let mut news = Vec::new();
    news.extend(listed("new hooks", &difference.added));
    news.extend(listed("hooks changed", &difference.changed));
    news.extend(listed("hooks gone", &difference.removed));
    let kept = after.kept.iter().filter(|(file, why)| before.kept.get(*file) != Some(*why));
    news.extend(kept.map(|(_, why)| format!("hooks stay as they were: {why}")));
    news
}

fn own(app: &App) -> BTreeMap<String, String> {
    let own = |hook: &Arc<Hook>| hook.spec.source != Source::Builtin && hook.spec.extension.is_none();
    let hooks = app.hooks().into_iter().filter(own);
    // Everything about a hook except its place in a file.
    hooks
        .map(|hook| (hook.id().to_owned(), format!("{} {:?} {}", hook.definition(), hook.off, hook.spec.enabled)))
        .collect()
}

fn settings(config: &Config) -> BTreeMap<String, String> {
    config.settings().into_iter().map(|setting| (setting.path, setting.value.to_string())).collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Difference {
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
}

fn different(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Difference {
    let names = |map: &BTreeMap<String, String>, take: &dyn Fn(&String, &String) -> bool| {
        map.iter().filter(|(name, text)| take(name, text)).map(|(name, _)| name.clone()).collect()
    };
    Difference {
        added: names(after, &|name, _| !before.contains_key(name)),
        changed: names(after, &|name, text| before.get(name).is_some_and(|was| was != text)),
        removed: names(before, &|name, _| !after.contains_key(name)),
    }
}

fn listed(what: &str, names: &[String]) -> Option<String> {
    let shown = names.get(..MOST_NAMES.min(names.len())).unwrap_or_default().join(", ");
    let more = names.len().saturating_sub(MOST_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("{what}: {shown}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_what_came_went_and_changed() {
        let map =
            |pairs: &[(&str, &str)]| pairs.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
        let found = different(&map(&[("a", "1"), ("b", "1"), ("c", "1")]), &map(&[("b", "1"), ("c", "2"), ("d", "1")]));
        let names = |name: &str| vec![name.to_owned()];
        assert_eq!(found, Difference { added: names("d"), changed: names("c"), removed: names("a") });
    }

    #[test]
    fn long_lists_are_counted() {
        let names: Vec<String> = (0..7).map(|number| number.to_string()).collect();
        assert_eq!(listed("new", &names).as_deref(), Some("new: 0, 1, 2, 3, 4 and 2 more"));
        assert_eq!(listed("new", &[]), None);
    }
}
