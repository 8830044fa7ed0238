//! Pins: the versions, commits and digests that extensions must keep.

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

/// All pins, by the names of extensions.
pub fn pins(context: &AppContext) -> Result<BTreeMap<String, String>, AppError> {
    match versioned::load(&path(context), VERSION, LARGEST_FILE) {
        Loaded::Missing => Ok(BTreeMap::new()),
        Loaded::Current(document) => Ok(read(&document)),
        // Without its pin, an extension could change.
        Loaded::Refused(trouble) => Err(AppError::new(Code::Unreadable, trouble.to_string())),
    }
}

/// Pins an extension, or removes its pin; returns whether there was one.
pub fn set_pin(name: &str, pin: Option<&str>, context: &AppContext) -> Result<bool, AppError> {
    let file = path(context);
    if pin.is_none() && !file.exists() {
        return Ok(false);
    }
    let unkept = |error: UpdateError| AppError::new(Code::NotWritten, format!("the pins were not changed: {error}"));
    versioned::update(&file, VERSION, LARGEST_FILE, |document| {
        let mut pins = document.as_ref().map(read).unwrap_or_default();
        let before = match pin {
            Some(pin) => pins.insert(name.to_owned(), pin.to_owned()),
            None => pins.remove(name),
        };
        let changed = before.as_deref() != pin;
        Ok((changed.then(|| json!({"version": VERSION, "pins": pins})), before.is_some()))
    })
    .map_err(unkept)
}

fn read(document: &Value) -> BTreeMap<String, String> {
    let pins = document.get("pins").and_then(Value::as_object).into_iter().flatten();
    pins.filter_map(|(name, pin)| Some((name.clone(), pin.as_str()?.to_owned()))).collect()
}
