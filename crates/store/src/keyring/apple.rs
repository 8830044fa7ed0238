//! The keychain of macOS. It may ask the person by itself and wait for them, so it runs on a separate thread. When our
//! time limit passes, we stop waiting and leave that thread.

use std::sync::mpsc;
use std::thread;

use security_framework::base::Error;
use security_framework::passwords;

use super::{Entry, Keyring, KeyringError};

/// The keychain's error code for a missing item.
const NOT_FOUND: i32 = -25300;

pub(super) fn get(keyring: &Keyring, entry: &Entry<'_>) -> Result<Option<String>, KeyringError> {
    let (service, name) = filed(entry);
    patiently(keyring, move || match passwords::get_generic_password(&service, &name) {
        Ok(value) => String::from_utf8(value)
            .map(Some)
            .map_err(|_| KeyringError::Unreachable("what it holds is no text".to_owned())),
        Err(error) if error.code() == NOT_FOUND => Ok(None),
        Err(error) => Err(said(error)),
    })
}

pub(super) fn set(keyring: &Keyring, entry: &Entry<'_>, value: &str) -> Result<(), KeyringError> {
    let ((service, name), value) = (filed(entry), value.to_owned());
    patiently(keyring, move || passwords::set_generic_password(&service, &name, value.as_bytes()).map_err(said))
}

pub(super) fn remove(keyring: &Keyring, entry: &Entry<'_>) -> Result<(), KeyringError> {
    let (service, name) = filed(entry);
    patiently(keyring, move || match passwords::delete_generic_password(&service, &name) {
        Err(error) if error.code() != NOT_FOUND => Err(said(error)),
        _ => Ok(()),
    })
}

/// The service and account names; items of another home have different names.
fn filed(entry: &Entry<'_>) -> (String, String) {
    (format!("ollm {}", entry.owner), entry.name.to_owned())
}

fn patiently<T: Send + 'static>(
    keyring: &Keyring,
    ask: impl FnOnce() -> Result<T, KeyringError> + Send + 'static,
) -> Result<T, KeyringError> {
    let (tell, told) = mpsc::channel();
    // The receiver may have stopped waiting.
    let asking = thread::Builder::new().name("ollm-keychain".to_owned()).spawn(move || drop(tell.send(ask())));
    asking.map_err(|error| KeyringError::Unreachable(error.to_string()))?;
    told.recv_timeout(keyring.person.unwrap_or(keyring.wait)).unwrap_or(Err(KeyringError::Late))
}

fn said(error: Error) -> KeyringError {
    KeyringError::Unreachable(error.to_string())
}
