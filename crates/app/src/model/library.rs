//! The models of a local Ollama: which there are, what they can do, and which one answers where none is named.

use ollm_agent::{Cancel, Connection, ModelDetails, ModelEntry, ModelError, ModelName, Ollama, Provider, PullProgress};
use ollm_protocol::{Code, Remedy};

use super::ModelConfig;
use crate::app_context::AppContext;
use crate::error::AppError;

/// How many models are asked what they can do before one is chosen.
const MOST_ASKED: usize = 8;

/// A small model that can call tools, for who has none.
pub const SUGGESTED: &str = "qwen3:4b";

/// The Ollama that the configuration or the environment names.
#[derive(Debug)]
pub struct Library {
    url: String,
    key: Option<String>,
}

impl Library {
    /// The server of this configuration.
    pub fn of(wish: &ModelConfig, context: &AppContext) -> Library {
        Library { url: wish.ollama(context), key: wish.key(context) }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The models it has, the latest first.
    pub fn list(&self, context: &AppContext, cancel: &Cancel) -> Result<Vec<ModelEntry>, AppError> {
        self.server("", context).list(cancel).map_err(|error| unanswered(&error))
    }

    /// What is known about one of them.
    pub fn show(&self, name: &str, context: &AppContext, cancel: &Cancel) -> Result<ModelDetails, AppError> {
        self.server(name, context).show(cancel).map_err(|error| match error {
            ModelError::Refused { status: 404, .. } => {
                AppError::new(Code::UnknownModel, format!("Ollama at {} has no model `{name}`", self.url))
                    .hint(context.tell(&Remedy::PullModel(name.to_owned())))
            }
            error => unanswered(&error),
        })
    }

    /// Fetches one; `hear` is told how far it is.
    pub fn pull(
        &self,
        name: &str,
        context: &AppContext,
        cancel: &Cancel,
        hear: &mut dyn FnMut(&PullProgress),
    ) -> Result<(), AppError> {
        self.server(name, context).pull(cancel, hear).map_err(|error| match error {
            ModelError::Unreachable { .. } => unanswered(&error),
            error => AppError::new(Code::ModelUnreachable, format!("`{name}` was not fetched: {error}")),
        })
    }

    fn server(&self, model: &str, context: &AppContext) -> Ollama {
        let connection = Connection::new(self.url.as_str(), model, self.key.clone());
        Ollama::new(Connection { network: context.network.clone(), ..connection })
    }
}

/// The model that answers where none is named: the latest that can call tools, else the latest.
pub(super) fn choose(url: &str, key: Option<String>, context: &AppContext) -> Result<ModelName, AppError> {
    let library = Library { url: url.to_owned(), key };
    let cancel = Cancel::default();
    let models = library.server("", context).list(&cancel).map_err(|error| {
        AppError::new(Code::ModelUnreachable, format!("no model is named, and no Ollama answers at {url}"))
            .hint(format!(
                "start Ollama ({}); {}",
                short(&error),
                context.tell(&Remedy::PullModel(SUGGESTED.to_owned()))
            ))
            .hint(context.tell(&Remedy::NameModel))
            .hint(context.tell(&Remedy::Demonstrate))
    })?;
    let can_call = |entry: &&ModelEntry| {
        library.server(&entry.name, context).show(&cancel).is_ok_and(|details| details.has_tools())
    };
    let fitting = models.iter().take(MOST_ASKED).find(can_call).or(models.first());
    let entry = fitting.ok_or_else(|| {
        AppError::new(Code::ModelUnreachable, format!("Ollama at {url} has no model yet"))
            .hint(context.tell(&Remedy::PullModel(SUGGESTED.to_owned())))
            .hint(context.tell(&Remedy::NameModel))
            .hint(context.tell(&Remedy::Demonstrate))
    })?;
    Ok(ModelName { provider: Provider::Ollama, name: entry.name.clone(), base_url: Some(url.to_owned()) })
}

fn unanswered(error: &ModelError) -> AppError {
    AppError::new(Code::ModelUnreachable, error.to_string())
}

/// The reason alone, without the way out, which stands beside it.
fn short(error: &ModelError) -> String {
    match error {
        ModelError::Unreachable { why, .. } => why.clone(),
        error => error.to_string(),
    }
}
