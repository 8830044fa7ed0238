//! The port to a model, and the command-line form of model names.

use std::path::PathBuf;
use std::time::Duration;

use ollm_protocol::Tool;
use serde_json::{Value, json};

use crate::cancel::Cancel;
use crate::message::{Call, Message};

pub(crate) mod anthropic;
mod client;
mod draft;
mod endpoint;
pub(crate) mod http;
mod lines;
pub(crate) mod ollama;
pub(crate) mod openai;
pub(crate) mod protocol;
pub(crate) mod record;
mod refusal;
pub(crate) mod replay;
pub(crate) mod responses;
mod shape;
mod sse;
mod stream;
mod thoughts;
pub(crate) mod written_call;

/// A model that answers a conversation.
pub trait Model: Send {
    /// The model's name in events.
    fn name(&self) -> &str;

    /// The address of its server, if it has one.
    fn server(&self) -> Option<&str> {
        None
    }

    /// Answers a question; `hear` receives the pieces as they come. Ends soon after the question's token is set.
    fn answer(&mut self, question: &Question<'_>, hear: &mut dyn FnMut(Piece<'_>)) -> Result<ModelAnswer, ModelError>;

    /// The model's window in tokens, if its server reports it. May ask the server; ends soon after the token is set.
    fn window(&mut self, _cancel: &Cancel) -> Option<u64> {
        None
    }
}

/// A question to a model.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The conversation so far.
    pub messages: &'a [Message],
    /// The tools on offer.
    pub tools: &'a [Tool],
    /// The most bytes of an answer that are kept.
    pub most: usize,
    /// Set when the caller no longer waits.
    pub cancel: &'a Cancel,
}

