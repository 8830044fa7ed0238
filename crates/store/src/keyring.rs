//! The system's keyring: the Secret Service of free desktops, the keychain of macOS.
//!
//! Where it is comes in as a value: nothing here looks into the environment, so what does not name a keyring cannot touch
//! one. Every wait has an end; a keyring that hangs is one that is not there. Nothing is kept open between two questions.

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

/// How long a keyring may take that asks nobody.
const WAIT: Duration = Duration::from_secs(2);

/// How the system's keyring is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyring {
    address: String,
    wait: Duration,
    person: Option<Duration>,
}

/// Why a keyring does not do what it should; never with a value in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// There is none, or it cannot be used.
    #[error("the system keyring cannot be used: {0}")]
    Unreachable(String),
    /// It is locked, and nobody unlocked it.
    #[error("the system keyring is locked")]
    Locked,
    /// It took too long.
    #[error("the system keyring does not answer")]
    Late,
}

/// What an item is filed under.
pub(crate) struct Entry<'a> {
    owner: &'a str,
    name: &'a str,
}

impl Keyring {
    /// The keyring on the message bus with this address, as in `DBUS_SESSION_BUS_ADDRESS`; macOS has one without.
    pub fn at(address: impl Into<String>) -> Keyring {
        Keyring { address: address.into(), wait: WAIT, person: None }
    }

    /// The same, where a person is there who may be asked to unlock it, and how long that may take.
    pub fn asking(self, person: Duration) -> Keyring {
        Keyring { person: Some(person), ..self }
    }

    /// The same, with another patience for a keyring that asks nobody.
    pub fn waiting(self, wait: Duration) -> Keyring {
        Keyring { wait, ..self }
    }

    pub(crate) fn get(&self, owner: &Path, name: &str) -> Result<Option<String>, KeyringError> {
        system::get(self, &Entry { owner: &owner.to_string_lossy(), name })
    }

    pub(crate) fn set(&self, owner: &Path, name: &str, value: &str) -> Result<(), KeyringError> {
        system::set(self, &Entry { owner: &owner.to_string_lossy(), name }, value)
    }

    /// Takes an item away; it is no error if there is none.
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
