//! The keychain of macOS.

use security_framework::base::Error;
use security_framework::passwords;

use super::{Entry, Keyring, KeyringError};

/// What the keychain says when there is no such item.
const NOT_FOUND: i32 = -25300;

pub(super) fn get(_: &Keyring, entry: &Entry<'_>) -> Result<Option<String>, KeyringError> {
    match passwords::get_generic_password(&service(entry), entry.name) {
        Ok(value) => String::from_utf8(value)
            .map(Some)
            .map_err(|_| KeyringError::Unreachable("what it holds is no text".to_owned())),
        Err(error) if error.code() == NOT_FOUND => Ok(None),
        Err(error) => Err(said(&error)),
    }
}

pub(super) fn set(_: &Keyring, entry: &Entry<'_>, value: &str) -> Result<(), KeyringError> {
    passwords::set_generic_password(&service(entry), entry.name, value.as_bytes()).map_err(|error| said(&error))
}

pub(super) fn remove(_: &Keyring, entry: &Entry<'_>) -> Result<(), KeyringError> {
    match passwords::delete_generic_password(&service(entry), entry.name) {
        Err(error) if error.code() != NOT_FOUND => Err(said(&error)),
        _ => Ok(()),
    }
}

/// Items of another home are others.
fn service(entry: &Entry<'_>) -> String {
    format!("ollm {}", entry.owner)
}

fn said(error: &Error) -> KeyringError {
    KeyringError::Unreachable(error.to_string())
}