/// A piece that comes before the whole answer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Piece<'a> {
    /// The next part of the answer.
    Text(&'a str),
    /// The next part of the reasoning, which is not part of the answer.
    Thought(&'a str),
    /// A message for the person about a delay.
    Status(&'a str),
    /// No data has come for this long.
    Waiting(Duration),
}

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelAnswer {
    /// The text.
    pub content: String,
    /// The model's reasoning; not part of the conversation.
    pub reasoning: String,
    /// The calls.
    pub calls: Vec<Call>,
    /// Tokens in and out together, if the provider counts them.
    pub tokens: Option<u64>,
    /// The provider's own report of the tokens used.
    pub usage: Option<Value>,
    /// Why the answer is incomplete, if it is.
    pub cut: Option<CutReason>,
}

/// Why an answer is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutReason {
    /// It exceeded the most bytes that are kept.
    Bytes,
    /// The model reached its token limit.
    Length,
}

impl ModelAnswer {
    /// The answer as one line of a replay file.
    pub fn to_json(&self) -> Value {
        let mut line = json!({"content": self.content});
        if let Some(map) = line.as_object_mut() {
            if !self.reasoning.is_empty() {
                map.insert("reasoning".to_owned(), self.reasoning.clone().into());
            }
            if !self.calls.is_empty() {
                map.insert("tool_calls".to_owned(), self.calls.iter().map(Call::to_json).collect());
            }
            if self.cut == Some(CutReason::Length) {
                map.insert("finish".to_owned(), "length".into());
            }
            if let Some(usage) = &self.usage {
                map.insert("usage".to_owned(), usage.clone());
            }
        }
        line
    }

    /// The tokens of the question, by the provider's count.
    pub(crate) fn tokens_read(&self) -> Option<u64> {
        count(self.usage.as_ref()?, &["prompt_tokens", "input_tokens"]).filter(|count| *count > 0)
    }

    /// The tokens of the answer, by the provider's count.
    pub(crate) fn tokens_written(&self) -> Option<u64> {
        count(self.usage.as_ref()?, &["completion_tokens", "output_tokens"])
    }
}

/// Tokens in and out together, from a provider's report.
pub(crate) fn tokens(usage: &Value) -> Option<u64> {
    let read = count(usage, &["prompt_tokens", "input_tokens"]);
    let written = count(usage, &["completion_tokens", "output_tokens"]);
    count(usage, &["total_tokens"]).or_else(|| match (read, written) {
        (None, None) => None,
        (read, written) => Some(read.unwrap_or(0).saturating_add(written.unwrap_or(0))),
    })
}

fn count(usage: &Value, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| usage.get(name)?.as_u64())
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The server cannot be reached.
    #[error("no model can be reached at {url}: {why}{hint}")]
    Unreachable {
        /// The address.
        url: String,
        /// The network error.
        why: String,
        /// What to do, after a semicolon; empty if `why` says it.
        hint: String,
    },
    /// The server refused.
    #[error("{url} answered {status}: {text}{hint}")]
    Refused {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The server's message.
        text: String,
        /// What to do about it.
        hint: String,
    },
    /// The conversation exceeds the model's window.
    #[error("the conversation is too long for the model at {url}: {text}")]
    TooLong {
        /// The address.
        url: String,
        /// The window in tokens, if the server reports it.
        window: Option<u64>,
        /// The tokens of the conversation, if the server reports them.
        sent: Option<u64>,
        /// The server's message.
        text: String,
    },
    /// The answer ended early.
    #[error("the answer of {url} broke off: {why}; ask again")]
    Dropped {
        /// The address.
        url: String,
        /// What happened.
        why: String,
    },
    /// The answer cannot be read.
    #[error("the answer of {url} cannot be read: {why}")]
    Malformed {
        /// The address.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// No data came for too long.
    #[error("{url} sent nothing for {seconds} s; ask again, raise model.timeout, or take a smaller model")]
    Silent {
        /// The address.
        url: String,
        /// For how many seconds.
        seconds: u64,
    },
    /// The whole answer took too long.
    #[error("the answer of {url} did not end in time; ask for less, or take a faster model")]
    Endless {
        /// The address.
        url: String,
    },
    /// The person interrupted.
    #[error("interrupted")]
    Cancelled,
    /// The replay file cannot be used.
    #[error("{}:{line}: {why}", file.display())]
    Replay {
        /// The file.
        file: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The replay file cannot be read or written.
    #[error(transparent)]
    File(#[from] ollm_store::FileError),
}

impl ModelError {
    /// A short name, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            ModelError::Unreachable { .. } => "unreachable",
            ModelError::Refused { .. } => "refused",
            ModelError::TooLong { .. } => "too_long",
            ModelError::Dropped { .. } => "dropped",
            ModelError::Malformed { .. } => "malformed",
            ModelError::Silent { .. } => "silent",
            ModelError::Endless { .. } => "endless",
            ModelError::Cancelled => "interrupted",
            ModelError::Replay { .. } => "replay",
            ModelError::File(_) => "file",
        }
    }
}

/// A model's name in its command-line form: `PROVIDER:NAME[@BASE_URL]`.
///
/// ```
/// use ollm_agent::ModelName;
/// let name = ModelName::parse("ollama:llama3.2:3b@http://10.0.0.2:11434/v1").unwrap();
/// assert_eq!(name.name, "llama3.2:3b");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelName {
    /// The provider that serves it.
    pub provider: Provider,
    /// Its name there, or the file of a replay.
    pub name: String,
    /// The address of its server, if it is not the default one.
    pub base_url: Option<String>,
}

/// The kinds of providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// A local Ollama.
    Ollama,
    /// Any server with OpenAI's chat completions.
    OpenAi,
    /// Any server with OpenAI's Responses.
    Responses,
    /// Any server with Anthropic's Messages.
    Anthropic,
    /// A recorded conversation.
    Replay,
}

/// Every provider with its name on the command line.
pub const PROVIDERS: &[(&str, Provider)] = &[
    ("ollama", Provider::Ollama),
    ("openai", Provider::OpenAi),
    ("responses", Provider::Responses),
    ("anthropic", Provider::Anthropic),
    ("replay", Provider::Replay),
];

