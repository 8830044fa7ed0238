//! Sets the key of a model's server: `ollm config set model.apiKey`.

use std::io::Read;

use ollm_app::model::key;
use ollm_app::{AppContext, refuse_agents};
use ollm_catalog::Config;
use ollm_protocol::Code;

use crate::ask::Asker;
use crate::error::{Failure, OK};
use crate::output::Output;

/// Longer texts are not accepted as keys.
const LONGEST: u64 = 64 << 10;

/// Stores the key for the configured server: from the person, from standard input, or from the command line.
pub(super) fn set(
    typed: Option<&str>,
    config: &Config,
    context: &AppContext,
    output: &mut Output,
) -> Result<u8, Failure> {
    refuse_agents(context, "change the key of a model")?;
    let url = key::server(config, context)?;
    let place = key::keep(&url, &given(typed, &url, output.asker())?, context)?;
    output.tell(&format!("the key for {url} is set{place}"));
    Ok(OK)
}

/// Deletes the key for the configured server.
pub(super) fn unset(config: &Config, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    refuse_agents(context, "remove the key of a model")?;
    let url = key::server(config, context)?;
    let was_set = key::forget(&url, context)?;
    output.tell(&format!("the key for {url} {}", if was_set { "is no longer set" } else { "was not set" }));
    Ok(OK)
}

fn given(typed: Option<&str>, url: &str, asker: &Asker) -> Result<String, Failure> {
    let key = match typed {
        Some("-") => {
            let mut key = String::new();
            let read = std::io::stdin().lock().take(LONGEST).read_to_string(&mut key);
            read.map_err(|error| Failure::new(Code::Unreadable, format!("standard input cannot be read: {error}")))?;
            key
        }
        Some(key) => key.to_owned(),
        None => asker.ask_secret(&format!("The key for {url}: ")).ok_or_else(|| {
            Failure::usage("there is no terminal to ask for the key on")
                .hint(format!("`ollm config set {} -` reads it from standard input", key::SETTING))
        })?,
    };
    match key.trim() {
        "" => Err(Failure::new(Code::InvalidValue, "the key is empty; nothing was changed")),
        key => Ok(key.to_owned()),
    }
}
