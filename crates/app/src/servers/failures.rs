//! The last failure of each server, kept until it is connected again: whoever looks later finds no running server to ask.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ollm_mcp::ServerState;
use ollm_store::{Digest, Loaded, UpdateError, cut, versioned};
use serde_json::{Map, Value, json};

use crate::app_context::AppContext;

const VERSION: u32 = 1;
const LARGEST_FILE: u64 = 4 << 20;
/// Of more servers the ones that failed longest ago are forgotten.
const MOST: usize = 200;
const LONGEST_REASON: usize = 2 << 10;

/// How a server failed the last time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastFailure {
    /// When, in seconds since 1970.
    pub at: u64,
    /// Why.
    pub why: String,
}

pub(super) fn file(context: &AppContext) -> PathBuf {
    context.state().join("mcp-failures.json")
}

/// What is kept, by the digest of each server's declaration. A file that cannot be read holds nothing.
pub fn last_failures(context: &AppContext) -> BTreeMap<String, LastFailure> {
    let Loaded::Current(document) = versioned::load(&file(context), VERSION, LARGEST_FILE) else {
        return BTreeMap::new();
    };
    let kept = document.get("servers").and_then(Value::as_object).into_iter().flatten();
    kept.filter_map(|(key, entry)| Some((key.clone(), read(entry)?))).collect()
}

/// Keeps why a server failed, or forgets it where the server is connected.
pub(super) fn remember(file: &Path, key: &Digest, state: &ServerState, now: u64) -> Result<(), UpdateError> {
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
        servers.insert(key, json!({"at": now, "why": why}));
        while servers.len() > MOST {
            let oldest = servers.iter().min_by_key(|(_, entry)| entry.get("at").and_then(Value::as_u64));
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            servers.shift_remove(&oldest);
        }
        Ok((Some(json!({"version": VERSION, "servers": servers})), ()))
    })
}

fn read(entry: &Value) -> Option<LastFailure> {
    Some(LastFailure { at: entry.get("at")?.as_u64()?, why: entry.get("why")?.as_str()?.to_owned() })
}
