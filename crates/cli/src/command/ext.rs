//! `ollm ext …`: manages extensions, each approved, switched and set as a whole.

use std::sync::Arc;

use ollm_app::approving::Uncovered;
use ollm_app::{App, AppContext};
use ollm_catalog::{Extension, ExtensionState};
use ollm_protocol::{Code, Hook, Layer, did_you_mean};
use ollm_shell::shell_word;
use ollm_trust::{Approval, Standing, extension_keys};

use crate::arguments::ext::{ExtCommand, IndexCommand};
use crate::command::review::unchanged;
use crate::error::Failure;
use crate::output::Output;

mod dev;
mod index;
mod info;
mod install;
mod list;
mod new;
mod reload;
mod search;
pub(crate) mod set;
mod switch;
pub(crate) mod trust;
mod uninstall;
mod update;
mod validate;

pub(crate) use list::{ExtensionOverview, SettingOverview, overview};

pub(super) fn run_command(command: ExtCommand, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    context.tell_notices(output);
    match command {
        ExtCommand::List { json } => list::run(context, json, output),
        ExtCommand::Info { name, json } => info::run(&name, context, json, output),
        ExtCommand::Enable { names } => switch::enable(&names, context, output),
        ExtCommand::Disable { names } => switch::disable(&names, context, output),
        ExtCommand::Reload { name } => reload::run(name.as_deref(), context, output),
        ExtCommand::Trust { name, digest, uncovered } => {
            trust::run(&name, digest.as_deref(), Uncovered::of_flag(uncovered), context, output)
        }
        ExtCommand::Search(arguments) => search::run(&arguments, context, output),
        ExtCommand::Install(arguments) => install::run(&arguments, context, output),
        ExtCommand::Update(arguments) => update::run(&arguments, context, output),
        ExtCommand::Pin(arguments) => update::pin(&arguments, context, output),
        ExtCommand::Uninstall { name, yes } => uninstall::run(&name, yes, context, output),
        ExtCommand::Index(IndexCommand::Build(arguments)) => index::run(&arguments, context, output),
        ExtCommand::Set(arguments) => set::run(&arguments, context, output),
        ExtCommand::New(arguments) => new::run(&arguments, context, output),
        ExtCommand::Validate { target, json } => validate::run(&target, context, json, output),
        ExtCommand::Dev { folder } => dev::run(&folder, context, output),
        ExtCommand::Test { name, json } => {
            super::hook::run_cases(context, |app| trust::approved_hooks(&name, app), json, output)
        }
    }
}

/// The approval state of an extension.
#[derive(Debug)]
struct ExtensionApproval {
    trust: &'static str,
    digest: Option<String>,
    /// The reason why it does not run in its present state, apart from problems with its manifest.
    problem: Option<String>,
    /// Whether other users could change its programs, so that none of its hooks runs.
    exposed: bool,
}

fn approved(extension: &Extension, app: &App) -> ExtensionApproval {
    match app.engine.trust.tree_digest(&extension.root) {
        Ok(digest) => {
            let standing = app.engine.trust.extension_standing(&extension.name, &extension.root, &digest);
            let whole = matches!(standing, Standing::Approved | Standing::Limited);
            let changed = Some(extension).filter(|_| whole).and_then(|extension| changed_hook(extension, app));
            let standing = if changed.is_some() { Standing::Modified } else { standing };
            let exposure = exposed_hook(extension, app);
            let (exposed, problem) = (exposure.is_some(), exposure.or(changed));
            ExtensionApproval { trust: word(standing), digest: Some(digest.to_string()), problem, exposed }
        }
        Err(why) => ExtensionApproval {
            trust: word(Standing::Unknown),
            digest: None,
            problem: Some(why.to_string()),
            exposed: false,
        },
    }
}

/// The reason why no hook of an extension runs even after an approval: other users can write to its files.
fn exposed_hook(extension: &Extension, app: &App) -> Option<String> {
    let owned = |hook: &Hook| app.engine.trust.owned(hook, &app.engine.environment().trust_context());
    let why = extension.hooks.iter().find_map(|hook| owned(hook).err())?;
    Some(format!("no hook of it runs: {why}"))
}

