//! `ollm ext enable` and `disable`: what a person switches stays so, whatever else changes.

use std::time::SystemTime;

use ollm_catalog::Extension;
use ollm_store::{Switch, set_switches};

use super::trust::{ask_person, bundle, by_digest, is_approved, record};
use super::{named, understood, unknown};
use crate::agent::refuse_agents;
use crate::app::{App, extensions_again};
use crate::error::{FINDING, Failure, Kind, OK};
use crate::output::{Output, is_terminal, one_line};
use crate::world::World;

pub(super) fn enable(names: &[String], world: &World, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(world, "switch extensions on or off")?;
    let app = load(names, world)?;
    let wanted = names.iter().map(|name| understood(name, &app)).collect::<Result<Vec<_>, _>>()?;
    let mut code = OK;
    for extension in wanted {
        let name = &extension.name;
        let bundle = bundle(extension, &app)?;
        let waits = !is_approved(extension, &bundle.digest, &app);
        if waits && is_terminal() {
            // Who says no does not want it on either.
            ask_person(extension, &bundle, &app, output)?;
            record(extension, &bundle, &app, output)?;
        }
        set(extension, true, world)?;
        if let Some(why) = missing(name, &app, world) {
            output.line(&one_line(&format!("{name} is switched on, but not loaded: {why}")))?;
            code = FINDING;
        } else {
            output.line(&one_line(&format!("{name} is on")))?;
        }
        if waits && !is_terminal() {
            output.tell(&format!("nothing of `{name}` runs until it is approved: `{}`", by_digest(&bundle)));
        }
    }
    Ok(code)
}

pub(super) fn disable(names: &[String], world: &World, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(world, "switch extensions on or off")?;
    let app = load(names, world)?;
    for name in names {
        set(named(name, &app)?, false, world)?;
        output.line(&one_line(&format!("{name} is off")))?;
    }
    Ok(OK)
}

/// Everything, where all the names are known: nothing is switched if one of them is not.
fn load(names: &[String], world: &World) -> Result<App, Failure> {
    let app = App::load_as_is(world)?;
    if let Some(off) = app.extensions_off() {
        return Err(Failure::new(Kind::Configuration, off).hint("`ollm config set extensions.enabled true`"));
    }
    match names.iter().find(|name| app.extensions.get(name).is_none()) {
        Some(name) => Err(unknown(name, &app)),
        None => Ok(app),
    }
}

fn set(extension: &Extension, on: bool, world: &World) -> Result<(), Failure> {
    let change = [(extension.switch_name(), Some(Switch { on, until: None }))];
    set_switches(&world.switches(), &change, SystemTime::now())
        .map_err(|error| Failure::new(Kind::Environment, format!("the switch cannot be kept: {error}")))
}

/// What still keeps an extension from being loaded.
fn missing(name: &str, app: &App, world: &World) -> Option<String> {
    extensions_again(app, world).get(name)?.error().map(str::to_owned)
}
