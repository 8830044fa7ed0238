//! What a person entrusts to us: kept in the system's keyring, or in a file of theirs where there is none.

use std::time::Duration;

use ollm_store::{Deposit, Keyring, Place, Secrets, drop_secrets, keep_secret};

use crate::error::{AppError, ErrorKind};
use crate::world::World;

/// How long a person may take to unlock their keyring.
const PERSON: Duration = Duration::from_mins(2);

/// The secret of this name, if there is one.
pub fn get(name: &str, world: &World) -> Result<Option<String>, AppError> {
    let unread =
        |why: String| AppError::new(ErrorKind::Environment, format!("the secret `{name}` cannot be had: {why}"));
    match Secrets::load(&world.places.secrets(), asking(world)) {
        (_, Some(trouble)) => Err(unread(trouble.to_string())),
        (secrets, None) => secrets.get(name).map_err(|error| unread(error.to_string())),
    }
}

/// Keeps a secret; says where, to stand after what was kept.
pub fn keep(name: &str, value: &str, world: &World) -> Result<String, AppError> {
    let file = world.places.secrets();
    let deposit = keep_secret(&file, asking(world).as_ref(), name, value);
    let deposit =
        deposit.map_err(|error| AppError::new(ErrorKind::Environment, format!("the secret was not kept: {error}")))?;
    Ok(match deposit {
        Deposit { place: Place::Keyring, .. } => ", in the system keyring".to_owned(),
        Deposit { place: Place::File, instead } => {
            let why = instead.map(|why| format!(" ({why})")).unwrap_or_default();
            format!(", in {}, which only you can read{why}", file.display())
        }
    })
}

/// Removes secrets from wherever they are.
pub fn remove(names: &[String], world: &World) -> Result<bool, AppError> {
    let dropped = drop_secrets(&world.places.secrets(), asking(world).as_ref(), names);
    dropped.map_err(|error| AppError::new(ErrorKind::Environment, format!("the secret was not removed: {error}")))
}

/// The keyring; where a person is there, they may be asked to unlock it.
fn asking(world: &World) -> Option<Keyring> {
    let keyring = world.keyring()?;
    Some(if world.person.is_some() { keyring.asking(PERSON) } else { keyring })
}
