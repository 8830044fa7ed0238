//! The review of an extension before approval. It shows everything the extension brings or, if an earlier state was
//! approved, only what is new.

use std::path::Path;

use ollm_catalog::{Extension, ServerSpec, SettingKind, SettingSpec, validate_extension};
use ollm_protocol::{Hook, Rules};
use ollm_trust::{ExtensionFolder, Proposal, Review, Row, command_text, unusual_rows};
use serde_json::Value;

use crate::App;

/// The folder of an extension, with the rows for the person.
pub(crate) fn folder(extension: &Extension) -> ExtensionFolder {
    ExtensionFolder { rows: brings(extension), ..ExtensionFolder::new(&extension.name, &extension.root) }
}

/// Everything to review before it is approved.
pub(crate) fn review(extension: &Extension, proposal: &Proposal, uncovered: Vec<String>, app: &App) -> Review {
    let trust = &app.engine.trust;
    let mut review = trust.review(&folder(extension), proposal);
    if let Some(before) = trust.approved_extension(&extension.name, &extension.root) {
        review.rows = vec![("extension", title(extension)), ("folder", extension.root.display().to_string())];
        review.rows.extend(additions(extension, &before, &app.rules));
    }
    review.uncovered.extend(uncovered);
    review
}

/// The differences between the approved extension and the present one: what it newly brings, and what it no longer
/// brings.
pub fn additions(extension: &Extension, before: &Path, rules: &Rules) -> Vec<Row> {
    let (old, _) = validate_extension(before, rules);
    let mut rows = Vec::new();
    let (was, is) = (&old.manifest.version, &extension.manifest.version);
    if was != is {
        let lower = is_lower(is, was);
        rows.push(("version", format!("{was} → {is}{}", if lower { ", which is lower" } else { "" })));
    }
    let wider = extension.manifest.permissions.widened(&old.manifest.permissions);
    rows.extend(wider.into_iter().map(|text| ("widened", text)));
    let (old, new) = (parts(&old), parts(extension));
    let fresh = new.iter().filter(|part| !old.contains(part)).map(|(what, text)| ("added", format!("{what} {text}")));
    rows.extend(fresh);
    let gone = old.iter().filter(|part| !new.contains(part)).map(|(what, text)| ("removed", format!("{what} {text}")));
    rows.extend(gone);
    rows
}

/// Whether a version is lower than another.
fn is_lower(version: &str, than: &str) -> bool {
    let parse = |text: &str| semver::Version::parse(text).ok();
    matches!((parse(version), parse(than)), (Some(version), Some(than)) if version < than)
}

/// An extension in rows: what it is, and everything it brings.
pub fn brings(extension: &Extension) -> Vec<Row> {
    let manifest = &extension.manifest;
    let mut rows = vec![
        ("extension", title(extension)),
        ("folder", extension.root.display().to_string()),
        ("description", manifest.description.clone()),
    ];
    rows.extend(manifest.author.clone().map(|author| ("author", author)));
    rows.extend(manifest.license.clone().map(|license| ("license", license)));
    rows.extend(manifest.repository.clone().map(|repository| ("repository", repository)));
    rows.extend(parts(extension));
    rows
}

/// Its name and version.
pub fn title(extension: &Extension) -> String {
    format!("{} {}", extension.name, extension.manifest.version)
}

/// Everything it brings or needs. The lines do not depend on the location of its folder.
fn parts(extension: &Extension) -> Vec<Row> {
    let manifest = &extension.manifest;
    let hooks = extension.hooks.iter().flat_map(|hook| hook_rows(hook, &extension.root));
    let needs = manifest.dependencies.iter().map(|one| ("needs", format!("{} {}", one.name, one.range)));
    let servers = manifest.servers.iter().map(|(name, server)| ("server", format!("{name}: {server}")));
    let (specs, _) = extension.servers_in(&extension.root);
    let held = |spec: &ServerSpec| Some(spec.held_to()?.describe_as(spec.permissions.is_some()));
    let server_boxes = specs.iter().filter_map(|spec| Some(("box", format!("{}: {}", spec.name, held(spec)?))));
    let server_boxes: Vec<Row> = server_boxes.collect();
    let permissions = manifest.permissions.lines().into_iter().map(|line| ("permission", line));
    let settings = manifest.settings.iter().map(|setting| ("setting", setting_line(setting)));
    let skills = extension.skills().0.into_iter().map(|one| ("skill", format!("{}: {}", one.name, one.description)));
    let programs = needs.chain(hooks).chain(servers).chain(server_boxes);
    programs.chain(permissions).chain(settings).chain(skills).collect()
}

/// A hook in rows: its program and events first, then everything unusual about it.
fn hook_rows(hook: &Hook, root: &Path) -> Vec<Row> {
    let events: Vec<&str> = hook.events.iter().map(|kind| kind.name()).collect();
    let (folder, inside) = (root.display().to_string(), format!("{}/", root.display()));
    let here = |text: &str| text.replace(&inside, "").replace(&folder, ".");
    let (name, command) = (&hook.spec.name, here(&command_text(hook)));
    let line = format!("{name} at {} ({}): {command}", events.join(", "), hook.matcher.text());
    let more = unusual_rows(hook).into_iter().map(|(what, text)| (what, format!("{name}: {}", here(&text))));
    std::iter::once(("hook", line)).chain(more).collect()
}

/// A setting with everything that decides its value; parts that may reveal a secret are left out.
fn setting_line(setting: &SettingSpec) -> String {
    let SettingSpec { name, description, kind, env_var, sensitive, required, default, choices, pattern } = setting;
    let marks = [("required", *required), ("sensitive", *sensitive), (kind.name(), *kind != SettingKind::Text)];
    let mut marks: Vec<String> = marks.iter().filter(|(_, on)| *on).map(|(mark, _)| (*mark).to_owned()).collect();
    marks.extend(env_var.as_ref().map(|name| format!("from {name}")));
    if !sensitive {
        marks.extend(default.as_ref().map(|value| format!("default {value}")));
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        marks.extend((!choices.is_empty()).then(|| format!("one of {}", choices.join(" "))));
        marks.extend(pattern.as_ref().map(|pattern| format!("matches {pattern}")));
    }
    let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
    format!("{name}{marks}: {description}")
}
