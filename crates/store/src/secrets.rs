//! Secrets that a person stored with us: values by name, in the system's keyring if there is one, otherwise in a file
//! that only its owner can read.
//!
//! The file also says which secrets are in the keyring. So a listing needs no keyring, and neither does a look-up of a
//! missing secret. A file that others can read or write is not used: its content is no longer secret, and the person
//! should learn that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::keyring::{Keyring, KeyringError};
use crate::versioned::{self, Loaded, Trouble, UpdateError, broken};

const VERSION: u32 = 1;
const MAX_BYTES: u64 = 1 << 20;
/// The keys in the file: the values, and how often each secret in the keyring was set.
const TEXTS: &str = "secrets";
const IN_KEYRING: &str = "keyring";

/// All secrets; `Debug` never shows values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    path: PathBuf,
    texts: BTreeMap<String, String>,
    in_keyring: BTreeMap<String, u64>,
    keyring: Option<Keyring>,
}

/// Where a secret is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretPlace {
    /// In the system's keyring.
    Keyring,
    /// In our own file.
    File,
}

/// The result of storing a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSecret {
    /// Where it is now.
    pub place: SecretPlace,
    /// Why the given keyring does not hold it.
    pub instead: Option<KeyringError>,
}

/// Why a secret cannot be read, stored or removed.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file says that it is in the keyring, but no keyring was given.
    #[error("it is in the system keyring, which this session has none of")]
    NoKeyring,
    /// The keyring refuses to return or store it.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    /// The file says that it is in the keyring, but the keyring does not have it.
    #[error("it is not in the system keyring any more")]
    Gone,
    /// The file could not be changed.
    #[error(transparent)]
    File(#[from] UpdateError),
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.names()).finish()
    }
}

impl Secrets {
    /// Reads the names of all secrets. A file that cannot be trusted counts as empty, and the trouble says why. The
    /// keyring is asked only when one of its secrets is requested.
    ///
    /// ```
    /// use ollm_store::{Secrets, SecretPlace, keep_secret};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let file = folder.path().join("secrets.json");
    /// // No keyring is named here: the file takes it.
    /// let deposit = keep_secret(&file, None, "mcp:github", "gho_123").unwrap();
    /// assert_eq!(deposit.place, SecretPlace::File);
    /// let (secrets, _) = Secrets::load(&file, None);
    /// assert_eq!(secrets.get("mcp:github").unwrap().as_deref(), Some("gho_123"));
    /// ```
    pub fn load(path: &Path, keyring: Option<Keyring>) -> (Secrets, Option<Trouble>) {
        let none = Secrets { path: path.to_owned(), keyring, ..Secrets::default() };
        let read = match versioned::load(path, VERSION, MAX_BYTES) {
            Loaded::Missing => return (none, None),
            Loaded::Current(document) => closed(path).and_then(|()| Contents::read(path, &document)),
            Loaded::Refused(trouble) => Err(trouble),
        };
        match read {
            Ok(Contents { texts, in_keyring }) => (Secrets { texts, in_keyring, ..none }, None),
            Err(trouble) => (none, Some(trouble)),
        }
    }

    /// Where the secret with this name is stored, if it exists.
    pub fn place(&self, name: &str) -> Option<SecretPlace> {
        match (self.in_keyring.contains_key(name), self.texts.contains_key(name)) {
            (true, _) => Some(SecretPlace::Keyring),
            (false, true) => Some(SecretPlace::File),
            (false, false) => None,
        }
    }

    /// The secret with this name. A keyring is asked only if it holds the secret, and only for a short time.
    pub fn get(&self, name: &str) -> Result<Option<String>, SecretError> {
        match self.place(name) {
            None => Ok(None),
            Some(SecretPlace::File) => Ok(self.texts.get(name).cloned()),
            Some(SecretPlace::Keyring) => {
                let keyring = self.keyring.as_ref().ok_or(SecretError::NoKeyring)?;
                keyring.get(&self.path, name)?.map(Some).ok_or(SecretError::Gone)
            }
        }
    }

