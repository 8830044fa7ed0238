//! The key for a model's server. It is stored under the server's address, so that no other server ever gets it.

use ollm_catalog::{Config, Origin, Setting, find_key};
use ollm_protocol::{Layer, Remedy};
use ollm_store::{SecretPlace, Secrets};

use super::ModelConfig;
use crate::app_context::AppContext;
use crate::error::AppError;
use crate::secrets;

/// The setting's name on the command line; no settings file contains it.
pub const SETTING: &str = "model.apiKey";

/// How a person stores it.
pub(super) const REMEDY: Remedy = Remedy::Configure { key: SETTING, value: None };

/// The stored key for a server.
pub(super) fn find(url: &str, context: &AppContext) -> Result<Option<String>, AppError> {
    secrets::get(&name(url), context)
        .map_err(|failure| failure.hint(format!("{}, or set OLLM_MODEL_KEY", context.tell(&REMEDY))))
}

/// The configured server; a key is for one server only.
pub fn server(config: &Config, context: &AppContext) -> Result<String, AppError> {
    ModelConfig::of(config).server(context)
}

/// Stores the key for a server; returns the place, as the end of a sentence.
pub fn keep(url: &str, key: &str, context: &AppContext) -> Result<String, AppError> {
    secrets::keep(&name(url), key, context)
}

/// Deletes the key for a server; false if there was none.
pub fn forget(url: &str, context: &AppContext) -> Result<bool, AppError> {
    secrets::remove(&[name(url)], context)
}

/// The key for the configured server as a setting, if there is one.
pub fn setting(config: &Config, context: &AppContext) -> Option<Setting> {
    let url = ModelConfig::of(config).server(context).ok()?;
    let file = context.places.secrets();
    let origin = match Secrets::load(&file, None).0.place(&name(&url))? {
        SecretPlace::Keyring => Origin::Keyring,
        SecretPlace::File => Origin::File { layer: Layer::User, file, line: 0, column: 0 },
    };
    Some(Setting { path: SETTING.to_owned(), key: find_key(SETTING).ok()?, value: "(hidden)".into(), origin })
}

fn name(url: &str) -> String {
    format!("model:{url}")
}
