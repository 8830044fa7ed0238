//! Which model answers: what was typed, else what the environment says, else the configuration, else what a local
//! Ollama has.

use std::path::Path;

use ollm_agent::{
    Anthropic, Connection, Model, ModelName, Ollama, OpenAi, PROVIDERS, Provider, Record, Replay, Responses, ollama_url,
};
use ollm_catalog::Config;
use ollm_protocol::{Code, Remedy};
use serde_json::{Map, Value};

use crate::app_context::AppContext;
use crate::error::AppError;

pub mod key;
pub mod library;

/// Where OpenAI's own models are.
const OPENAI: &str = "https://api.openai.com/v1";
/// Where Anthropic's own models are.
const ANTHROPIC: &str = "https://api.anthropic.com/v1";

/// What the configuration says about the model.
#[derive(Debug, Default)]
pub struct ModelConfig {
    provider: Option<String>,
    name: Option<String>,
    base_url: Option<String>,
    key_variable: Option<String>,
    /// Where a key stands that should not stand there.
    misplaced: Option<String>,
    /// How freely it answers.
    pub temperature: Option<f64>,
    /// How many tokens it can look at.
    pub context_window: Option<u64>,
    /// How often it may repeat itself.
    pub max_repeats: Option<u64>,
    /// What is handed on as it is.
    options: Map<String, Value>,
}

impl ModelConfig {
    /// What this configuration says.
    pub fn of(config: &Config) -> ModelConfig {
        let mut wish = ModelConfig::default();
        for (name, setting) in config.model() {
            let text = || setting.value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
            match name.as_str() {
                _ if setting.value.is_null() => {}
                "provider" => wish.provider = text(),
                "name" => wish.name = text(),
                "baseUrl" => wish.base_url = text().map(|url| url.trim_end_matches('/').to_owned()),
                "apiKeyEnv" => wish.key_variable = text(),
                // Keys do not stand in a file of settings, and are no option of a model either.
                "apiKey" => wish.misplaced = Some(setting.origin.to_string()),
                "temperature" => wish.temperature = setting.value.as_f64(),
                "contextWindow" => wish.context_window = setting.value.as_u64(),
                "maxRepeats" => wish.max_repeats = setting.value.as_u64(),
                "maxTokens" => drop(wish.options.insert("max_tokens".to_owned(), setting.value.clone())),
                _ => drop(wish.options.insert(name, setting.value.clone())),
            }
        }
        wish
    }

    /// The model the configuration names, if it names one.
    fn model(&self, context: &AppContext) -> Result<Option<ModelName>, AppError> {
        let Some(name) = &self.name else {
            return match self.provider(context)? {
                None if self.base_url.is_none() => Ok(None),
                None | Some(Provider::Ollama) => {
                    library::choose(&self.ollama(context), self.key(context), context).map(Some)
                }
                Some(_) => Err(wrong("model.name is missing: which of the provider's models is meant?", context)),
            };
        };
        let mut model = match self.provider(context)? {
            Some(provider) => ModelName { provider, name: name.clone(), base_url: None },
            None => ModelName::parse(name).map_err(|error| wrong(&format!("model.name: {error}"), context))?,
        };
        model.base_url = model.base_url.or_else(|| self.base_url.clone());
        Ok(Some(model))
    }

    fn provider(&self, context: &AppContext) -> Result<Option<Provider>, AppError> {
        let Some(said) = &self.provider else { return Ok(None) };
        let found = PROVIDERS.iter().find(|(name, _)| name == said);
        let known: Vec<&str> = PROVIDERS.iter().map(|(name, _)| *name).collect();
        let unknown = || {
            wrong(&format!("model.provider: there is no provider `{said}`; known are {}", known.join(", ")), context)
        };
        found.map(|(_, provider)| Some(*provider)).ok_or_else(unknown)
    }

    /// The server of the model that the configuration names.
    fn server(&self, context: &AppContext) -> Result<String, AppError> {
        let named = self.name.as_deref().filter(|_| self.provider.is_none()).map(ModelName::parse).transpose();
        let named = named.map_err(|error| wrong(&format!("model.name: {error}"), context))?;
        let url = named.as_ref().and_then(|name| name.base_url.clone()).or_else(|| self.base_url.clone());
        match (url, self.provider(context)?.or(named.map(|name| name.provider))) {
            (Some(url), _) => Ok(url),
            (None, Some(Provider::OpenAi | Provider::Responses)) => Ok(OPENAI.to_owned()),
            (None, Some(Provider::Anthropic)) => Ok(ANTHROPIC.to_owned()),
            (None, Some(Provider::Ollama)) => Ok(self.ollama(context)),
            (None, Some(Provider::Replay) | None) => {
                let set = |key, value| context.tell(&Remedy::Configure { key, value: Some(value) });
                Err(AppError::new(Code::InvalidValue, "a key is for a server, and the configuration names none")
                    .hint(format!("{}, or {}, first", set("model.provider", "openai"), set("model.baseUrl", "URL"))))
            }
        }
    }

