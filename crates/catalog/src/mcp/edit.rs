//! Writing servers down in `settings/mcp.json`, and taking them out again; everything else in the file stays.

use std::path::{Path, PathBuf};

use ollm_store::{FileError, update};
use serde_json::{Map, Value};

use super::LARGEST_FILE;

/// Why a file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// It cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is not what it should be.
    #[error("{}: {reason}; it was not changed", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There is a server of that name.
    #[error("{} has a server `{name}` already", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
}

/// Writes a server down under a name that is free in the file.
pub fn add_server(path: &Path, name: &str, declaration: &Value) -> Result<(), EditError> {
    edit(path, |servers| {
        if servers.contains_key(name) {
            return Err(EditError::Taken { path: path.to_owned(), name: name.to_owned() });
        }
        servers.insert(name.to_owned(), declaration.clone());
        Ok(true)
    })
    .map(drop)
}

/// Takes a server out; false when there is none of that name.
pub fn remove_server(path: &Path, name: &str) -> Result<bool, EditError> {
    if !path.exists() {
        return Ok(false);
    }
    edit(path, |servers| Ok(servers.shift_remove(name).is_some()))
}

/// Changes the servers of a file; it is written if the change says so.
fn edit(
    path: &Path,
    change: impl FnOnce(&mut Map<String, Value>) -> Result<bool, EditError>,
) -> Result<bool, EditError> {
    let mut changed = false;
    update(path, LARGEST_FILE, |bytes| {
        let broken = |reason: String| EditError::Broken { path: path.to_owned(), reason };
        let mut document = match bytes.as_deref().map(<[u8]>::trim_ascii) {
            None | Some([]) => Value::Object(Map::new()),
            Some(bytes) => serde_json::from_slice(bytes).map_err(|error| broken(error.to_string()))?,
        };
        let object = document.as_object_mut().ok_or_else(|| broken("it is not a JSON object".to_owned()))?;
        let servers = object.entry("mcpServers").or_insert_with(|| Value::Object(Map::new()));
        let servers = servers.as_object_mut().ok_or_else(|| broken("`mcpServers` is not an object".to_owned()))?;
        changed = change(servers)?;
        Ok::<_, EditError>(changed.then(|| format!("{document:#}\n").into_bytes()))
    })?;
    Ok(changed)
}
