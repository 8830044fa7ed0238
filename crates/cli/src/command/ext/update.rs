//! `ollm ext update` and `ollm ext pin`: updates installed extensions from their sources, or keeps them at a pin.

use ollm_app::extension_review::additions;
use ollm_app::install::{
    InstalledExtension, Reach, UpdateOrder, installed, pin_value, roll_back, set_pin, update_order, version_before,
};
use ollm_app::{App, AppContext, refuse_agents};
use ollm_catalog::validate_extension;
use ollm_store::one_line;
use serde_json::{Value, json};

use super::install::{CarriedOut, carry_out, go_on, reach, told_if_unsettled, version};
use super::trust::by_digest;
use super::{approved, named};
use crate::arguments::ext::{Acceptance, PinArguments, UpdateArguments};
use crate::ask::YES;
use crate::error::{FINDING, Failure, OK};
use crate::output::Output;

pub(super) fn run(arguments: &UpdateArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "update extensions")?;
    let UpdateArguments { names, to, rollback, offline, acceptance } = arguments;
    let mut failed = None;
    if *rollback {
        for name in names {
            let entry = back(name, *acceptance, context, output)?;
            output.changed(entry);
        }
    } else {
        let to = to.as_deref().map(version).transpose()?;
        let all: Vec<String> = installed(context).into_iter().map(|one| one.name).collect();
        let chosen = if names.is_empty() { &all } else { names };
        if chosen.is_empty() {
            output.tell("nothing was installed from elsewhere, so there is nothing to update");
        }
        for name in chosen {
            // A failed update does not stop the others.
            match one(name, to.as_ref(), reach(*offline), *acceptance, context, output) {
                Ok(entries) => entries.into_iter().for_each(|entry| output.changed(entry)),
                // A signal ends all of it.
                Err(failure) if chosen.len() > 1 && failure.code.is_some() => {
                    output.tell(&format!("`{name}` was not updated: {}", failure.message));
                    output.changed(json!({"name": name, "changed": false, "error": failure.to_json()}));
                    failed = Some(FINDING);
                }
                Err(failure) => return Err(failure),
            }
        }
    }
    Ok(failed.unwrap_or(OK))
}

fn one(
    name: &str,
    to: Option<&semver::Version>,
    reach: Reach,
    acceptance: Acceptance,
    context: &AppContext,
    output: &mut Output,
) -> Result<Vec<Value>, Failure> {
    let order = match update_order(name, to, reach, context)? {
        UpdateOrder::Order(order) => *order,
        UpdateOrder::Pinned(pin) => {
            output.line(&one_line(&format!("{name} is pinned to {pin}")))?;
            return Ok(vec![json!({"name": name, "changed": false, "pinned": pin})]);
        }
    };
    match carry_out(&order, acceptance, context, output)? {
        CarriedOut::Current(current) => {
            output.line(&one_line(&format!("{name} {} is up to date", current.version)))?;
            Ok(vec![json!({"name": name, "version": current.version, "changed": false})])
        }
        CarriedOut::Done(entries) => Ok(entries),
    }
}

/// Exchanges an extension with its previous version.
fn back(name: &str, acceptance: Acceptance, context: &AppContext, output: &mut Output) -> Result<Value, Failure> {
    let app = App::load_as_is(context)?;
    let now = named(name, &app)?;
    if let Some(before) = version_before(name, context) {
        let (old, _) = validate_extension(&before.folder, &app.rules);
        for (what, text) in additions(&old, &now.root, &app.rules) {
            output.tell(&format!("{what} {text}"));
        }
        if acceptance.dry_run {
            return Ok(json!({"name": name, "version": before.version, "changed": false}));
        }
        let question = format!("Put {name} {} in the place of {}?", before.version, now.manifest.version);
        if !acceptance.yes {
            let chosen = output.asker().choose(&question, YES, &|| false);
            go_on(chosen, &format!("{name} stays unchanged"))?;
        }
    }
    let InstalledExtension { version, .. } = told_if_unsettled(roll_back(name, context)?, output);
    output.line(&one_line(&format!("{name} {version} is installed again")))?;
    let app = App::load_as_is(context)?;
    let extension = named(name, &app)?;
    let state = approved(extension, &app);
    let trust = state.trust;
    if let Some(digest) = state.digest.and_then(|digest| digest.parse().ok()).filter(|_| trust != "trusted") {
        output.tell(&format!("nothing of `{name}` runs until it is approved: `{}`", by_digest(name, &digest)));
    }
    let before = &now.manifest.version;
    Ok(json!({"name": name, "version": version, "previousVersion": before, "trust": trust, "changed": true}))
}

/// `ollm ext pin`.
pub(super) fn pin(arguments: &PinArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "pin extensions")?;
    let PinArguments { name, value, remove, .. } = arguments;
    if *remove {
        let was = set_pin(name, None, context)?;
        let word = if was { "is no longer pinned" } else { "was not pinned" };
        output.changed(json!({"name": name, "pinned": null}));
        return output.line(&one_line(&format!("{name} {word}")));
    }
    let pin = pin_value(name, value.as_deref(), context)?;
    set_pin(name, Some(&pin), context)?;
    output.changed(json!({"name": name, "pinned": pin}));
    output.line(&one_line(&format!("{name} is pinned to {pin}")))
}
