//! `ollm ext update` and `ollm ext pin`: what was installed becomes what its source has now, or stays what a pin says.

use ollm_app::install::{
    Installed, Prepared, Reach, UpdateOrder, installed, pin_value, roll_back, set_pin, update_order, version_before,
};
use ollm_app::{App, AppContext, refuse_agents};
use ollm_protocol::Code;
use ollm_store::one_line;
use serde_json::{Value, json};

use super::consent::additions;
use super::install::{fetch, reach, settle, version};
use super::trust::by_digest;
use super::{approved, named};
use crate::arguments::ext::{Acceptance, PinArguments, UpdateArguments};
use crate::ask::{Chosen, YES, choose};
use crate::error::{FINDING, Failure, OK};
use crate::output::Output;

pub(super) fn run(arguments: &UpdateArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "update extensions")?;
    let UpdateArguments { names, to, rollback, offline, acceptance } = arguments;
    let mut entries = Vec::new();
    let mut failed = None;
    if *rollback {
        for name in names {
            entries.push(back(name, *acceptance, context, output)?);
        }
    } else {
        let to = to.as_deref().map(version).transpose()?;
        let all: Vec<String> = installed(context).into_iter().map(|one| one.name).collect();
        let chosen = if names.is_empty() { &all } else { names };
        if chosen.is_empty() {
            output.tell("nothing was installed from elsewhere, so there is nothing to update");
        }
        for name in chosen {
            // One that cannot be updated keeps no other from it.
            match one(name, to.as_ref(), reach(*offline), *acceptance, context, output) {
                Ok(entry) => entries.push(entry),
                Err(failure) if chosen.len() > 1 => {
                    output.tell(&format!("`{name}` was not updated: {}", failure.message));
                    entries.push(json!({"name": name, "changed": false, "error": failure.message}));
                    failed = Some(FINDING);
                }
                Err(failure) => return Err(failure),
            }
        }
    }
    let code = failed.unwrap_or(OK);
    if acceptance.json {
        output.pretty_json(&entries.into())?;
    }
    Ok(code)
}

fn one(
    name: &str,
    to: Option<&semver::Version>,
    reach: Reach,
    acceptance: Acceptance,
    context: &AppContext,
    output: &mut Output,
) -> Result<Value, Failure> {
    let order = match update_order(name, to, reach, context)? {
        UpdateOrder::Order(order) => *order,
        UpdateOrder::Pinned(pin) => {
            tell(&format!("{name} is pinned to {pin}"), acceptance, output)?;
            return Ok(json!({"name": name, "changed": false, "pinned": pin}));
        }
    };
    let app = App::load_as_is(context)?;
    match fetch(&order, &app, output)? {
        Prepared::Current(current) => {
            tell(&format!("{name} {} is up to date", current.version), acceptance, output)?;
            Ok(json!({"name": name, "version": current.version, "changed": false}))
        }
        Prepared::Staged(staged) => settle(*staged, acceptance, &app, context, output),
    }
}

/// Exchanges an extension with its version before.
fn back(name: &str, acceptance: Acceptance, context: &AppContext, output: &mut Output) -> Result<Value, Failure> {
    let app = App::load_as_is(context)?;
    let now = named(name, &app)?;
    if let Some(before) = version_before(name, context) {
        let (old, _) = ollm_catalog::validate_extension(&before.folder, &app.rules);
        for (what, text) in additions(&old, &now.root, &app.rules) {
            output.tell(&format!("{what} {text}"));
        }
        if acceptance.dry_run {
            return Ok(json!({"name": name, "version": before.version, "changed": false}));
        }
        let question = format!("Put {name} {} in the place of {}?", before.version, now.manifest.version);
        match (acceptance.yes, || choose(&question, YES, &|| false)) {
            (true, _) => {}
            (false, ask) => match ask() {
                Chosen::One(()) => {}
                Chosen::No => return Err(Failure::new(Code::NotConfirmed, format!("{name} stays as it is"))),
                Chosen::Nobody => {
                    let message = format!("{name} stays as it is: there is no terminal to ask on");
                    return Err(Failure::new(Code::NotConfirmed, message).hint("`--yes` does it without asking"));
                }
            },
        }
    }
    let Installed { version, .. } = roll_back(name, context)?;
    tell(&format!("{name} {version} is installed again"), acceptance, output)?;
    let app = App::load_as_is(context)?;
    let extension = named(name, &app)?;
    let state = approved(extension, &app);
    let trust = state.trust;
    if let Some(digest) = state.digest.and_then(|digest| digest.parse().ok()).filter(|_| trust != "trusted") {
        output.tell(&format!("nothing of `{name}` runs until it is approved: `{}`", by_digest(name, &digest)));
    }
    Ok(json!({"name": name, "version": version, "previousVersion": now_version(now), "trust": trust, "changed": true}))
}

fn now_version(extension: &ollm_catalog::Extension) -> &str {
    &extension.manifest.version
}

/// `ollm ext pin`.
pub(super) fn pin(arguments: &PinArguments, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "pin extensions")?;
    let PinArguments { name, value, remove, json } = arguments;
    if *remove {
        let was = set_pin(name, None, context)?;
        let word = if was { "is no longer pinned" } else { "was not pinned" };
        return done(&format!("{name} {word}"), &json!({"name": name, "pinned": null}), *json, output);
    }
    let pin = pin_value(name, value.as_deref(), context)?;
    set_pin(name, Some(&pin), context)?;
    done(&format!("{name} is pinned to {pin}"), &json!({"name": name, "pinned": pin}), *json, output)
}

fn done(line: &str, entry: &Value, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    if as_json { output.pretty_json(entry) } else { output.line(&one_line(line)) }
}

fn tell(line: &str, acceptance: Acceptance, output: &mut Output) -> Result<(), Failure> {
    if acceptance.json {
        output.tell(line);
        return Ok(());
    }
    output.line(&one_line(line)).map(drop)
}