    /// How often a secret in the keyring was set. This shows whether it has changed, without asking the keyring.
    pub fn edition(&self, name: &str) -> u64 {
        self.in_keyring.get(name).copied().unwrap_or_default()
    }

    /// The names of all secrets, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<&String> = self.texts.keys().chain(self.in_keyring.keys()).collect();
        names.into_iter().map(String::as_str)
    }
}

/// Stores a secret in the keyring, or in the file if no keyring is given or the keyring refuses it. An empty text
/// always goes into the file: it is no secret, and this way no keyring is asked about it.
pub fn keep_secret(
    path: &Path,
    keyring: Option<&Keyring>,
    name: &str,
    value: &str,
) -> Result<StoredSecret, SecretError> {
    // The keyring comes first: if this process is killed in between, the name keeps its old meaning.
    let taken = keyring.filter(|_| !value.is_empty()).map(|keyring| keyring.set(path, name, value));
    let place = if matches!(taken, Some(Ok(()))) { SecretPlace::Keyring } else { SecretPlace::File };
    change(path, |contents| match place {
        SecretPlace::Keyring => {
            contents.texts.remove(name);
            let edition = contents.in_keyring.entry(name.to_owned()).or_default();
            *edition = edition.saturating_add(1);
        }
        SecretPlace::File => {
            contents.in_keyring.remove(name);
            contents.texts.insert(name.to_owned(), value.to_owned());
        }
    })?;
    if let Some(keyring) = keyring.filter(|_| value.is_empty()) {
        // The earlier value is no longer used; removing it as well is better, but may fail.
        let _ = keyring.remove(path, name);
    }
    Ok(StoredSecret { place, instead: taken.and_then(Result::err) })
}

/// Removes secrets wherever they are stored; false when there were none. If the keyring refuses to remove a secret, its
/// name is kept.
pub fn drop_secrets(path: &Path, keyring: Option<&Keyring>, names: &[String]) -> Result<bool, SecretError> {
    let (secrets, trouble) = Secrets::load(path, None);
    if let Some(trouble) = trouble {
        return Err(UpdateError::from(trouble).into());
    }
    let there: Vec<&String> = names.iter().filter(|name| secrets.place(name).is_some()).collect();
    if there.is_empty() {
        return Ok(false);
    }
    for name in there.iter().filter(|name| secrets.place(name) == Some(SecretPlace::Keyring)) {
        keyring.ok_or(SecretError::NoKeyring)?.remove(path, name)?;
    }
    Ok(change(path, |contents| {
        for name in &there {
            contents.texts.remove(*name);
            contents.in_keyring.remove(*name);
        }
    })?)
}

/// The content of the file.
#[derive(Clone, Default, PartialEq, Eq)]
struct Contents {
    texts: BTreeMap<String, String>,
    in_keyring: BTreeMap<String, u64>,
}

impl Contents {
    fn read(path: &Path, document: &Value) -> Result<Contents, Trouble> {
        let texts = document.get(TEXTS).and_then(Value::as_object);
        let texts = texts.ok_or_else(|| broken(path, format!("{} has no object \"{TEXTS}\"", path.display())))?;
        let texts = texts.iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let names = document.get(IN_KEYRING).and_then(Value::as_object).into_iter().flatten();
        let in_keyring = names.map(|(name, edition)| (name.clone(), edition.as_u64().unwrap_or_default())).collect();
        Ok(Contents { texts: texts.collect(), in_keyring })
    }

    /// Writes the secrets into a document; its other fields stay.
    fn write(self, document: &mut Map<String, Value>) {
        let texts: Map<String, Value> = self.texts.into_iter().map(|(name, value)| (name, value.into())).collect();
        document.insert(TEXTS.to_owned(), texts.into());
        let editions: Map<String, Value> =
            self.in_keyring.into_iter().map(|(name, edition)| (name, edition.into())).collect();
        document.insert(IN_KEYRING.to_owned(), editions.into());
    }
}

