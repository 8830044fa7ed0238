//! `ollm ext uninstall`: an extension's folder goes, and all we know about it.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use ollm_app::{App, AppContext, refuse_agents, secrets, switch_name};
use ollm_catalog::{Extension, Index};
use ollm_protocol::{Code, Layer};
use ollm_store::{Switches, one_line, set_switches};
use serde_json::json;

use super::list::strays;
use super::{named, revoke, scope};
use crate::ask::confirm;
use crate::error::Failure;
use crate::output::Output;

pub(super) fn run(name: &str, yes: bool, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "remove extensions")?;
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
        confirm(&question, name)?;
    }
    // What could run goes first: killed in between, nothing is left that is approved and half there.
    revoke(extension, &app)?;
    remove(&folder)?;
    forget(extension, context)?;
    output.changed(json!({"extension": name, "removed": true}));
    output.line(&one_line(&format!("{name} is gone")))
}

/// The folder, or the link to it, directly in one of the directories of extensions; nothing else is ever removed.
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
    removed.map_err(|error| {
        Failure::new(Code::NotWritten, format!("{} cannot be removed: {error}", folder.display()))
            .hint("its approval is withdrawn already; remove the rest by hand")
    })
}

/// Its name, its switch, those of its hooks, and its secrets.
fn forget(extension: &Extension, context: &AppContext) -> Result<(), Failure> {
    Index::load(&context.extension_names()).forget(&extension.root);
    let unwritten = |error: ollm_store::UpdateError| Failure::new(Code::NotWritten, error.to_string());
    if context.switches().exists() {
        let changes: Vec<_> = switches(extension, context).into_iter().map(|name| (name, None)).collect();
        set_switches(&context.switches(), &changes, SystemTime::now()).map_err(unwritten)?;
    }
    let names = extension.manifest.settings.iter().map(|setting| extension.secret_name(&setting.name));
    let names: Vec<String> = names.collect();
    secrets::remove(&names, context).map(drop).map_err(|failure| {
        let message = format!("the folder is gone, but {}", failure.message);
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
