//! The model names that a person may choose from: named ones, and those of their servers.

use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use ollm_agent::{Cancel, Connection, ModelName, Ollama, OpenAi, PROVIDERS, Provider, ollama_url};

use super::{ModelConfig, address};
use crate::app_context::AppContext;

/// How long servers may take to name their models, because a person waits.
const PATIENCE: Duration = Duration::from_millis(500);

/// The names of models that are named or served, in the form that a person types; `typed` is an earlier choice. A slow
/// server adds none.
pub fn names(typed: Option<&str>, wish: &ModelConfig, context: &AppContext) -> Vec<String> {
    let known = named(typed, wish, context);
    let mut servers: Vec<Server> = Vec::new();
    for server in known.iter().map(Server::of).chain([Server::local(wish, context)]) {
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    let (sender, listed) = channel();
    let cancel = Cancel::default();
    for server in servers {
        let Some(connection) = server.connection(wish, context) else { continue };
        let (sender, cancel) = (sender.clone(), cancel.clone());
        let _ = thread::Builder::new().name("models".to_owned()).spawn(move || {
            let _ = sender.send(server.list(connection, &cancel));
        });
    }
    drop(sender);
    let mut names: Vec<String> = known.into_iter().map(written).collect();
    let asked = Instant::now();
    while let Ok(more) = listed.recv_timeout(PATIENCE.saturating_sub(asked.elapsed())) {
        names.extend(more.into_iter().map(written));
    }
    cancel.end();
    names
}

/// The models that were typed, or that the environment or the configuration names.
fn named(typed: Option<&str>, wish: &ModelConfig, context: &AppContext) -> Vec<ModelName> {
    let variable = context.variable("OLLM_MODEL");
    let said = typed.into_iter().chain(variable.as_deref()).filter_map(|text| ModelName::parse(text).ok());
    // If no name is configured, this would search for one.
    let configured = wish.name.as_ref().and_then(|_| wish.model(context).ok().flatten()).map(|chosen| chosen.name);
    said.chain(configured).collect()
}

/// A name in the form that a person types.
fn written(model: ModelName) -> String {
    let provider = PROVIDERS.iter().find(|(_, provider)| *provider == model.provider).map_or("", |(name, _)| name);
    let server = model.base_url.map(|url| format!("@{url}")).unwrap_or_default();
    format!("{provider}:{}{server}", model.name)
}

/// A provider of models, and its address if it is not the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Server {
    provider: Provider,
    url: Option<String>,
}

impl Server {
    fn of(model: &ModelName) -> Server {
        Server { provider: model.provider, url: model.base_url.clone() }
    }

    /// The Ollama of this machine, or the one that the configuration names instead.
    fn local(wish: &ModelConfig, context: &AppContext) -> Server {
        let usual = ollama_url(context.variable("OLLAMA_HOST").as_deref());
        Server { provider: Provider::Ollama, url: Some(wish.ollama(context)).filter(|url| *url != usual) }
    }

    /// The connection to it; `None` if it lists no models.
    fn connection(&self, wish: &ModelConfig, context: &AppContext) -> Option<Connection> {
        if matches!(self.provider, Provider::Anthropic | Provider::Replay) {
            return None;
        }
        let (url, key) = address(self.provider, self.url.clone(), wish, context).ok()?;
        Some(Connection { network: context.network.clone(), ..Connection::new(url, "", key) })
    }

    fn list(&self, connection: Connection, cancel: &Cancel) -> Vec<ModelName> {
        let names: Vec<String> = if self.provider == Provider::Ollama {
            let listed = Ollama::new(connection).list(cancel).unwrap_or_default();
            listed.into_iter().map(|model| model.name).collect()
        } else {
            OpenAi::new(connection).models(cancel).unwrap_or_default()
        };
        let one = |name| ModelName { provider: self.provider, name, base_url: self.url.clone() };
        names.into_iter().map(one).collect()
    }
}
