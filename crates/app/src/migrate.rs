//! Replaces older names of settings by their present ones: on request, and when the user's own file is first read.

use std::path::Path;
use std::time::SystemTime;

use ollm_catalog::{EditError, Migration, Problem, migrate_config};
use ollm_protocol::units::iso;
use ollm_protocol::{Layer, Remedy};
use ollm_store::FileError;
use serde_json::{Value, json};

use crate::agent_signs::refuse_agents;
use crate::app_context::AppContext;

/// Beyond this size, the log of migrations drops its oldest lines.
const LARGEST_LOG: u64 = 1 << 20;

/// The reason why older names remain, or why the log has no line about the change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// The file stays unchanged.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The file was changed.
    #[error("the file was migrated, but the log was not written: {0}")]
    Log(FileError),
}

/// Replaces the older names in one configuration file. Saves a copy beside it and adds a line to the log.
pub fn migrate(layer: Layer, context: &AppContext) -> Result<Migration, MigrateError> {
    let migration = migrate_config(&context.places, layer)?;
    if !migration.moves.is_empty() {
        log(&migration, context).map_err(MigrateError::Log)?;
    }
    Ok(migration)
}

/// A migration as JSON.
pub fn migration_json(migration: &Migration) -> Value {
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    let moves: Vec<Value> = migration.moves.iter().map(|(from, to)| json!({"from": from, "to": to})).collect();
    json!({"file": shown(&migration.file), "moves": moves, "backup": migration.backup.as_deref().map(shown)})
}

/// Migrates the user's own file if it has older names. Returns a line about it, which replaces the problems with these
/// names. Agents may not rewrite the configuration. If the file is not rewritten, the problems stay.
pub fn migrate_on_load(problems: &mut Vec<Problem>, context: &AppContext) -> Option<String> {
    let own = context.places.config();
    let older = |problem: &Problem| problem.remedy == Some(Remedy::MigrateConfiguration) && problem.file == own;
    context.own_home()?;
    if !problems.iter().any(older) || refuse_agents(context, "rewrite the configuration").is_err() {
        return None;
    }
    let migration = migrate(Layer::User, context).ok()?;
    let backup = migration.backup?;
    problems.retain(|problem| !older(problem));
    let moves: Vec<String> = migration.moves.iter().map(|(from, to)| format!("`{from}` is now `{to}`")).collect();
    let (file, moves) = (migration.file.display(), moves.join(", "));
    Some(format!("older names in {file} were replaced: {moves}; the file as it was is {}", backup.display()))
}

fn log(migration: &Migration, context: &AppContext) -> Result<(), FileError> {
    let mut line = migration_json(migration);
    if let Some(map) = line.as_object_mut() {
        map.insert("time".to_owned(), iso(SystemTime::now()).into());
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
