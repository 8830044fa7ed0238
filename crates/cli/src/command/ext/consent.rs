//! What a person sees before they approve an extension: everything it brings, or, if an earlier state of it was approved,
//! only what is new.
//!
//! Files are shown from the copy that the approval will be bound to: what is seen is what is approved.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use ollm_app::App;
use ollm_catalog::{Address, Extension, SettingSpec, validate_extension};
use ollm_engine::Bundle;
use ollm_protocol::{Hook, Rules};

use super::difference;
use super::info::lines;
use crate::command::hook::{command_line, content};

/// The text to be shown before the question.
pub(super) fn text(extension: &Extension, bundle: &Bundle, app: &App) -> String {
    match app.engine.trust.approved_bundle(&extension.name, &extension.root) {
        Some(before) => changed(extension, &before, bundle, app),
        None => whole(extension, bundle),
    }
}

/// Everything, with the scripts.
fn whole(extension: &Extension, bundle: &Bundle) -> String {
    let mut rows = brings(extension);
    rows.push(("files", difference::names(bundle.copy())));
    rows.push(("digest", bundle.digest.to_string()));
    let mut text = lines(&rows);
    let mut shown: Vec<PathBuf> = Vec::new();
    let of_hooks = extension.hooks.iter().filter_map(|hook| hook.script());
    let of_hooks = of_hooks.map(|script| script.strip_prefix(&extension.root).unwrap_or(script).to_owned());
    for place in of_hooks.chain(run_by_servers(extension, bundle.copy())) {
        if !shown.contains(&place) {
            let _ = write!(text, "\n--- {}\n{}\n---\n", place.display(), content(&bundle.copy().join(&place)));
            shown.push(place);
        }
    }
    text.push_str(&unseen(bundle, &shown));
    text
}

/// What is approved without having been shown: a script may load any of it.
fn unseen(bundle: &Bundle, shown: &[PathBuf]) -> String {
    let is_shown = |place: &PathBuf| shown.contains(place) || place == Path::new("manifest.json");
    let folder = bundle.copy().display();
    match difference::places(bundle.copy()).iter().filter(|place| !is_shown(place)).count() {
        0 => String::new(),
        1 => format!("\n1 more file is approved with these and not shown here; read it in {folder}\n"),
        more => format!("\n{more} more files are approved with these and not shown here; read them in {folder}\n"),
    }
}

/// The files of the extension that its servers name.
fn run_by_servers(extension: &Extension, copy: &Path) -> Vec<PathBuf> {
    let (servers, _) = extension.servers_in(copy);
    let words = servers.into_iter().flat_map(|server| match server.address {
        Address::Command { command, args, .. } => std::iter::once(command).chain(args).collect::<Vec<_>>(),
        Address::Url { .. } => Vec::new(),
    });
    words.filter_map(|word| Path::new(&word).strip_prefix(copy).map(Path::to_owned).ok()).collect()
}

/// What differs from what was approved: the additions first, then the files.
fn changed(extension: &Extension, before: &Path, bundle: &Bundle, app: &App) -> String {
    let mut rows = vec![("extension", title(extension)), ("folder", extension.root.display().to_string())];
    rows.extend(additions(extension, before, &app.rules));
    rows.push(("digest", bundle.digest.to_string()));
    format!("{}\n{}", lines(&rows), difference::text(before, bundle.copy()))
}

/// What an extension brings now that it did not when it was approved, and what it no longer brings.
pub(super) fn additions(extension: &Extension, before: &Path, rules: &Rules) -> Vec<(&'static str, String)> {
    let (old, _) = validate_extension(before, rules);
    let mut rows = Vec::new();
    let (was, is) = (&old.manifest.version, &extension.manifest.version);
    if was != is {
        let lower = difference::is_lower(is, was);
        rows.push(("version", format!("{was} → {is}{}", if lower { ", which is lower" } else { "" })));
    }
    let (old, new) = (parts(&old), parts(extension));
    let fresh = new.iter().filter(|part| !old.contains(part)).map(|(what, text)| ("added", format!("{what} {text}")));
    rows.extend(fresh);
    let gone = old.iter().filter(|part| !new.contains(part)).map(|(what, text)| ("removed", format!("{what} {text}")));
    rows.extend(gone);
    rows
}

/// An extension in rows: what it is, and everything it brings.
pub(super) fn brings(extension: &Extension) -> Vec<(&'static str, String)> {
    let manifest = &extension.manifest;
    let mut rows = vec![
        ("extension", title(extension)),
        ("folder", extension.root.display().to_string()),
        ("description", manifest.description.clone()),
    ];
    rows.extend(manifest.author.clone().map(|author| ("author", author)));
    rows.extend(manifest.license.clone().map(|license| ("license", license)));
    rows.extend(manifest.repository.clone().map(|repository| ("repository", repository)));
    rows.extend(manifest.dependencies.iter().map(|one| ("needs", format!("{} {}", one.name, one.range))));
    rows.extend(parts(extension));
    rows
}

fn title(extension: &Extension) -> String {
    format!("{} {}", extension.name, extension.manifest.version)
}

/// Everything it brings or wants, each on a line that does not depend on where its folder is.
fn parts(extension: &Extension) -> Vec<(&'static str, String)> {
    let manifest = &extension.manifest;
    let hooks = extension.hooks.iter().map(|hook| ("hook", hook_line(hook, &extension.root)));
    let servers = manifest.servers.iter().map(|(name, server)| ("server", format!("{name}: {server}")));
    let permissions = manifest.permissions.lines().into_iter().map(|line| ("permission", line));
    let settings = manifest.settings.iter().map(|setting| ("setting", setting_line(setting)));
    let skills = extension.skills().0.into_iter().map(|one| ("skill", format!("{}: {}", one.name, one.description)));
    hooks.chain(servers).chain(permissions).chain(settings).chain(skills).collect()
}

fn hook_line(hook: &Hook, root: &Path) -> String {
    let events: Vec<&str> = hook.events.iter().map(|kind| kind.name()).collect();
    let folder = format!("{}/", root.display());
    let command = command_line(hook).replace(&folder, "");
    format!("{} at {} ({}): {command}", hook.spec.name, events.join(", "), hook.matcher.text())
}

fn setting_line(setting: &SettingSpec) -> String {
    let marks = [("required", setting.required), ("sensitive", setting.sensitive)];
    let mut marks: Vec<String> = marks.iter().filter(|(_, on)| *on).map(|(mark, _)| (*mark).to_owned()).collect();
    marks.extend(setting.env_var.as_ref().map(|name| format!("from {name}")));
    let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
    format!("{}{marks}: {}", setting.name, setting.description)
}
