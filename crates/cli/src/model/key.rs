//! The key for a model's server. It is filed under the server's address, so that no other server ever gets it.

use std::io::Read;

use ollm_catalog::{Config, Origin, Setting, find_key};
use ollm_protocol::Layer;
use ollm_store::{Place, Secrets};

use super::Wish;
use crate::agent::refuse_agents;
use crate::error::{Failure, Kind, OK};
use crate::output::{Output, ask_secret};
use crate::secrets;
use crate::world::World;

/// What it is called on the command line; it stands in no file of settings.
pub(crate) const SETTING: &str = "model.apiKey";
/// Longer ones are no keys.
const LONGEST: u64 = 64 << 10;

/// The key that a person keeps for a server.
pub(super) fn find(url: &str, world: &World) -> Result<Option<String>, Failure> {
    secrets::get(&name(url), world)
        .map_err(|failure| failure.hint(format!("`ollm config set {SETTING}` sets it anew, or set OLLM_MODEL_KEY")))
}

/// Keeps the key for the server that the configuration names: from the person, from standard input, or as typed.
pub(crate) fn set(typed: Option<&str>, config: &Config, world: &World, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(world, "change the key of a model")?;
    let url = Wish::of(config).server(world)?;
    let key = given(typed, &url)?;
    let place = secrets::keep(&name(&url), &key, world)?;
    output.tell(&format!("the key for {url} is set{place}"));
    Ok(OK)
}

/// Forgets the key for the server that the configuration names.
pub(crate) fn unset(config: &Config, world: &World, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(world, "remove the key of a model")?;
    let url = Wish::of(config).server(world)?;
    let was_set = secrets::remove(&[name(&url)], world)?;
    output.tell(&format!("the key for {url} {}", if was_set { "is no longer set" } else { "was not set" }));
    Ok(OK)
}

/// The key as a setting, if there is one for the server that the configuration names.
pub(crate) fn setting(config: &Config, world: &World) -> Option<Setting> {
    let url = Wish::of(config).server(world).ok()?;
    let file = world.places.secrets();
    let origin = match Secrets::load(&file, None).0.place(&name(&url))? {
        Place::Keyring => Origin::Keyring,
        Place::File => Origin::File { layer: Layer::User, file, line: 0, column: 0 },
    };
    Some(Setting { path: SETTING.to_owned(), key: find_key(SETTING).ok()?, value: "(hidden)".into(), origin })
}

fn name(url: &str) -> String {
    format!("model:{url}")
}

fn given(typed: Option<&str>, url: &str) -> Result<String, Failure> {
    let key = match typed {
        Some("-") => {
            let mut key = String::new();
            let read = std::io::stdin().lock().take(LONGEST).read_to_string(&mut key);
            read.map_err(|error| Failure::new(Kind::Environment, format!("standard input cannot be read: {error}")))?;
            key
        }
        Some(key) => key.to_owned(),
        None => ask_secret(&format!("The key for {url}: ")).ok_or_else(|| {
            Failure::usage("there is no terminal to ask for the key on")
                .hint(format!("`ollm config set {SETTING} -` reads it from standard input"))
        })?,
    };
    match key.trim() {
        "" => Err(Failure::usage("the key is empty; nothing was changed")),
        key => Ok(key.to_owned()),
    }
}
