//! `ollm ext uninstall`: removes an extension's folder and all our data about it.
//!
//! The folder comes last. If we are killed in between, the extension is still there, unapproved, and can be removed
//! again.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use ollm_app::install::Holding;
use ollm_app::servers::Servers;
use ollm_app::{App, AppContext, install, refuse_agents, secrets, switch_name};
use ollm_catalog::{Extension, Index, Origin, drop_snapshots, forget_extension_settings, validate_extension};
use ollm_protocol::{Code, Layer};
use ollm_store::{Switches, one_line, set_switches};
use serde_json::json;

use super::list::strays;
use super::{named, revoke, scope};
use crate::ask::{PickedChoice, YES};
use crate::error::Failure;
use crate::output::Output;

pub(super) fn run(name: &str, yes: bool, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "remove extensions")?;
    install::recover(context)?;
    let app = App::load(context)?;
    // What was listed can be removed, also half of an extension.
    let strays = strays(&app, context);
    let stray = strays.iter().map(|(stray, _)| stray).find(|stray| stray.name == name);
    let extension = match stray.filter(|_| app.extensions.get(name).is_none()) {
        Some(stray) => stray,
        None => named(name, &app)?,
    };
    let folder = removable(extension, &app)?;
    let question = format!("Remove {} with everything in it?", folder.display());
    if !yes {
        output.asker().confirm(&question, name)?;
    }
    let servers = Servers::load(context)?;
    let mut secrets = kept_secrets(extension);
    secrets.extend(servers.logins(&extension.file()).into_iter().map(|name| format!("the login to server `{name}`")));
    let drops_secrets = yes || secrets.is_empty() || wants_secrets_gone(&secrets, extension, output);
    // While it holds the folder, no update can start.
    let installed = Holding::of_place(&extension.name, &folder, context)?;
    let own = installed.as_ref();
    install::pins(context)?;
    // The approval goes first: if we are killed in between, no incomplete extension stays approved.
    revoke(extension, &app)?;
    if own.is_some() {
        install::set_pin(&extension.name, None, context)?;
    }
    forget(extension, drops_secrets, context)?;
    unset(extension, &app, context)?;
    app.engine.trust.drop_copies(&|copy| validate_extension(copy, &app.rules).0.name == extension.name);
    Index::load(&context.extension_names()).forget(&extension.root);
    for why in servers.forget(&extension.file(), drops_secrets)? {
        output.tell(&why);
    }
    if let Some(folder) = context.snapshots() {
        drop_snapshots(&folder);
    }
    let unsettled = match own {
        Some(own) => own.remove(&extension.name).map_err(|error| stays(&folder, &error))?,
        None => remove(&folder).map(|()| None)?,
    };
    if let Some(why) = unsettled {
        output.tell(&format!("`{name}` was uninstalled, but not everything of it was removed: {why}"));
    }
    if !drops_secrets {
        output.tell(&format!("its secrets stay: {}", secrets.join(", ")));
    }
    output.changed(json!({"extension": name, "removed": true}));
    output.line(&one_line(&format!("{name} was removed")))
}

/// The sensitive settings that have a value with us.
fn kept_secrets(extension: &Extension) -> Vec<String> {
    let kept = extension.values.iter().filter(|value| value.spec.sensitive && value.is_set());
    let kept = kept.filter(|value| !matches!(value.origin, Origin::Variable(_)));
    kept.map(|value| value.spec.name.clone()).collect()
}

/// Whether a person wants the secrets gone as well.
fn wants_secrets_gone(secrets: &[String], extension: &Extension, output: &Output) -> bool {
    let question = format!("Remove the secrets of {} too ({})?", extension.name, secrets.join(", "));
    matches!(output.asker().choose(&question, YES, &|| false), PickedChoice::One(()))
}

/// Takes its settings out of the user's configuration.
fn unset(extension: &Extension, app: &App, context: &AppContext) -> Result<(), Failure> {
    // Another extension with this name still needs them.
    if extension.layer != Layer::User || app.extensions.iter().filter(|one| one.name == extension.name).count() > 1 {
        return Ok(());
    }
    forget_extension_settings(&context.places, &extension.name).map(drop).map_err(|error| {
        let message = format!("extensions.settings.{} stays in your configuration: {error}", extension.name);
        Failure::new(Code::NotWritten, message).hint("take it out by hand, then remove the extension again")
    })
}

/// The folder or link to remove, which is directly in a directory of extensions. Nothing else is ever removed.
fn removable(extension: &Extension, app: &App) -> Result<std::path::PathBuf, Failure> {
    let entries = app.directories.iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten().flatten();
    let mut paths = entries.map(|entry| entry.path());
    let found = paths.find(|path| {
        let leads = |path: &Path| path.canonicalize().ok();
        *path == extension.root || (leads(path).is_some() && leads(path) == leads(&extension.root))
    });
    found.ok_or_else(|| {
        let message = format!("{} lies in no directory of extensions and is left alone", extension.root.display());
        Failure::new(Code::NotWritten, message)
    })
}

fn remove(folder: &Path) -> Result<(), Failure> {
    let is_link = folder.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    let removed = if is_link { fs::remove_file(folder) } else { fs::remove_dir_all(folder) };
    removed.map_err(|error| stays(folder, &error))
}

fn stays(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Code::NotWritten, format!("{} cannot be removed: {error}", folder.display()))
        .hint("its approval is withdrawn already; remove the rest by hand")
}

/// Its switch, those of its hooks, and its secrets.
fn forget(extension: &Extension, drops_secrets: bool, context: &AppContext) -> Result<(), Failure> {
    let unwritten = |error: ollm_store::UpdateError| Failure::new(Code::NotWritten, error.to_string());
    if context.switches().exists() {
        let changes: Vec<_> = switches(extension, context).into_iter().map(|name| (name, None)).collect();
        set_switches(&context.switches(), &changes, SystemTime::now()).map_err(unwritten)?;
    }
    if !drops_secrets {
        return Ok(());
    }
    let names = extension.manifest.settings.iter().map(|setting| extension.secret_name(&setting.name));
    let names: Vec<String> = names.collect();
    secrets::remove(&names, context).map(drop).map_err(|failure| {
        let message = format!("the folder stays, because {}", failure.message);
        Failure::new(Code::NoSecret, message).hint("what is filed under `ollm` in the system keyring can go by hand")
    })
}

/// Everything of it that was switched, also hooks that it had in another version.
fn switches(extension: &Extension, context: &AppContext) -> Vec<String> {
    let own: Vec<String> = extension.hooks.iter().map(|hook| switch_name(&hook.spec)).collect();
    let prefix = format!("hook:{}:{}:", scope(extension), extension.name);
    let place = match extension.layer {
        Layer::User => String::new(),
        Layer::Workspace => format!("@{}", extension.root.display()),
    };
    let (switches, _) = Switches::load(&context.switches());
    let is_older = |name: &str| name.starts_with(&prefix) && name.ends_with(&place);
    let of_hooks = switches.names().filter(|name| is_older(name) || own.iter().any(|own| own == name));
    of_hooks.map(str::to_owned).chain([extension.switch_name()]).collect()
}
