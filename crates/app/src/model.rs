//! Chooses the model. The command line comes first, then the environment, then the configuration, then a local Ollama's
//! models.

use std::path::Path;
use std::time::Duration;

use ollm_agent::{
    Anthropic, Connection, Model, ModelName, Ollama, OpenAi, PROVIDERS, Patience, Provider, Record, Replay, Responses,
    ollama_url,
};
use ollm_catalog::Config;
use ollm_protocol::{Code, Remedy};
use serde_json::{Map, Value};

use crate::app_context::AppContext;
use crate::error::AppError;
use library::{ChosenModel, Library};

pub mod key;
pub mod library;
mod names;

pub use names::names;

/// The address of OpenAI's own models.
const OPENAI: &str = "https://api.openai.com/v1";
/// The address of Anthropic's own models.
const ANTHROPIC: &str = "https://api.anthropic.com/v1";

/// The configured settings of the model.
#[derive(Debug, Default)]
pub struct ModelConfig {
    provider: Option<String>,
    name: Option<String>,
    base_url: Option<String>,
    key_variable: Option<String>,
    /// The place of a key that must not be in the settings.
    misplaced: Option<String>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// The size of the context window, in tokens.
    pub context_window: Option<u64>,
    /// How often it may repeat itself.
    pub max_repeats: Option<u64>,
    /// How long its server may be silent.
    silence: Option<Duration>,
    /// Options that are passed on unchanged.
    options: Map<String, Value>,
}

