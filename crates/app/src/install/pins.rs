//! Pins: versions, commits and digests that extensions are held to.

use std::collections::BTreeMap;

use ollm_protocol::Code;
use ollm_store::versioned::{self, Loaded, UpdateError};
use serde_json::{Value, json};

use crate::app_context::AppContext;
use crate::error::AppError;

const VERSION: u32 = 1;
const LARGEST_FILE: u64 = 1 << 20;

fn path(context: &AppContext) -> std::path::PathBuf {
    context.state().join("extension-pins.json")
}

/// The pins there are, by the names of extensions.
pub fn pins(context: &AppContext) -> Result<BTreeMap<String, String>, AppError> {
    match versioned::load(&path(context), VERSION, LARGEST_FILE) {
        Loaded::Missing => Ok(BTreeMap::new()),
        Loaded::Current(document) => Ok(read(&document)),
        // Who was held to something must not go on without it.
        Loaded::Refused(trouble) => Err(AppError::new(Code::Unreadable, trouble.to_string())),
    }
}

/// Pins an extension, or takes its pin away; says whether there was one.
pub fn set_pin(name: &str, pin: Option<&str>, context: &AppContext) -> Result<bool, AppError> {
    let file = path(context);
    if pin.is_none() && !file.exists() {
        return Ok(false);
    }
    let unkept = |error: UpdateError| AppError::new(Code::NotWritten, format!("the pin was not kept: {error}"));
    let was_there = versioned::update(&file, VERSION, LARGEST_FILE, |document| {
        let mut pins = document.as_ref().map(read).unwrap_or_default();
        let before = match pin {
            Some(pin) => pins.insert(name.to_owned(), pin.to_owned()),
            None => pins.remove(name),
        };
        let changed = before.as_deref() != pin;
        Ok((changed.then(|| json!({"version": VERSION, "pins": pins})), before.is_some()))
    });
    let was_there = was_there.map_err(unkept)?;
    if pin.is_none() {
        versioned::remove_if(&file, VERSION, LARGEST_FILE, |document| read(document).is_empty()).map_err(unkept)?;
    }
    Ok(was_there)
}

fn read(document: &Value) -> BTreeMap<String, String> {
    let pins = document.get("pins").and_then(Value::as_object).into_iter().flatten();
    pins.filter_map(|(name, pin)| Some((name.clone(), pin.as_str()?.to_owned()))).collect()
}
