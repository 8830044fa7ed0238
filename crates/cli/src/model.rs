//! Which model answers: what was typed, else what the environment says, else what a local Ollama has.

use std::path::Path;

use ollm_agent::{Model, ModelName, OpenAi, Patience, Provider, Record, Replay, models, ollama_url};

use crate::error::{Failure, Kind};
use crate::world::World;

/// Where OpenAI's own models are.
const OPENAI: &str = "https://api.openai.com/v1";

/// The model to ask, by the name that was typed.
pub(crate) fn open(typed: Option<&str>, world: &World) -> Result<Box<dyn Model>, Failure> {
    let name = match typed.map(str::to_owned).or_else(|| world.variable("OLLM_MODEL").filter(|name| !name.is_empty())) {
        Some(typed) => ModelName::parse(&typed).map_err(|error| Failure::new(Kind::Usage, error.to_string()))?,
        None => found(world)?,
    };
    Ok(match name.provider {
        Provider::Replay => Box::new(
            Replay::open(&world.cwd.join(&name.name))
                .map_err(|error| Failure::new(Kind::Configuration, error.to_string()))?,
        ),
        Provider::Ollama => {
            let url = name.base_url.unwrap_or_else(|| ollama_url(world.variable("OLLAMA_HOST").as_deref()));
            Box::new(OpenAi::new(url, name.name, world.variable("OLLM_MODEL_KEY")))
        }
        Provider::OpenAi => {
            // OpenAI's key is for OpenAI; another server gets only the key that is meant for it.
            let own = name.base_url.is_none().then(|| world.variable("OPENAI_API_KEY")).flatten();
            let url = name.base_url.unwrap_or_else(|| OPENAI.to_owned());
            Box::new(OpenAi::new(url, name.name, own.or_else(|| world.variable("OLLM_MODEL_KEY"))))
        }
    })
}

/// The same model, written down as it answers.
pub(crate) fn record(model: Box<dyn Model>, file: &Path) -> Result<Box<dyn Model>, Failure> {
    let record = Record::create(model, file);
    let record = record.map_err(|error| Failure::new(Kind::Environment, format!("--record: {error}")))?;
    Ok(Box::new(record))
}

/// The first model that a local Ollama has.
fn found(world: &World) -> Result<ModelName, Failure> {
    let url = ollama_url(world.variable("OLLAMA_HOST").as_deref());
    let patience = Patience { silence: std::time::Duration::from_secs(10), ..Patience::default() };
    let names = models(&url, None, &patience).map_err(|error| {
        Failure::new(Kind::Environment, format!("no model is named, and no Ollama answers: {error}"))
            .hint("name one: `ollm run --model openai:NAME@http://HOST:PORT/v1 …`, or set OLLM_MODEL")
            .hint("try it without a model: `ollm demo`")
    })?;
    let name = names.into_iter().next().ok_or_else(|| {
        Failure::new(Kind::Environment, format!("Ollama at {url} has no model yet"))
            .hint("fetch one: `ollama pull llama3.2`")
    })?;
    Ok(ModelName { provider: Provider::Ollama, name, base_url: Some(url) })
}