/// Why a model's name cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelNameError {
    /// There is no such provider.
    #[error(
        "model `{text}`: there is no provider `{provider}`; write ollama:NAME, openai:NAME@URL, responses:NAME, anthropic:NAME or replay:FILE"
    )]
    Provider {
        /// The given text.
        text: String,
        /// Its provider.
        provider: String,
    },
    /// The name is empty.
    #[error("model `{0}` names no model; write for instance ollama:llama3.2")]
    Empty(String),
    /// The address is invalid.
    #[error("model `{text}`: `{url}` is no address; it begins with http:// or https://")]
    Address {
        /// The given text.
        text: String,
        /// Its address.
        url: String,
    },
}

impl ModelName {
    /// Reads a name from the command line. Without a provider it means Ollama.
    pub fn parse(text: &str) -> Result<ModelName, ModelNameError> {
        let (provider, rest) = provider_of(text)?;
        if provider == Provider::Replay {
            return named(text, provider, rest, None);
        }
        match rest.rsplit_once('@') {
            Some((name, url)) if url.starts_with("http://") || url.starts_with("https://") => {
                named(text, provider, name, Some(url.trim_end_matches('/').to_owned()))
            }
            Some((_, url)) if url.contains("://") || url.starts_with("localhost") => {
                Err(ModelNameError::Address { text: text.to_owned(), url: url.to_owned() })
            }
            _ => named(text, provider, rest, None),
        }
    }
}

fn provider_of(text: &str) -> Result<(Provider, &str), ModelNameError> {
    let Some((word, rest)) = text.split_once(':') else { return Ok((Provider::Ollama, text)) };
    if let Some((_, provider)) = PROVIDERS.iter().find(|(name, _)| *name == word) {
        return Ok((*provider, rest));
    }
    // `mistral:7b` is a model with a tag, so only a name with an address must name a provider.
    if rest.contains("@http://") || rest.contains("@https://") {
        return Err(ModelNameError::Provider { text: text.to_owned(), provider: word.to_owned() });
    }
    Ok((Provider::Ollama, text))
}

fn named(text: &str, provider: Provider, name: &str, base_url: Option<String>) -> Result<ModelName, ModelNameError> {
    if name.trim().is_empty() {
        return Err(ModelNameError::Empty(text.to_owned()));
    }
    Ok(ModelName { provider, name: name.to_owned(), base_url })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_meant() {
        for (text, provider, name, url) in [
            ("ollama:llama3.2", Provider::Ollama, "llama3.2", None),
            ("llama3.2:3b", Provider::Ollama, "llama3.2:3b", None),
            ("qwen3", Provider::Ollama, "qwen3", None),
            ("mistral:7b", Provider::Ollama, "mistral:7b", None),
            ("gemma:2b", Provider::Ollama, "gemma:2b", None),
            ("qwen:latest", Provider::Ollama, "qwen:latest", None),
            ("hf.co/a/b:Q4_K_M", Provider::Ollama, "hf.co/a/b:Q4_K_M", None),
            ("openai:qwen3@http://127.0.0.1:8080/v1/", Provider::OpenAi, "qwen3", Some("http://127.0.0.1:8080/v1")),
            ("openai:a@b", Provider::OpenAi, "a@b", None),
            ("replay:C:/a@http://b.jsonl", Provider::Replay, "C:/a@http://b.jsonl", None),
        ] {
            let expected = ModelName { provider, name: name.into(), base_url: url.map(str::to_owned) };
            assert_eq!(ModelName::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_way_out() {
        assert!(matches!(ModelName::parse("opnai:x@http://a/v1"), Err(ModelNameError::Provider { .. })));
        assert!(matches!(ModelName::parse("ollama:"), Err(ModelNameError::Empty(_))));
        assert!(matches!(ModelName::parse("openai:x@ftp://a"), Err(ModelNameError::Address { .. })));
        assert!(matches!(ModelName::parse("openai:x@localhost:1"), Err(ModelNameError::Address { .. })));
    }

    #[test]
    fn tokens_are_what_the_provider_counts() {
        assert_eq!(tokens(&json!({"total_tokens": 9, "prompt_tokens": 1})), Some(9));
        assert_eq!(tokens(&json!({"prompt_tokens": 3, "completion_tokens": 4})), Some(7));
        assert_eq!(tokens(&json!({})), None);
    }
}