    /// What is handed on; an Ollama loads the model with the window that is wanted.
    fn options_for(&self, provider: Provider) -> Map<String, Value> {
        let mut options = self.options.clone();
        if let (Provider::Ollama, Some(window)) = (provider, self.context_window) {
            options.entry("num_ctx").or_insert_with(|| window.into());
        }
        options
    }

    /// Where Ollama is.
    fn ollama(&self, context: &AppContext) -> String {
        self.base_url.clone().unwrap_or_else(|| ollama_url(context.variable("OLLAMA_HOST").as_deref()))
    }

    /// The key for the server that the configuration names.
    fn key(&self, context: &AppContext) -> Option<String> {
        let own = self.key_variable.as_ref().and_then(|name| context.variable(name));
        own.or_else(|| context.variable("OLLM_MODEL_KEY")).filter(|key| !key.is_empty())
    }
}

/// Whether somebody says which model is to answer.
pub(crate) fn is_named(typed: Option<&str>, wish: &ModelConfig, context: &AppContext) -> bool {
    typed.is_some() || context.variable("OLLM_MODEL").is_some_and(|name| !name.is_empty()) || wish.name.is_some()
}

/// The model to ask, by the name that was typed.
pub fn open(typed: Option<&str>, wish: &ModelConfig, context: &AppContext) -> Result<Box<dyn Model>, AppError> {
    let named = typed.map(str::to_owned).or_else(|| context.variable("OLLM_MODEL").filter(|name| !name.is_empty()));
    let (name, configured) = match named {
        Some(typed) => {
            let name =
                ModelName::parse(&typed).map_err(|error| AppError::new(Code::UnknownModel, error.to_string()))?;
            (name, false)
        }
        None => match wish.model(context)? {
            Some(name) => (name, true),
            None => (library::choose(&wish.ollama(context), None, context)?, false),
        },
    };
    let url = name.base_url;
    let key = if configured { wish.key(context) } else { context.variable("OLLM_MODEL_KEY") };
    let (url, key) = match name.provider {
        Provider::Replay => {
            let file = context.cwd.join(&name.name);
            return Ok(Box::new(Replay::open(&file).map_err(|error| {
                let failure = AppError::new(Code::ModelSettings, error.to_string());
                if file.exists() { failure } else { failure.hint(context.tell(&Remedy::RecordModel)) }
            })?));
        }
        Provider::Ollama => (url.unwrap_or_else(|| ollama_url(context.variable("OLLAMA_HOST").as_deref())), key),
        // OpenAI's key is for OpenAI, Anthropic's for Anthropic; another server gets only the key that is meant for it.
        Provider::OpenAi | Provider::Responses => match url {
            None => (OPENAI.to_owned(), context.variable("OPENAI_API_KEY").or(key)),
            Some(url) => (url, key),
        },
        Provider::Anthropic => match url {
            None => (ANTHROPIC.to_owned(), context.variable("ANTHROPIC_API_KEY").or(key)),
            Some(url) => (url, key),
        },
    };
    if let Some(place) = &wish.misplaced {
        return Err(AppError::new(
            Code::ModelSettings,
            format!("{place}: a key does not belong into a file of settings"),
        )
        .hint(format!("remove it there, then {}", context.tell(&key::REMEDY))));
    }
    let key = match key.filter(|key| !key.is_empty()) {
        Some(key) => Some(key),
        None => key::find(&url, context)?,
    };
    let connection = Connection {
        temperature: wish.temperature,
        options: wish.options_for(name.provider),
        network: context.network.clone(),
        ..Connection::new(url, name.name, key)
    };
    Ok(match name.provider {
        Provider::Ollama => Box::new(Ollama::new(connection)),
        Provider::Responses => Box::new(Responses::new(connection)),
        Provider::Anthropic => Box::new(Anthropic::new(connection)),
        Provider::OpenAi | Provider::Replay => Box::new(OpenAi::new(connection)),
    })
}

/// The same model, written down as it answers.
pub fn record(model: Box<dyn Model>, file: &Path) -> Result<Box<dyn Model>, AppError> {
    let record = Record::create(model, file);
    let record = record
        .map_err(|error| AppError::new(Code::NotWritten, format!("the answers cannot be written down: {error}")))?;
    Ok(Box::new(record))
}

fn wrong(why: &str, context: &AppContext) -> AppError {
    AppError::new(Code::ModelSettings, why).hint(context.tell(&Remedy::ShowConfiguration("model")))
}
