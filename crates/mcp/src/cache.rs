//! What servers said last time: their tools, and which revision of the protocol they speak. A lazy server's tools are
//! offered from here, and it is started by the first call.
//!
//! An entry holds for one exact configuration: its key is the digest of the declaration, which comes in as a value. The cache may be lost at any time:
//! a broken file is begun anew. One of a later version, or that others can write, is not used, and left alone.

use std::path::PathBuf;

use ollm_store::{Digest, Loaded, UpdateError, versioned};
use serde_json::{Map, Value, json};

const VERSION: u32 = 1;
const LARGEST_FILE: u64 = 64 << 20;
/// What it may hold, so that it never becomes too large to be read.
pub(crate) const MOST_BYTES: usize = 32 << 20;
/// Of more servers the ones that were written longest ago are forgotten.
pub(crate) const MOST_ENTRIES: usize = 200;

/// The tool lists of servers, in one file.
#[derive(Clone, Debug)]
pub struct Cache {
    path: PathBuf,
}

/// What was learnt of a server in an earlier run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerMemory {
    /// The protocol revision that was agreed upon.
    pub revision: Option<String>,
    /// How it was reached: stdio, http or sse.
    pub transport: Option<String>,
    /// The entries of `tools/list`, as they came; nothing where they could not be listed.
    pub tools: Option<Vec<Value>>,
    /// What was left out of them.
    pub warnings: Vec<String>,
}

impl ServerMemory {
    /// Its tools, as it wrote them.
    pub fn listed(&self) -> &[Value] {
        self.tools.as_deref().unwrap_or_default()
    }
}

impl Cache {
    /// A cache in this file.
    pub fn new(path: impl Into<PathBuf>) -> Cache {
        Cache { path: path.into() }
    }

    /// What the server with this configuration said last.
    pub fn get(&self, key: &Digest) -> Option<ServerMemory> {
        let Loaded::Current(document) = versioned::load(&self.path, VERSION, LARGEST_FILE) else { return None };
        read_entry(document.get("servers")?.get(key.to_string())?)
    }

    /// Everything that is known, in one reading.
    pub fn all(&self) -> Vec<(Digest, ServerMemory)> {
        let Loaded::Current(document) = versioned::load(&self.path, VERSION, LARGEST_FILE) else { return Vec::new() };
        let servers = document.get("servers").and_then(Value::as_object);
        let known =
            servers.into_iter().flatten().filter_map(|(key, entry)| Some((key.parse().ok()?, read_entry(entry)?)));
        known.collect()
    }

    /// Remembers what a server said at this time, in seconds since 1970.
    pub fn put(&self, key: &Digest, memory: &ServerMemory, at: u64) -> Result<(), UpdateError> {
        self.edit(|servers| {
            servers.insert(key.to_string(), write_entry(memory, at));
            forget_oldest(servers, MOST_BYTES);
        })
    }

    /// Forgets what a server said.
    pub fn forget(&self, key: &Digest) -> Result<(), UpdateError> {
        self.edit(|servers| drop(servers.shift_remove(&key.to_string())))
    }

    fn edit(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Result<(), UpdateError> {
        versioned::renew(&self.path, VERSION, LARGEST_FILE, |document| {
            let mut servers = match document.and_then(|mut document| document.get_mut("servers").map(Value::take)) {
                Some(Value::Object(servers)) => servers,
                _ => Map::new(),
            };
            change(&mut servers);
            Ok((Some(json!({"version": VERSION, "servers": servers})), ()))
        })
    }
}

/// Forgets what was written longest ago, as long as it is too much.
fn forget_oldest(servers: &mut Map<String, Value>, most_bytes: usize) {
    let at = |entry: &Value| entry.get("at").and_then(Value::as_u64).unwrap_or_default();
    let length = |entry: &Value| format!("{entry:#}").len();
    let mut size: usize = servers.values().map(length).sum();
    while servers.len() > MOST_ENTRIES || size > most_bytes {
        let oldest = servers.iter().min_by_key(|(_, entry)| at(entry)).map(|(key, _)| key.clone());
        let gone = oldest.and_then(|key| servers.shift_remove(&key));
        size = size.saturating_sub(gone.as_ref().map_or(usize::MAX, length));
    }
}

fn read_entry(entry: &Value) -> Option<ServerMemory> {
    let warnings = entry.get("warnings").and_then(Value::as_array).into_iter().flatten();
    Some(ServerMemory {
        warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
        tools: Some(entry.get("tools")?.as_array()?.clone()),
        revision: entry.get("revision").and_then(Value::as_str).map(str::to_owned),
        transport: entry.get("transport").and_then(Value::as_str).map(str::to_owned),
    })
}

fn write_entry(memory: &ServerMemory, at: u64) -> Value {
    json!({
        "tools": memory.tools, "warnings": memory.warnings, "revision": memory.revision,
        "transport": memory.transport, "at": at
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_longest_ago_is_forgotten_when_it_is_too_much() {
        let entry = |at: u64| json!({"tools": ["x".repeat(100)], "at": at});
        let mut servers: Map<String, Value> =
            [("b", 2), ("d", 4), ("a", 1), ("c", 3)].map(|(key, at)| (key.to_owned(), entry(at))).into_iter().collect();
        forget_oldest(&mut servers, 350);
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["d", "c"]);
        forget_oldest(&mut servers, 10);
        assert!(servers.is_empty(), "one alone would make the file too large");
    }
}
