//! The key for a model's server. It is filed under the server's address, so that no other server ever gets it.

use ollm_catalog::{Config, Origin, Setting, find_key};
use ollm_protocol::{Layer, Remedy};
use ollm_store::{Place, Secrets};

use super::ModelConfig;
use crate::app_context::AppContext;
use crate::error::AppError;
use crate::secrets;

/// What it is called on the command line; it stands in no file of settings.
pub const SETTING: &str = "model.apiKey";

/// How a person keeps it.
pub(super) const REMEDY: Remedy = Remedy::Configure { key: SETTING, value: None };

/// The key that a person keeps for a server.
pub(super) fn find(url: &str, context: &AppContext) -> Result<Option<String>, AppError> {
    secrets::get(&name(url), context)
        .map_err(|failure| failure.hint(format!("{}, or set OLLM_MODEL_KEY", context.tell(&REMEDY))))
}

/// The server that the configuration names: a key is for one server.
pub fn server(config: &Config, context: &AppContext) -> Result<String, AppError> {
    ModelConfig::of(config).server(context)
}

/// Keeps the key for a server; says where, to stand after what was kept.
pub fn keep(url: &str, key: &str, context: &AppContext) -> Result<String, AppError> {
    secrets::keep(&name(url), key, context)
}

/// Forgets the key for a server; false where none was kept.
pub fn forget(url: &str, context: &AppContext) -> Result<bool, AppError> {
    secrets::remove(&[name(url)], context)
}

/// The key as a setting, if there is one for the server that the configuration names.
pub fn setting(config: &Config, context: &AppContext) -> Option<Setting> {
    let url = ModelConfig::of(config).server(context).ok()?;
    let file = context.places.secrets();
    let origin = match Secrets::load(&file, None).0.place(&name(&url))? {
        Place::Keyring => Origin::Keyring,
        Place::File => Origin::File { layer: Layer::User, file, line: 0, column: 0 },
    };
    Some(Setting { path: SETTING.to_owned(), key: find_key(SETTING).ok()?, value: "(hidden)".into(), origin })
}

fn name(url: &str) -> String {
    format!("model:{url}")
}
