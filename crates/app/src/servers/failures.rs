//! The last failure of each server, saved until it is connected again, because later there is no running server to ask.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ollm_mcp::ServerState;
use ollm_store::{Digest, Loaded, UpdateError, cut, versioned};
use serde_json::{Map, Value, json};

use super::forget::forget_entries;
use crate::app_context::AppContext;

const VERSION: u32 = 1;
const LARGEST_FILE: u64 = 4 << 20;
/// With more servers, those that failed longest ago are forgotten.
const MOST: usize = 200;
const LONGEST_REASON: usize = 2 << 10;

/// The last failure of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastFailure {
    /// The time, in seconds since 1970.
    pub at: u64,
    /// The reason.
    pub why: String,
}

pub(super) fn file(context: &AppContext) -> PathBuf {
    context.state().join("mcp-failures.json")
}

/// The saved failures, by the digest of each server's declaration; empty if the file cannot be read.
pub fn last_failures(context: &AppContext) -> BTreeMap<String, LastFailure> {
    let Loaded::Current(document) = versioned::load(&file(context), VERSION, LARGEST_FILE) else {
        return BTreeMap::new();
    };
    let kept = document.get("servers").and_then(Value::as_object).into_iter().flatten();
    kept.filter_map(|(key, entry)| Some((key.clone(), read(entry)?))).collect()
}

/// Saves why a server failed; deletes the failure if the server is connected.
pub(super) fn remember(
    file: &Path,
    key: &Digest,
    declared_in: &Path,
    state: &ServerState,
    now: u64,
) -> Result<(), UpdateError> {
    let (key, why) = match state {
        ServerState::NeedsAuth(why) | ServerState::Crashed(why) | ServerState::Failed(why) => {
            (key.to_string(), Some(cut(why, LONGEST_REASON).into_owned()))
        }
        ServerState::Ready | ServerState::Degraded(_) if file.exists() => (key.to_string(), None),
        _ => return Ok(()),
    };
    versioned::renew(file, VERSION, LARGEST_FILE, |document| {
        let mut servers = match document.and_then(|mut document| document.get_mut("servers").map(Value::take)) {
            Some(Value::Object(servers)) => servers,
            _ => Map::new(),
        };
        let before = servers.shift_remove(&key);
        let Some(why) = why else {
            let kept = json!({"version": VERSION, "servers": servers});
            return Ok((before.map(|_| kept), ()));
        };
        servers.insert(key, json!({"at": now, "why": why, "file": declared_in.display().to_string()}));
        while servers.len() > MOST {
            let oldest = servers.iter().min_by_key(|(_, entry)| entry.get("at").and_then(Value::as_u64));
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            servers.shift_remove(&oldest);
        }
        Ok((Some(json!({"version": VERSION, "servers": servers})), ()))
    })
}

/// Deletes the failures of all servers that a file has declared.
pub(super) fn forget_file(file: &Path, declared_in: &Path) -> Result<(), UpdateError> {
    forget_entries(file, LARGEST_FILE, declared_in)
}

fn read(entry: &Value) -> Option<LastFailure> {
    Some(LastFailure { at: entry.get("at")?.as_u64()?, why: entry.get("why")?.as_str()?.to_owned() })
}
