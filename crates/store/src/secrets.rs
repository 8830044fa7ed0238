//! Secrets that a person entrusted to us: values by name, in a file that its owner alone can read.
//!
//! A file that others can read is used no more than one that others can write: what is in it is no secret, and a person
//! should know.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::versioned::{self, Loaded, Trouble, UpdateError, broken};

const VERSION: u32 = 1;
const MAX_BYTES: u64 = 1 << 20;

/// All secrets of a file; never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeMap<String, String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

impl Secrets {
    /// Reads the secrets; a file that cannot be relied on holds none, and the trouble says why.
    pub fn load(path: &Path) -> (Secrets, Option<Trouble>) {
        let read = match versioned::load(path, VERSION, MAX_BYTES) {
            Loaded::Missing => return (Secrets::default(), None),
            Loaded::Current(document) => closed(path).and_then(|()| entries(path, &document).cloned()),
            Loaded::Refused(trouble) => Err(trouble),
        };
        match read {
            Ok(entries) => {
                let texts = entries.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
                (Secrets(texts.collect()), None)
            }
            Err(trouble) => (Secrets::default(), Some(trouble)),
        }
    }

    /// The secret with this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The names of all secrets, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// Sets secrets, or takes them away with `None`; false when nothing changed.
pub fn set_secrets(path: &Path, changes: &[(String, Option<String>)]) -> Result<bool, UpdateError> {
    versioned::update(path, VERSION, MAX_BYTES, |document| {
        if document.is_some() {
            closed(path)?;
        }
        let mut document = document.unwrap_or_else(|| json!({"version": VERSION, "secrets": {}}));
        let before = entries(path, &document)?.clone();
        let mut after = before.clone();
        for (name, value) in changes {
            match value {
                Some(value) => after.insert(name.clone(), value.as_str().into()),
                None => after.remove(name),
            };
        }
        let differs = after != before;
        if let Some(map) = document.as_object_mut() {
            map.insert("secrets".to_owned(), after.into());
        }
        Ok((differs.then_some(document), differs))
    })
}

fn entries<'a>(path: &Path, document: &'a Value) -> Result<&'a Map<String, Value>, Trouble> {
    let entries = document.get("secrets").and_then(Value::as_object);
    entries.ok_or_else(|| broken(path, format!("{} has no object \"secrets\"", path.display())))
}

/// Whether nobody else can read it.
fn closed(path: &Path) -> Result<(), Trouble> {
    const OTHERS: u32 = 0o077;
    let mode = fs::symlink_metadata(path).map_or(0, |meta| meta.mode());
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let reason = format!("{0} is readable by others (mode {1:04o}): chmod 600 {0}", path.display(), mode & 0o7777);
    Err(broken(path, reason))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn one(name: &str, value: Option<&str>) -> [(String, Option<String>); 1] {
        [(name.to_owned(), value.map(str::to_owned))]
    }

    #[test]
    fn secrets_are_kept_for_their_owner_alone_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.json");
        assert!(set_secrets(&path, &one("a", Some("s3cret"))).unwrap());
        assert!(!set_secrets(&path, &one("a", Some("s3cret"))).unwrap());
        assert!(set_secrets(&path, &one("b", Some("other"))).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let (secrets, trouble) = Secrets::load(&path);
        assert_eq!((secrets.get("a"), secrets.get("c"), trouble), (Some("s3cret"), None, None));
        assert_eq!(format!("{secrets:?}"), r#"{"a", "b"}"#);
        assert!(set_secrets(&path, &one("a", None)).unwrap());
        assert_eq!(Secrets::load(&path).0.names().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn a_file_that_others_can_read_holds_no_secrets_and_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.json");
        set_secrets(&path, &one("a", Some("s3cret"))).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let (secrets, trouble) = Secrets::load(&path);
        assert_eq!(secrets.get("a"), None);
        assert!(trouble.unwrap().to_string().contains("chmod 600"));
        assert!(set_secrets(&path, &one("b", Some("x"))).is_err());
    }
}
