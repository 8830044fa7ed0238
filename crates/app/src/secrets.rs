//! Secrets that a person stores with us: in the system's keyring, or in a file if there is no keyring.

use std::time::Duration;

use ollm_protocol::Code;
use ollm_store::{Keyring, SecretPlace, Secrets, StoredSecret, drop_secrets, keep_secret};

use crate::app_context::AppContext;
use crate::error::AppError;

/// How long a person may take to unlock the keyring.
const PERSON: Duration = Duration::from_mins(2);

/// The secret of this name, if there is one.
pub fn get(name: &str, context: &AppContext) -> Result<Option<String>, AppError> {
    let unread = |why: String| AppError::new(Code::NoSecret, format!("the secret `{name}` cannot be had: {why}"));
    match Secrets::load(&context.places.secrets(), asking(context)) {
        (_, Some(trouble)) => Err(unread(trouble.to_string())),
        (secrets, None) => secrets.get(name).map_err(|error| unread(error.to_string())),
    }
}

/// Stores a secret; returns the place, as the end of a sentence.
pub fn keep(name: &str, value: &str, context: &AppContext) -> Result<String, AppError> {
    let file = context.places.secrets();
    let deposit = keep_secret(&file, asking(context).as_ref(), name, value);
    let deposit =
        deposit.map_err(|error| AppError::new(Code::NoSecret, format!("the secret was not kept: {error}")))?;
    Ok(match deposit {
        StoredSecret { place: SecretPlace::Keyring, .. } => ", in the system keyring".to_owned(),
        StoredSecret { place: SecretPlace::File, instead } => {
            let why = instead.map(|why| format!(" ({why})")).unwrap_or_default();
            format!(", in {}, which only you can read{why}", file.display())
        }
    })
}

/// Removes secrets from everywhere.
pub fn remove(names: &[String], context: &AppContext) -> Result<bool, AppError> {
    let dropped = drop_secrets(&context.places.secrets(), asking(context).as_ref(), names);
    dropped.map_err(|error| AppError::new(Code::NoSecret, format!("the secret was not removed: {error}")))
}

/// The keyring. If a person is there, the system may ask them to unlock it.
fn asking(context: &AppContext) -> Option<Keyring> {
    let keyring = context.keyring()?;
    Some(if context.person.is_some() { keyring.asking(PERSON) } else { keyring })
}
