//! `ollm ext trust`: a person says that an extension may run exactly as it is, with all its hooks, in one step.

use std::sync::Arc;

use ollm_catalog::Extension;
use ollm_engine::{Bundle, Proposal, Standing, Unready};
use ollm_protocol::{Hook, shell_word};
use ollm_store::{Digest, digest_bytes, read_bounded};
use ollm_trust::ContentStoreError;

use super::{consent, hooks, loaded, understood};
use crate::agent::refuse_agents;
use crate::app::App;
use crate::command::hook::{nobody_to_ask, show_long, unpinned, unwritten};
use crate::command::mcp::unpinned as unpinned_package;
use crate::error::{Failure, Kind, OK};
use crate::output::{Output, ask};
use crate::world::World;

/// Larger manifests are not read.
const LARGEST_MANIFEST: u64 = 1 << 20;

pub(super) fn run(name: &str, digest: Option<&str>, world: &World, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(world, "approve extensions")?;
    let app = App::load_as_is(world)?;
    let extension = understood(name, &app)?;
    let bundle = bundle(extension, &app)?;
    // Whoever names a digest counts on it, also where nothing is left to approve.
    if let Some(named) = digest {
        check_digest(&bundle, named)?;
    }
    if is_approved(extension, &bundle.digest, &app) {
        output.tell(&format!("extension `{name}` is trusted already"));
        return Ok(OK);
    }
    if digest.is_none() {
        ask_person(extension, &bundle, &app, output)?;
    }
    record(extension, &bundle, &app, output)?;
    Ok(OK)
}

/// The hooks of an extension that is approved as it is.
pub(super) fn approved_hooks(name: &str, app: &App) -> Result<Vec<Arc<Hook>>, Failure> {
    let extension = loaded(name, app)?;
    let digest = app.engine.trust.tree_digest(&extension.root).ok();
    if digest.is_some_and(|digest| is_approved(extension, &digest, app)) {
        return Ok(hooks(extension, app));
    }
    Err(Failure::new(Kind::Untrusted, format!("extension `{name}` is not approved as it is, so nothing of it runs"))
        .hint(format!("`ollm ext trust {}` shows and approves it", shell_word(name))))
}

/// The extension as it is now, with a copy to look at.
pub(super) fn bundle(extension: &Extension, app: &App) -> Result<Bundle, Failure> {
    let bundle = app.engine.trust.bundle(&extension.name, &extension.root).map_err(|why| {
        Failure::new(Kind::Environment, format!("extension `{}` cannot be approved: {why}", extension.name))
    })?;
    let manifest = read_bounded(&bundle.copy().join("manifest.json"), LARGEST_MANIFEST).ok().flatten();
    // What is shown was read earlier than the copy was made.
    if manifest.map(|bytes| digest_bytes(&bytes)) == extension.digest { Ok(bundle) } else { Err(changed(extension)) }
}

fn changed(extension: &Extension) -> Failure {
    let message = format!("extension `{}` changed while it was looked at; nothing was approved", extension.name);
    Failure::new(Kind::Untrusted, message).hint("look through it again")
}

/// Whether the whole, and every hook that can run at all, is approved as it is.
pub(super) fn is_approved(extension: &Extension, digest: &Digest, app: &App) -> bool {
    let trust = &app.engine.trust;
    let whole = trust.bundle_standing(&extension.name, &extension.root, digest) == Standing::Approved;
    whole
        && hooks(extension, app).iter().all(|hook| {
            let identity = trust.identity(hook, app.engine.environment()).ok();
            unpinned(hook).is_some()
                || identity.is_none_or(|identity| trust.standing(hook, Some(&identity)) == Standing::Approved)
        })
}

fn check_digest(bundle: &Bundle, named: &str) -> Result<(), Failure> {
    if bundle.digest.to_string() == named {
        return Ok(());
    }
    let message = format!("extension `{}` is not what {named} names; nothing was approved", bundle.name);
    Err(Failure::new(Kind::Untrusted, message)
        .hint(format!("review {}, then read its digest with `ollm ext list --json`", bundle.root.display())))
}

/// Shows everything that would run, or only what is new, and asks. Without a terminal nobody approves anything.
pub(super) fn ask_person(
    extension: &Extension,
    bundle: &Bundle,
    app: &App,
    output: &mut Output,
) -> Result<(), Failure> {
    show_long(&consent::text(extension, bundle, app), app, output);
    let name = &extension.name;
    let question = format!("\nLet the extension `{name}` run from now on, as long as nothing of it changes? [y/N] ");
    match ask(&question).map(|answer| answer.to_lowercase()).as_deref() {
        Some("y" | "yes" | "a" | "always") => Ok(()),
        Some(_) => Err(Failure::new(Kind::Untrusted, format!("extension `{name}` was not approved"))),
        None => Err(nobody_to_ask(&format!("extension `{name}` was not approved"))
            .hint(format!("a script may approve by naming the digest: `{}`", by_digest(bundle)))),
    }
}

/// The command by which a script approves.
pub(super) fn by_digest(bundle: &Bundle) -> String {
    format!("ollm ext trust {} --digest {}", shell_word(&bundle.name), bundle.digest)
}

/// Keeps the approval of the whole and of each hook; a hook that cannot run now is told and left out.
pub(super) fn record(extension: &Extension, bundle: &Bundle, app: &App, output: &mut Output) -> Result<(), Failure> {
    let mut proposals: Vec<(Arc<Hook>, Proposal)> = Vec::new();
    for hook in hooks(extension, app) {
        if let Some(package) = unpinned(&hook) {
            let why = format!("`{package}` names no version and may change any time");
            output.tell(&format!("hook `{}` was not approved: {why}; name an exact one", hook.id()));
            continue;
        }
        match app.engine.trust.propose_in(bundle, &hook, app.engine.environment()) {
            Ok(proposal) => proposals.push((hook, proposal)),
            Err(Unready::NoCopy(ContentStoreError::Changed { .. })) => return Err(changed(extension)),
            Err(why) => output.tell(&format!("hook `{}` cannot run: {why}", hook.id())),
        }
    }
    app.engine.trust.approve_bundle(bundle, &proposals, app.engine.environment()).map_err(unwritten)?;
    output.tell(&format!("extension `{}` is approved as {}", extension.name, bundle.digest));
    for server in extension.servers_in(bundle.copy()).0 {
        if let Some(package) = unpinned_package(&server) {
            let what = "names no version: what runs may change without being asked about again";
            output.tell(&format!("server `{}`: `{package}` {what}", server.name));
        }
    }
    Ok(())
}
