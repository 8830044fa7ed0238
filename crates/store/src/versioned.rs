//! JSON documents with a `version` field.
//!
//! A document that is newer than this program, broken, or open to other users is reported and left unchanged. A
//! document that we do not understand or cannot trust is never overwritten.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::file::{FileError, Lock, read_regular};

/// The content of a versioned file.
#[derive(Debug, Clone, PartialEq)]
pub enum Loaded {
    /// There is no such file.
    Missing,
    /// An object whose `version` is between 1 and the supported one; migrating an older shape is up to the caller.
    Current(Value),
    /// The file exists, but must be neither used nor overwritten.
    Refused(Trouble),
}

/// Why a file is neither used nor overwritten; its text is for people and says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// A later version of the program wrote it.
    #[error("{} has version {found}, this program knows versions up to {supported}; update the program, or move the \
        file away to start afresh", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// The newest version this program knows.
        supported: u32,
    },
    /// It cannot be read, or has an unexpected form.
    #[error("{reason}; repair the file, or move it away to start afresh")]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong and where (`path:line:column` for a syntax error).
        reason: String,
    },
    /// Another user can change it.
    #[error("{} {}; look through it, then {}", path.display(), exposure(*mode, *owner), remedy(path, *mode))]
    Unsafe {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// The user id of its owner.
        owner: u32,
    },
}

/// Why an update failed.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// The file must not be overwritten.
    #[error("not changed: {0}")]
    Refused(#[from] Trouble),
    /// The file could not be written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Reads a versioned document of at most `max_bytes`.
pub fn load(path: &Path, supported: u32, max_bytes: u64) -> Loaded {
    match read_regular(path, max_bytes) {
        Ok(None) => Loaded::Missing,
        Ok(Some((bytes, meta))) => match understand(path, &bytes, &meta, supported) {
            Ok(document) => Loaded::Current(document),
            Err(trouble) => Loaded::Refused(trouble),
        },
        Err(error) => Loaded::Refused(broken(path, error.to_string())),
    }
}

/// Changes a versioned document under its lock.
///
/// `change` gets the present document (`None` when the file is missing). It returns the new document, or `None` to
/// leave the file alone, and a result for the caller. A document without any content but its version is removed,
/// together with its lock file.
pub fn update<T>(
    path: &Path,
    supported: u32,
    max_bytes: u64,
    change: impl FnOnce(Option<Value>) -> Result<(Option<Value>, T), Trouble>,
) -> Result<T, UpdateError> {
    let lock = Lock::acquire(path)?;
    write(lock, load(path, supported, max_bytes), change)
}

/// Like [`update`], for data that can be found again: a broken document is begun anew.
pub fn renew<T>(
    path: &Path,
    supported: u32,
    max_bytes: u64,
    change: impl FnOnce(Option<Value>) -> Result<(Option<Value>, T), Trouble>,
) -> Result<T, UpdateError> {
    let lock = Lock::acquire(path)?;
    let before = match load(path, supported, max_bytes) {
        Loaded::Refused(Trouble::Broken { .. }) => Loaded::Missing,
        before => before,
    };
    write(lock, before, change)
}

fn write<T>(
    lock: Lock<'_>,
    before: Loaded,
    change: impl FnOnce(Option<Value>) -> Result<(Option<Value>, T), Trouble>,
) -> Result<T, UpdateError> {
    let (document, answer) = match before {
        Loaded::Missing => change(None)?,
        Loaded::Current(document) => change(Some(document))?,
        Loaded::Refused(trouble) => return Err(trouble.into()),
    };
    match document {
        Some(document) if says_nothing(&document) => lock.remove()?,
        Some(document) => lock.replace(format!("{document:#}\n").as_bytes())?,
        None => {}
    }
    Ok(answer)
}

/// Whether all lists and maps of a document are empty, and it has no other values beside its version.
fn says_nothing(document: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    document.as_object().is_some_and(|map| map.iter().all(|(key, value)| key == "version" || is_empty(value)))
}

/// The trouble with a file of unexpected content.
pub fn broken(path: &Path, reason: String) -> Trouble {
    Trouble::Broken { path: path.to_owned(), reason }
}

fn understand(path: &Path, bytes: &[u8], meta: &Metadata, supported: u32) -> Result<Value, Trouble> {
    check_access(path, meta)?;
    let document = parse(path, bytes)?;
    let shown = path.display();
    let Some(object) = document.as_object() else {
        return Err(broken(path, format!("{shown} is not a JSON object")));
    };
    let Some(version) = object.get("version") else {
        return Err(broken(path, format!("{shown} has no \"version\"")));
    };
    match version.as_u64() {
        None | Some(0) => Err(broken(path, format!("{shown} has the version {version}, not a whole number from 1"))),
        Some(found) if found > u64::from(supported) => Err(Trouble::Newer { path: path.to_owned(), found, supported }),
        Some(_) => Ok(document),
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Value, Trouble> {
    serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let what = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
        broken(path, format!("{}:{line}:{column}: {what}", path.display()))
    })
}

/// A file may be readable by others, but not writable; root can write everything anyway.
fn check_access(path: &Path, meta: &Metadata) -> Result<(), Trouble> {
    let mode = meta.mode() & 0o7777;
    let owner = meta.uid();
    if mode & 0o022 == 0 && is_ours(owner) {
        return Ok(());
    }
    Err(Trouble::Unsafe { path: path.to_owned(), mode, owner })
}

fn is_ours(owner: u32) -> bool {
    owner == 0 || owner == rustix::process::geteuid().as_raw()
}

fn exposure(mode: u32, owner: u32) -> String {
    match mode & 0o022 {
        0 => format!("belongs to another user (id {owner})"),
        _ => format!("can be written by other users (mode {mode:04o})"),
    }
}

fn remedy(path: &Path, mode: u32) -> String {
    match mode & 0o022 {
        0 => format!("move it away or take ownership: chown \"$(id -u)\" '{}'", path.display()),
        _ => format!("make it yours alone: chmod 600 '{}'", path.display()),
    }
}

#[cfg(test)]
mod tests;
