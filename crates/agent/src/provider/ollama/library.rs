//! The models of an Ollama server: lists, describes and downloads them.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::client::RequestFailure;
use super::super::lines::Lines;
use super::super::refusal::{Refusal, complaint};
use super::{ModelError, Ollama};
use crate::cancel::Cancel;

/// What to do if no model has the name.
const UNKNOWN_NAME: &str = "; look up how it is written at https://ollama.com/library";

/// A model on a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelEntry {
    /// Its name, with its tag.
    pub name: String,
    /// Its size on disk in bytes.
    pub size: u64,
    /// How many parameters it has, for people.
    pub parameters: Option<String>,
    /// Its quantization, for people.
    pub quantization: Option<String>,
}

/// What is known about one model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelDetails {
    /// Its architecture family.
    pub family: Option<String>,
    /// How many parameters it has, for people.
    pub parameters: Option<String>,
    /// Its quantization, for people.
    pub quantization: Option<String>,
    /// Its capabilities: `completion`, `tools`, `thinking`, …
    pub capabilities: Vec<String>,
    /// The most tokens of context that it was trained for.
    pub context_length: Option<u64>,
    /// The context size in tokens that its file sets.
    pub num_ctx: Option<u64>,
}

impl ModelDetails {
    /// Whether it can call tools. If the server does not report capabilities, it may.
    pub fn has_tools(&self) -> bool {
        self.capabilities.is_empty() || self.capabilities.iter().any(|capability| capability == "tools")
    }
}

/// The progress of a download.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PullProgress {
    /// The present step, for people.
    pub status: String,
    /// The digest of the part that is being downloaded.
    pub digest: Option<String>,
    /// The part's size in bytes.
    pub total: Option<u64>,
    /// How many of its bytes have been downloaded.
    pub completed: Option<u64>,
}

impl Ollama {
    /// The models on the server, the latest first.
    pub fn list(&self, cancel: &Cancel) -> Result<Vec<ModelEntry>, ModelError> {
        let tags = self.endpoint.client.json("/api/tags", None, cancel)?;
        let models = tags.get("models").and_then(Value::as_array).into_iter().flatten();
        let entry = |model: &Value| {
            let details = model.get("details").unwrap_or(&Value::Null);
            Some(ModelEntry {
                name: text(model, "name").or_else(|| text(model, "model"))?,
                size: model.get("size").and_then(Value::as_u64).unwrap_or(0),
                parameters: text(details, "parameter_size"),
                quantization: text(details, "quantization_level"),
            })
        };
        Ok(models.filter_map(entry).collect())
    }

    /// Details of this model.
    pub fn show(&self, cancel: &Cancel) -> Result<ModelDetails, ModelError> {
        let shown = self.endpoint.client.json("/api/show", Some(&json!({"model": self.endpoint.model})), cancel)?;
        let details = shown.get("details").unwrap_or(&Value::Null);
        let capabilities = shown.get("capabilities").and_then(Value::as_array).into_iter().flatten();
        let info = shown.get("model_info").and_then(Value::as_object).into_iter().flatten();
        Ok(ModelDetails {
            family: text(details, "family"),
            parameters: text(details, "parameter_size"),
            quantization: text(details, "quantization_level"),
            capabilities: capabilities.filter_map(Value::as_str).map(str::to_owned).collect(),
            context_length: info
                .filter(|(name, _)| name.ends_with(".context_length"))
                .find_map(|(_, value)| value.as_u64()),
            num_ctx: text(&shown, "parameters").as_deref().and_then(num_ctx),
        })
    }

    /// Downloads this model, however long that takes; `hear` receives the progress.
    pub fn pull(&self, cancel: &Cancel, hear: &mut dyn FnMut(&PullProgress)) -> Result<(), ModelError> {
        let request =
            self.endpoint.client.request("/api/pull", Some(&json!({"model": self.endpoint.model, "stream": true})));
        let mut reply = self.endpoint.client.ask_for(Duration::MAX, &request, cancel, &mut |_| {}).map_err(
            |error| match error {
                RequestFailure::Refused(refusal) => refusal.into_error(""),
                RequestFailure::Failed(error) => error,
            },
        )?;
        let mut lines = Lines::default();
        let mut done = false;
        while let Some(bytes) = reply.chunk(&mut |_| {})? {
            for line in lines.push(&bytes).map_err(|error| self.endpoint.client.malformed(&error.to_string()))? {
                done |= self.progress(&line, hear)?;
            }
        }
        if let Some(line) = lines.finish() {
            done |= self.progress(&line, hear)?;
        }
        if done { Ok(()) } else { Err(self.endpoint.client.dropped("the download ended before its end")) }
    }

    /// Handles one line about a download; returns whether it is complete.
    fn progress(&self, line: &[u8], hear: &mut dyn FnMut(&PullProgress)) -> Result<bool, ModelError> {
        let event: Value =
            serde_json::from_slice(line).map_err(|error| self.endpoint.client.malformed(&error.to_string()))?;
        if let Some(complaint) = complaint(&event) {
            let hint = if complaint.contains("file does not exist") { UNKNOWN_NAME } else { "" };
            return Err(Refusal::read(&self.endpoint.client.base_url, 200, complaint.as_bytes()).into_error(hint));
        }
        let count = |field: &str| event.get(field).and_then(Value::as_u64);
        let status = text(&event, "status").unwrap_or_default();
        let done = status == "success";
        let digest = text(&event, "digest");
        hear(&PullProgress { status, digest, total: count("total"), completed: count("completed") });
        Ok(done)
    }

    /// The window that the model was loaded with, if it is loaded.
    pub(super) fn loaded_window(&self, cancel: &Cancel) -> Option<u64> {
        let loaded = self.endpoint.client.json("/api/ps", None, cancel).ok()?;
        let models = loaded.get("models")?.as_array()?;
        let tagged = format!("{}:latest", self.endpoint.model);
        let is_ours = |name: &str| name == self.endpoint.model || name == tagged;
        let ours = models
            .iter()
            .find(|model| text(model, "name").or_else(|| text(model, "model")).is_some_and(|name| is_ours(&name)))?;
        ours.get("context_length")?.as_u64().filter(|window| *window > 0)
    }
}

fn text(value: &Value, field: &str) -> Option<String> {
    value.get(field)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The `num_ctx` among the lines of a model's parameters.
fn num_ctx(parameters: &str) -> Option<u64> {
    let mut lines = parameters.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
    lines.find(|(name, _)| *name == "num_ctx").and_then(|(_, value)| value.trim().parse().ok())
}
