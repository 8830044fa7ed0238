//! `ollm ext enable` and `disable`: a person's switch stays until the person changes it.

use std::time::SystemTime;

use ollm_app::approving::{Together, Uncovered};
use ollm_app::{App, AppContext, ExtensionFilter, extensions_again, refuse_agents};
use ollm_catalog::{Extension, Index};
use ollm_protocol::Code;
use ollm_store::{Switch, one_line, set_switches};
use serde_json::json;

use super::trust::{ask_person, by_digest, record};
use super::{named, understood, unknown};
use crate::error::{FINDING, Failure, OK};
use crate::output::Output;

pub(super) fn enable(names: &[String], context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "switch extensions on or off")?;
    let app = load(names, context)?;
    let wanted = names.iter().map(|name| understood(name, &app)).collect::<Result<Vec<_>, _>>()?;
    let mut switched = Vec::new();
    let stopped = wanted.into_iter().try_for_each(|extension| {
        let waits = switch_on(extension, &app, context, output)?;
        switched.push((extension, waits));
        Ok(())
    });
    // Told after all are switched, because one of them may need another one.
    let code = tell_switched(&switched, &app, context, output)?;
    stopped.map(|()| code)
}

/// Switches an extension on. On a terminal a person approves it first; otherwise returns the command that approves it.
fn switch_on(
    extension: &Extension,
    app: &App,
    context: &AppContext,
    output: &mut Output,
) -> Result<Option<String>, Failure> {
    let (name, whole) = (&extension.name, Together::extension(extension, Uncovered::Refused, app)?);
    let digest = whole.digest();
    let waits = !app.is_approved(extension, &digest, Uncovered::Refused);
    if waits && output.asker().is_there() {
        // A person who does not approve it does not want it on.
        ask_person(name, &whole, output)?;
        record(name, whole, output)?;
    }
    set(extension, true, context)?;
    Ok((waits && !output.asker().is_there()).then(|| by_digest(name, &digest)))
}

/// Says which are on now, and of those that are not what is missing.
fn tell_switched(
    switched: &[(&Extension, Option<String>)],
    app: &App,
    context: &AppContext,
    output: &mut Output,
) -> Result<u8, Failure> {
    let now = extensions_again(app, context);
    let mut code = OK;
    for (extension, waits) in switched {
        let name = &extension.name;
        output.changed(json!({"extension": name, "enabled": true}));
        if let Some(why) = now.get(name).and_then(Extension::error) {
            output.line(&one_line(&format!("{name} is switched on, but not loaded: {why}")))?;
            code = FINDING;
        } else {
            output.line(&one_line(&format!("{name} is on")))?;
        }
        if let Some(command) = waits {
            output.tell(&format!("nothing of `{name}` runs until it is approved: `{command}`"));
        }
    }
    Ok(code)
}

pub(super) fn disable(names: &[String], context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "switch extensions on or off")?;
    let app = load(names, context)?;
    for name in names {
        set(named(name, &app)?, false, context)?;
        output.changed(json!({"extension": name, "enabled": false}));
        output.line(&one_line(&format!("{name} is off")))?;
    }
    Ok(OK)
}

/// Loads the application. Fails if one of the names is unknown, so that nothing is switched.
fn load(names: &[String], context: &AppContext) -> Result<App, Failure> {
    let index = Index::load(&context.extension_names());
    let app = App::load_only(context, ExtensionFilter { names, index: &index })?;
    index.remember(&app.extensions);
    if let Some(off) = app.extensions_off() {
        return Err(Failure::new(Code::NotLoaded, off).hint("`ollm config set extensions.enabled true`"));
    }
    match names.iter().find(|name| app.extensions.get(name).is_none()) {
        Some(name) => Err(unknown(name, &app)),
        None => Ok(app),
    }
}

fn set(extension: &Extension, on: bool, context: &AppContext) -> Result<(), Failure> {
    let change = [(extension.switch_name(), Some(Switch { on, until: None }))];
    set_switches(&context.switches(), &change, SystemTime::now())
        .map_err(|error| Failure::new(Code::NotWritten, format!("the switch cannot be kept: {error}")))
}
