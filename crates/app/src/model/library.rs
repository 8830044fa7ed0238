//! The models of a local Ollama: the list, their abilities, and the choice of one if none is named.

use ollm_agent::{Cancel, Connection, ModelDetails, ModelEntry, ModelError, ModelName, Ollama, Provider, PullProgress};
use ollm_protocol::{Code, Remedy};

use super::{ModelConfig, address};
use crate::app_context::AppContext;
use crate::error::AppError;

/// How many models are checked for their abilities before one is chosen.
const MOST_ASKED: usize = 8;

/// A small model that can call tools, suggested to a person without models.
pub const SUGGESTED: &str = "qwen3:4b";

/// The Ollama that the configuration or the environment names.
#[derive(Debug)]
pub struct Library {
    url: String,
    key: Option<String>,
}

impl Library {
    /// The configured server.
    pub fn of(wish: &ModelConfig, context: &AppContext) -> Result<Library, AppError> {
        let (url, key) = address(Provider::Ollama, Some(wish.ollama(context)), wish, context)?;
        Ok(Library { url, key })
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its models, the latest first.
    pub fn list(&self, context: &AppContext, cancel: &Cancel) -> Result<Vec<ModelEntry>, AppError> {
        self.server("", context).list(cancel).map_err(|error| unanswered(&error))
    }

    /// The details of one model.
    pub fn show(&self, name: &str, context: &AppContext, cancel: &Cancel) -> Result<ModelDetails, AppError> {
        self.server(name, context).show(cancel).map_err(|error| match error {
            ModelError::Refused { status: 404, .. } => {
                AppError::new(Code::UnknownModel, format!("Ollama at {} has no model `{name}`", self.url))
                    .hint(context.tell(&Remedy::PullModel(name.to_owned())))
            }
            error => unanswered(&error),
        })
    }

    /// Downloads a model; `hear` receives the progress.
    pub fn pull(
        &self,
        name: &str,
        context: &AppContext,
        cancel: &Cancel,
        hear: &mut dyn FnMut(&PullProgress),
    ) -> Result<(), AppError> {
        self.server(name, context).pull(cancel, hear).map_err(|error| match error {
            ModelError::Unreachable { .. } => unanswered(&error),
            ModelError::Dropped { url, why } => {
                let what = format!("`{name}` was not fetched: the download from {url} broke off: {why}");
                AppError::new(Code::ModelUnreachable, what).hint(context.tell(&Remedy::PullModel(name.to_owned())))
            }
            error => AppError::new(Code::ModelUnreachable, format!("`{name}` was not fetched: {error}")),
        })
    }

    fn server(&self, model: &str, context: &AppContext) -> Ollama {
        let connection = Connection::new(self.url.as_str(), model, self.key.clone());
        Ollama::new(Connection { network: context.network.clone(), ..connection })
    }
}

/// A chosen model, and the reason if no person named it.
pub(super) struct ChosenModel {
    pub(super) name: ModelName,
    pub(super) why: Option<String>,
}

/// The default model: the latest one that can call tools, else the latest one.
pub(super) fn choose(library: &Library, context: &AppContext) -> Result<ChosenModel, AppError> {
    let url = library.url();
    let cancel = Cancel::default();
    let models = library.server("", context).list(&cancel).map_err(|error| {
        let why = format!("no model is named, and no Ollama answers at {url}: {}", short(&error));
        AppError::new(Code::ModelUnreachable, why)
            .hint(format!(
                "start Ollama, which is at https://ollama.com/download; {}",
                context.tell(&Remedy::PullModel(SUGGESTED.to_owned()))
            ))
            .hint(context.tell(&Remedy::NameModel))
            .hint(context.tell(&Remedy::Demonstrate))
    })?;
    let can_call = |entry: &&ModelEntry| {
        library.server(&entry.name, context).show(&cancel).is_ok_and(|details| details.has_tools())
    };
    let latest = models.first().ok_or_else(|| {
        AppError::new(Code::ModelUnreachable, format!("Ollama at {url} has no model yet"))
            .hint(context.tell(&Remedy::PullModel(SUGGESTED.to_owned())))
            .hint(context.tell(&Remedy::NameModel))
            .hint(context.tell(&Remedy::Demonstrate))
    })?;
    let fitting = models.iter().take(MOST_ASKED).find(can_call);
    let why = match fitting {
        Some(_) => "the latest that can call tools".to_owned(),
        None if models.len() > MOST_ASKED => format!("the latest; none of the latest {MOST_ASKED} can call tools"),
        None => "the latest; none of the models there can call tools".to_owned(),
    };
    let name = fitting.unwrap_or(latest).name.clone();
    let name = ModelName { provider: Provider::Ollama, name, base_url: Some(url.to_owned()) };
    Ok(ChosenModel { name, why: Some(why) })
}

fn unanswered(error: &ModelError) -> AppError {
    AppError::new(Code::ModelUnreachable, error.to_string())
}

/// The reason without the remedy, which is shown beside it.
fn short(error: &ModelError) -> String {
    match error {
        ModelError::Unreachable { why, .. } => why.clone(),
        error => error.to_string(),
    }
}
