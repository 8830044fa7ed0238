//! draft

#![forbid(unsafe_code)]
mod cancel;
mod message;
mod port;
mod provider;
mod tool;
mod workspace;

pub use cancel::Cancel;
pub use message::{Arguments, Call, Message};
pub use port::{
    Approve, Clock, Consent, Decision, Events, News, NobodyAsked, Order, Request, Said, Show, ToolSource, Unseen,
};
pub use provider::http::Patience;
pub use provider::ollama::{models, ollama_url};
pub use provider::openai::OpenAi;
pub use provider::record::Record;
pub use provider::replay::Replay;
pub use provider::{Answer, Model, ModelError, ModelName, ModelNameError, PROVIDERS, Piece, Provider, Question};
pub use tool::{Reach, ShellSettings, meant_by};
pub use workspace::{Workspace, WorkspaceError};