/// The reason why an approved extension is no longer approved: a hook also depends on the program that runs it.
fn changed_hook(extension: &Extension, app: &App) -> Option<String> {
    let trust = &app.engine.trust;
    let is_changed = |hook: &&Arc<Hook>| {
        let identity = trust.identity(&***hook, &app.engine.environment().trust_context()).ok();
        identity.is_some_and(|identity| trust.standing(&***hook, Some(&identity)) == Standing::Modified)
    };
    let hooks = app.hooks_of(extension);
    let hook = hooks.iter().find(is_changed)?;
    let way_out = format!("`ollm ext trust {}` approves it", shell_word(&extension.name));
    Some(format!("what runs its hook `{}` is not what was approved; {way_out}", hook.spec.name))
}

pub(crate) fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Approved | Standing::Limited => "trusted",
        Standing::Modified => "modified",
        Standing::Unknown => "untrusted",
    }
}

/// The extension with this name.
fn named<'a>(name: &str, app: &'a App) -> Result<&'a Extension, Failure> {
    app.extensions.get(name).ok_or_else(|| unknown(name, app))
}

/// The extension with this name, if its manifest can be understood. A person can approve it and switch it on before a
/// missing setting or needed extension is there. A broken extension must not replace a good approval.
fn understood<'a>(name: &str, app: &'a App) -> Result<&'a Extension, Failure> {
    let extension = named(name, app)?;
    if extension.is_broken() { loaded(name, app) } else { Ok(extension) }
}

/// The extension with this name, if it can be loaded.
fn loaded<'a>(name: &str, app: &'a App) -> Result<&'a Extension, Failure> {
    let extension = named(name, app)?;
    match &extension.state {
        ExtensionState::Failed(why) => {
            Err(Failure::new(Code::NotLoaded, format!("extension `{name}` cannot be loaded: {why}")))
        }
        ExtensionState::On | ExtensionState::Off(_) => Ok(extension),
    }
}

fn unknown(name: &str, app: &App) -> Failure {
    if let Some(off) = app.extensions_off() {
        return Failure::new(Code::NotLoaded, off).hint("`ollm config set extensions.enabled true`");
    }
    let failure = Failure::new(Code::UnknownExtension, format!("there is no extension `{name}`"));
    let known = app.extensions.iter().map(|extension| extension.name.as_str());
    let list = || "`ollm ext list` shows the extensions there are".to_owned();
    failure.hint(did_you_mean(name, known).unwrap_or_else(list))
}

fn scope(extension: &Extension) -> &'static str {
    match extension.layer {
        Layer::User => "user",
        Layer::Workspace => "workspace",
    }
}

/// The present state of an extension's approval; `None` if the extension is not here.
pub(crate) fn standing(approval: &Approval, app: &App) -> Option<Standing> {
    let name = approval.id.strip_prefix("extension:")?;
    let here = |one: &&Extension| one.name == name && one.root.display().to_string() == approval.source;
    let extension = app.extensions.iter().find(here)?;
    let digest = app.engine.trust.tree_digest(&extension.root).ok()?;
    Some(app.engine.trust.extension_standing(&extension.name, &extension.root, &digest))
}

/// Withdraws the approval of an extension and of its hooks; false if there was none.
pub(crate) fn revoke(extension: &Extension, app: &App) -> Result<bool, Failure> {
    let removed = app.engine.trust.withdraw(&approval_keys(extension, app)).map_err(|error| unchanged(&error))?;
    Ok(removed > 0)
}

/// The keys of the approvals of an extension and of its hooks.
pub(crate) fn approval_keys(extension: &Extension, app: &App) -> Vec<(String, String)> {
    let hooks = app.hooks_of(extension);
    extension_keys(&extension.name, &extension.root, hooks.iter().map(|hook| &**hook))
}