impl ModelConfig {
    /// The model's settings in this configuration.
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
                // A key does not belong in a settings file, and is no option of a model.
                "apiKey" => wish.misplaced = Some(setting.origin.to_string()),
                "temperature" => wish.temperature = setting.value.as_f64(),
                "contextWindow" => wish.context_window = setting.value.as_u64(),
                "maxRepeats" => wish.max_repeats = setting.value.as_u64(),
                "timeout" => wish.silence = setting.value.as_u64().map(Duration::from_millis),
                "maxTokens" => drop(wish.options.insert("max_tokens".to_owned(), setting.value.clone())),
                _ => drop(wish.options.insert(name, setting.value.clone())),
            }
        }
        wish
    }

    /// The configured model, if one is configured.
    fn model(&self, context: &AppContext) -> Result<Option<ChosenModel>, AppError> {
        let Some(name) = &self.name else {
            return match self.provider(context)? {
                None if self.base_url.is_none() => Ok(None),
                None | Some(Provider::Ollama) => library::choose(&Library::of(self, context)?, context).map(Some),
                Some(_) => Err(wrong("model.name is missing: which of the provider's models is meant?", context)),
            };
        };
        let mut model = match self.provider(context)? {
            Some(provider) => ModelName { provider, name: name.clone(), base_url: None },
            None => ModelName::parse(name).map_err(|error| wrong(&format!("model.name: {error}"), context))?,
        };
        model.base_url = model.base_url.or_else(|| self.base_url.clone());
        Ok(Some(ChosenModel { name: model, why: None }))
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

    /// The configured address and its provider; the model's name may contain both.
    fn place(&self, context: &AppContext) -> Result<(Option<String>, Option<Provider>), AppError> {
        let named = self.name.as_deref().filter(|_| self.provider.is_none()).map(ModelName::parse).transpose();
        let named = named.map_err(|error| wrong(&format!("model.name: {error}"), context))?;
        let url = named.as_ref().and_then(|name| name.base_url.clone()).or_else(|| self.base_url.clone());
        Ok((url, self.provider(context)?.or(named.map(|name| name.provider))))
    }

    /// The server of the configured model.
    fn server(&self, context: &AppContext) -> Result<String, AppError> {
        match self.place(context)? {
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

    /// The options to pass on; an Ollama also loads the model with the wanted context window.
    fn options_for(&self, provider: Provider) -> Map<String, Value> {
        let mut options = self.options.clone();
        if let (Provider::Ollama, Some(window)) = (provider, self.context_window) {
            options.entry("num_ctx").or_insert_with(|| window.into());
        }
        options
    }

    /// The address of Ollama: the configured one, unless it is another provider's.
    fn ollama(&self, context: &AppContext) -> String {
        match self.place(context) {
            Ok((Some(url), None | Some(Provider::Ollama))) => url,
            _ => ollama_url(context.variable("OLLAMA_HOST").as_deref()),
        }
    }

    /// The key for the configured server.
    fn key(&self, context: &AppContext) -> Option<String> {
        let own = self.key_variable.as_ref().and_then(|name| context.variable(name));
        own.or_else(|| context.variable("OLLM_MODEL_KEY")).filter(|key| !key.is_empty())
    }
}

/// A model that is ready for requests.
pub(crate) struct OpenedModel {
    pub(crate) model: Box<dyn Model>,
    /// The reason for this choice, if no person named the model.
    pub(crate) why: Option<String>,
}

/// The model for the name that was typed.
pub fn open(typed: Option<&str>, wish: &ModelConfig, context: &AppContext) -> Result<Box<dyn Model>, AppError> {
    choose(typed, wish, context).map(|opened| opened.model)
}

/// The model for the name that was typed, with the reason for the choice.
pub(crate) fn choose(typed: Option<&str>, wish: &ModelConfig, context: &AppContext) -> Result<OpenedModel, AppError> {
    let named = typed.map(str::to_owned).or_else(|| context.variable("OLLM_MODEL").filter(|name| !name.is_empty()));
    let chosen = match named {
        Some(typed) => {
            let name =
                ModelName::parse(&typed).map_err(|error| AppError::new(Code::UnknownModel, error.to_string()))?;
            ChosenModel { name, why: None }
        }
        None => match wish.model(context)? {
            Some(chosen) => chosen,
            None => library::choose(&Library::of(wish, context)?, context)?,
        },
    };
    let model = connect(chosen.name, wish, context)?;
    Ok(OpenedModel { model, why: chosen.why })
}

fn connect(name: ModelName, wish: &ModelConfig, context: &AppContext) -> Result<Box<dyn Model>, AppError> {
    if name.provider == Provider::Replay {
        let file = context.cwd.join(&name.name);
        return Ok(Box::new(Replay::open(&file).map_err(|error| {
            let failure = AppError::new(Code::ModelSettings, error.to_string());
            if file.exists() { failure } else { failure.hint(context.tell(&Remedy::RecordModel)) }
        })?));
    }
    if let Some(place) = &wish.misplaced {
        return Err(AppError::new(
            Code::ModelSettings,
            format!("{place}: a key does not belong into a file of settings"),
        )
        .hint(format!("remove it there, then {}", context.tell(&key::REMEDY))));
    }
    let (url, key) = address(name.provider, name.base_url, wish, context)?;
    let usual = Patience::default();
    let connection = Connection {
        temperature: wish.temperature,
        options: wish.options_for(name.provider),
        patience: Patience { silence: wish.silence.unwrap_or(usual.silence), ..usual },
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

/// A provider's address, and the key for it.
fn address(
    provider: Provider,
    url: Option<String>,
    wish: &ModelConfig,
    context: &AppContext,
) -> Result<(String, Option<String>), AppError> {
    let (usual, variable) = match provider {
        Provider::Ollama | Provider::Replay => (ollama_url(context.variable("OLLAMA_HOST").as_deref()), None),
        Provider::OpenAi | Provider::Responses => (OPENAI.to_owned(), Some("OPENAI_API_KEY")),
        Provider::Anthropic => (ANTHROPIC.to_owned(), Some("ANTHROPIC_API_KEY")),
    };
    // OpenAI's key is only for OpenAI, and Anthropic's only for Anthropic. Another server gets only its own key.
    let own = variable.filter(|_| url.is_none()).and_then(|variable| context.variable(variable));
    let url = url.unwrap_or(usual);
    let is_configured = wish.server(context).is_ok_and(|configured| configured == url);
    let key = if is_configured { wish.key(context) } else { context.variable("OLLM_MODEL_KEY") };
    let key = match own.or(key).filter(|key| !key.is_empty()) {
        Some(key) => Some(key),
        None => key::find(&url, context)?,
    };
    Ok((url, key))
}

/// Wraps a model so that its answers are recorded in a file.
pub fn record(model: Box<dyn Model>, file: &Path) -> Result<Box<dyn Model>, AppError> {
    let record = Record::create(model, file);
    let record =
        record.map_err(|error| AppError::new(Code::NotWritten, format!("the answers cannot be recorded: {error}")))?;
    Ok(Box::new(record))
}

fn wrong(why: &str, context: &AppContext) -> AppError {
    AppError::new(Code::ModelSettings, why).hint(context.tell(&Remedy::ShowConfiguration("model")))
}
