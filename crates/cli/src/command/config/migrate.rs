//! `ollm config migrate`: older names of settings replaced by today's, with a copy of the file and a line in the log.

use ollm_app::{AppContext, refuse_agents};
use ollm_catalog::{Migration, migrate_config};
use ollm_protocol::Layer;
use ollm_store::FileError;
use serde_json::{Value, json};

use super::{refused, short};
use crate::error::{Failure, Kind, OK};
use crate::output::{Output, shown};

/// The log of migrations holds no more than this.
const LARGEST_LOG: u64 = 1 << 20;

pub(super) fn run(layer: Layer, context: &AppContext, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "rewrite the configuration")?;
    let migration = migrate_config(&context.places, layer).map_err(refused)?;
    if !migration.moves.is_empty() {
        log(&migration, context).map_err(|error| {
            Failure::new(Kind::Environment, format!("the file was migrated, but the log was not written: {error}"))
        })?;
    }
    if as_json {
        return output.pretty_json(&details(&migration));
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

fn details(migration: &Migration) -> Value {
    let moves: Vec<Value> = migration.moves.iter().map(|(from, to)| json!({"from": from, "to": to})).collect();
    json!({"file": shown(&migration.file), "moves": moves, "backup": migration.backup.as_deref().map(shown)})
}

fn log(migration: &Migration, context: &AppContext) -> Result<(), FileError> {
    let mut line = details(migration);
    if let Some(map) = line.as_object_mut() {
        map.insert("time".to_owned(), json!(jiff::Timestamp::now().to_string()));
    }
    let path = context.places.home.join("state/migrations.jsonl");
    ollm_store::update(&path, LARGEST_LOG, |old| {
        let mut bytes = old.unwrap_or_default();
        bytes.extend_from_slice(format!("{line}\n").as_bytes());
        while bytes.len() as u64 > LARGEST_LOG {
            let oldest = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
            bytes.drain(..oldest);
        }
        Ok(Some(bytes))
    })
}
