//! What servers said last time: their tools, and which revision of the protocol they speak. The tools of a lazy server
//! are offered from here, and its first call starts it.
//!
//! An entry holds for one exact configuration: its key is the digest of the declaration, which the caller passes in.
//! The cache may be lost at any time: a broken file is begun anew. A file of a later version, or one that others can
//! write, is neither used nor changed.

use std::path::{Path, PathBuf};

use ollm_store::{Digest, Loaded, UpdateError, versioned};
use serde_json::{Map, Value, json};

const VERSION: u32 = 1;
const LARGEST_FILE: u64 = 64 << 20;
/// The most bytes in the file, so that it never becomes too large to read.
pub(crate) const MOST_BYTES: usize = 32 << 20;
/// Beyond this number, the entries that were written longest ago are dropped.
pub(crate) const MOST_ENTRIES: usize = 200;

/// The tool lists of servers, in one file.
#[derive(Clone, Debug)]
pub struct Cache {
    path: PathBuf,
}

/// What an earlier run learnt about a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerMemory {
    /// The negotiated protocol revision.
    pub revision: Option<String>,
    /// The transport: stdio, http or sse.
    pub transport: Option<String>,
    /// The entries of `tools/list` unchanged; `None` if they could not be listed.
    pub tools: Option<Vec<Value>>,
    /// What was left out of the list, and why.
    pub warnings: Vec<String>,
}

impl ServerMemory {
    /// The tools as the server wrote them.
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

    /// All entries, read at once.
    pub fn all(&self) -> Vec<(Digest, ServerMemory)> {
        let Loaded::Current(document) = versioned::load(&self.path, VERSION, LARGEST_FILE) else { return Vec::new() };
        let servers = document.get("servers").and_then(Value::as_object);
        let known =
            servers.into_iter().flatten().filter_map(|(key, entry)| Some((key.parse().ok()?, read_entry(entry)?)));
        known.collect()
    }

    /// Saves what a server declared in `file` said, at the time `at` in seconds since 1970.
    pub fn put(&self, key: &Digest, memory: &ServerMemory, file: &Path, at: u64) -> Result<(), UpdateError> {
        self.edit(|servers| {
            servers.insert(key.to_string(), write_entry(memory, file, at));
            forget_oldest(servers, MOST_BYTES);
        })
    }

    /// Forgets what a server said.
    pub fn forget(&self, key: &Digest) -> Result<(), UpdateError> {
        self.edit(|servers| drop(servers.shift_remove(&key.to_string())))
    }

    /// Forgets what all servers declared in a file said.
    pub fn forget_file(&self, file: &Path) -> Result<(), UpdateError> {
        let name = file.display().to_string();
        let is_of_file = |entry: &Value| entry.get("file").and_then(Value::as_str) == Some(name.as_str());
        if !self.path.exists() {
            return Ok(());
        }
        self.edit(|servers| servers.retain(|_, entry| !is_of_file(entry)))
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

/// Forgets the oldest entries until the rest is small enough.
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

fn write_entry(memory: &ServerMemory, file: &Path, at: u64) -> Value {
    json!({
        "tools": memory.tools, "warnings": memory.warnings, "revision": memory.revision,
        "transport": memory.transport, "file": file.display().to_string(), "at": at
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