/// Changes the file; false when nothing changed.
fn change(path: &Path, edit: impl FnOnce(&mut Contents)) -> Result<bool, UpdateError> {
    versioned::update(path, VERSION, MAX_BYTES, |document| {
        if document.is_some() {
            closed(path)?;
        }
        let mut document = document.unwrap_or_else(|| json!({"version": VERSION, TEXTS: {}}));
        let before = Contents::read(path, &document)?;
        let mut after = before.clone();
        edit(&mut after);
        let differs = after != before;
        if let Some(map) = document.as_object_mut() {
            after.write(map);
        }
        Ok((differs.then_some(document), differs))
    })
}

/// Checks that no other user can read the file.
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

    fn keep(path: &Path, name: &str, value: &str) -> StoredSecret {
        keep_secret(path, None, name, value).unwrap()
    }

    fn get(secrets: &Secrets, name: &str) -> Option<String> {
        secrets.get(name).unwrap()
    }

    #[test]
    fn secrets_are_kept_for_their_owner_alone_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.json");
        assert_eq!(keep(&path, "a", "s3cret"), StoredSecret { place: SecretPlace::File, instead: None });
        keep(&path, "b", "other");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let (secrets, trouble) = Secrets::load(&path, None);
        assert_eq!((get(&secrets, "a").as_deref(), get(&secrets, "c"), trouble), (Some("s3cret"), None, None));
        assert_eq!(format!("{secrets:?}"), r#"{"a", "b"}"#);
        assert!(drop_secrets(&path, None, &["a".to_owned(), "c".to_owned()]).unwrap());
        assert!(!drop_secrets(&path, None, &["a".to_owned()]).unwrap());
        assert_eq!(Secrets::load(&path, None).0.names().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn a_file_that_others_can_read_holds_no_secrets_and_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.json");
        keep(&path, "a", "s3cret");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let (secrets, trouble) = Secrets::load(&path, None);
        assert_eq!(get(&secrets, "a"), None);
        assert!(trouble.unwrap().to_string().contains("chmod 600"));
        assert!(keep_secret(&path, None, "b", "x").is_err());
        assert!(drop_secrets(&path, None, &["a".to_owned()]).is_err());
    }

    #[test]
    fn a_keyring_that_is_not_there_leaves_the_secret_in_the_file_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.json");
        let nowhere = Keyring::at("unix:path=/nonexistent/bus");
        let deposit = keep_secret(&path, Some(&nowhere), "a", "s3cret").unwrap();
        assert_eq!(deposit.place, SecretPlace::File);
        assert!(deposit.instead.unwrap().to_string().contains("cannot be used"));
        let (secrets, _) = Secrets::load(&path, Some(nowhere));
        assert_eq!(get(&secrets, "a").as_deref(), Some("s3cret"));
    }

    #[test]
    fn a_secret_in_a_keyring_is_known_without_asking_and_missed_aloud() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.json");
        crate::write_atomic(&path, br#"{"version": 1, "secrets": {}, "keyring": {"a": 1}, "more": 1}"#).unwrap();
        let (secrets, _) = Secrets::load(&path, None);
        assert_eq!(secrets.place("a"), Some(SecretPlace::Keyring));
        assert!(matches!(secrets.get("a").unwrap_err(), SecretError::NoKeyring));
        assert!(matches!(drop_secrets(&path, None, &["a".to_owned()]).unwrap_err(), SecretError::NoKeyring));
        let (secrets, _) = Secrets::load(&path, Some(Keyring::at("unix:path=/nonexistent/bus")));
        assert!(matches!(secrets.get("a").unwrap_err(), SecretError::Keyring(KeyringError::Unreachable(_))));
        // Set again without a keyring, the secret moves into the file.
        keep(&path, "a", "anew");
        let (secrets, _) = Secrets::load(&path, None);
        assert_eq!((secrets.place("a"), get(&secrets, "a").as_deref()), (Some(SecretPlace::File), Some("anew")));
        assert!(fs::read_to_string(&path).unwrap().contains("more"));
    }
}
