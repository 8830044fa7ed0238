//! What a person entrusts to us: kept in the system's keyring, or in a file of theirs where there is none.

use std::time::Duration;

use ollm_protocol::Code;
use ollm_store::{Deposit, Keyring, Place, Secrets, drop_secrets, keep_secret};

use crate::app_context::AppContext;
use crate::error::AppError;

/// How long a person may take to unlock their keyring.
const PERSON: Duration = Duration::from_mins(2);

/// The secret of this name, if there is one.
pub fn get(name: &str, context: &AppContext) -> Result<Option<String>, AppError> {
    let unread = |why: String| AppError::new(Code::NoSecret, format!("the secret `{name}` cannot be had: {why}"));
    match Secrets::load(&context.places.secrets(), asking(context)) {
        (_, Some(trouble)) => Err(unread(trouble.to_string())),
        (secrets, None) => secrets.get(name).map_err(|error| unread(error.to_string())),
    }
}

/// Keeps a secret; says where, to stand after what was kept.
pub fn keep(name: &str, value: &str, context: &AppContext) -> Result<String, AppError> {
    let file = context.places.secrets();
    let deposit = keep_secret(&file, asking(context).as_ref(), name, value);
    let deposit =
        deposit.map_err(|error| AppError::new(Code::NoSecret, format!("the secret was not kept: {error}")))?;
    Ok(match deposit {
        Deposit { place: Place::Keyring, .. } => ", in the system keyring".to_owned(),
        Deposit { place: Place::File, instead } => {
            let why = instead.map(|why| format!(" ({why})")).unwrap_or_default();
            format!(", in {}, which only you can read{why}", file.display())
        }
    })
}

/// Removes secrets from wherever they are.
pub fn remove(names: &[String], context: &AppContext) -> Result<bool, AppError> {
    let dropped = drop_secrets(&context.places.secrets(), asking(context).as_ref(), names);
    dropped.map_err(|error| AppError::new(Code::NoSecret, format!("the secret was not removed: {error}")))
}

/// The keyring; where a person is there, they may be asked to unlock it.
fn asking(context: &AppContext) -> Option<Keyring> {
    let keyring = context.keyring()?;
    Some(if context.person.is_some() { keyring.asking(PERSON) } else { keyring })
}
