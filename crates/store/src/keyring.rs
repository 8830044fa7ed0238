//! The system's keyring: the Secret Service of free desktops, the keychain of macOS.
//!
//! The address of the keyring comes in as a value. Nothing here reads the environment, so code that passes no address
//! cannot touch a keyring. Every wait has an end; a keyring that hangs counts as absent. No connection stays open
//! between two requests.

use std::path::Path;
use std::time::Duration;

#[cfg(target_os = "macos")]
mod apple;
#[cfg(not(target_os = "macos"))]
mod bus;
#[cfg(not(target_os = "macos"))]
mod service;
#[cfg(not(target_os = "macos"))]
mod wire;

#[cfg(target_os = "macos")]
use apple as system;
#[cfg(not(target_os = "macos"))]
use service as system;

/// How long a keyring may take if it asks no person.
const WAIT: Duration = Duration::from_secs(2);

/// How the system's keyring is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyring {
    address: String,
    wait: Duration,
    person: Option<Duration>,
}

/// Why a keyring request failed; never contains a secret value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// There is no keyring, or it cannot be used.
    #[error("the system keyring cannot be used: {0}")]
    Unreachable(String),
    /// The keyring is locked, and the person did not unlock it.
    #[error("the system keyring is locked")]
    Locked,
    /// The keyring took too long.
    #[error("the system keyring does not answer")]
    Late,
}

/// The owner and the name under which an item is stored.
pub(crate) struct Entry<'a> {
    owner: &'a str,
    name: &'a str,
}

impl Keyring {
    /// The keyring on the message bus with this address, as in `DBUS_SESSION_BUS_ADDRESS`; macOS needs no address.
    pub fn at(address: impl Into<String>) -> Keyring {
        Keyring { address: address.into(), wait: WAIT, person: None }
    }

    /// The same keyring, which may also ask the person to unlock it and wait this long.
    pub fn asking(self, person: Duration) -> Keyring {
        Keyring { person: Some(person), ..self }
    }

    /// The same keyring with another time limit for requests that ask no person.
    pub fn waiting(self, wait: Duration) -> Keyring {
        Keyring { wait, ..self }
    }

    pub(crate) fn get(&self, owner: &Path, name: &str) -> Result<Option<String>, KeyringError> {
        system::get(self, &Entry { owner: &owner.to_string_lossy(), name })
    }

    pub(crate) fn set(&self, owner: &Path, name: &str, value: &str) -> Result<(), KeyringError> {
        system::set(self, &Entry { owner: &owner.to_string_lossy(), name }, value)
    }

    /// Removes an item; a missing item is no error.
    pub(crate) fn remove(&self, owner: &Path, name: &str) -> Result<(), KeyringError> {
        system::remove(self, &Entry { owner: &owner.to_string_lossy(), name })
    }
}

#[cfg(not(target_os = "macos"))]
impl<'a> Entry<'a> {
    fn attributes(&self) -> [(&'static str, &'a str); 3] {
        [("application", "ollm"), ("file", self.owner), ("name", self.name)]
    }
}
