//! `ollm config migrate`: replaces older names of settings by the present ones. It saves a copy of the file and adds a
//! line to the log.

use ollm_app::{AppContext, MigrateError, migrate, migration_json, refuse_agents};
use ollm_protocol::{Code, Layer};

use super::{refused, short};
use crate::error::{Failure, OK};
use crate::output::Output;

pub(super) fn run(layer: Layer, context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "rewrite the configuration")?;
    let migration = migrate(layer, context).map_err(|error| match error {
        MigrateError::Edit(error) => refused(error),
        error => Failure::new(Code::NotWritten, error.to_string()),
    })?;
    if as_json {
        return output.pretty_json(&migration_json(&migration));
    }
    let file = short(&migration.file, context);
    for (from, to) in &migration.moves {
        output.tell(&format!("`{from}` is now `{to}` ({file})"));
    }
    match &migration.backup {
        Some(backup) => output.tell(&format!("the file as it was is {}", short(backup, context))),
        None => output.tell(&format!("nothing in {file} has an older name")),
    }
    Ok(OK)
}
