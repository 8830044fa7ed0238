//! Model providers, tools, the agent loop and sessions; each step is an event.
//!
//! # Theory of operation
//!
//! A [`Session`] is a conversation with one [`Model`]. Each step in it is an event, and the session waits for the
//! hooks' decision on it. The crate does not know how hooks run: it passes each event to its [`Events`] port, which
//! returns a [`Decision`]. It never prints and reads neither environment nor home nor clock. Output for the person goes
//! to [`Show`], questions go to [`Approve`], more tools come from [`ToolSource`]s, the time from a [`Clock`].
//!
//! The loop is ordinary blocking code on the thread of its caller; there is no runtime. Only two things have their own
//! threads, because we may have to abandon them: the HTTP client, and calls of a source's tools. A [`Cancel`] token
//! reaches all of them within milliseconds.
//!
//! # The order of events
//!
//! ```text
//! session      = session_start, { turn | user_triggered | custom | pre_compress, [ post_compress ] }, session_end
//! turn         = before_agent, work, after_agent, { work, after_agent }
//! work         = { [ context_overflow, pre_compress, [ post_compress ] ],
//!                  before_tool_selection, before_model, after_model, { call } }
//!                a question that was too long is asked once more, in a shorter conversation
//! call         = before_tool, [ approval_request ], [ file_created | file_edited | file_deleted | subagent ], after_tool
//! subagent     = subagent_start, work, subagent_stop, { work, subagent_stop }
//! ```
//!
//! A refused step does not happen and has no end: a refused session has no session_end, a refused prompt no
//! after_agent, a refused question no after_model, a refused call no after_tool. Everything else that begins also ends,
//! even if it fails or is interrupted. `notification` and `error` come in between, wherever something is shown or
//! fails: each failure of a tool, a hook or a server is one error. Hooks' messages about a notification never cause
//! another one, and a failed hook of `error` or `notification` is only shown. If hooks leave a decision to a person,
//! approval_request comes before the question.
//!
//! # What decisions do
//!
//! A refused session, prompt, tool selection, question or answer ends with the reason of the refusal. The model is told
//! about a refused call. A refused after_agent sends its reason to the model, within limits. A halt of any hook ends
//! the turn. The tool gets the patched arguments, and the model is offered the filtered list. System messages and
//! context enter the conversation in plan order, before the next question to the model. The model reads a replaced
//! result. Prompts of hooks become separate turns, within limits. Allow skips the question of an approval mode, and
//! nothing else.
//!
//! # Example
//!
//! ```
//! use std::path::Path;
//! use std::time::SystemTime;
//! use ollm_agent::*;
//! use ollm_protocol::Event;
//!
//! struct Deaf;
//! impl Events for Deaf {
//!     fn dispatch(&mut self, _: &Event) -> Decision {
//!         Decision::default()
//!     }
//! }
//!
//! let folder = tempfile::tempdir()?;
//! let model = Replay::parse(Path::new("talk"), r#"{"content": "Good morning."}"#)?;
//! let shell = ShellSettings::new(Vec::new(), folder.path());
//! let settings = Settings::new(session_id(SystemTime::now()), folder.path(), shell);
//! let ports = Ports::new(Deaf, SystemTime::now);
//! let mut session = Session::start(Opening::new(settings, ports, model))?;
//! let turns = session.say("Hello", None);
//! assert_eq!(turns[0].response, "Good morning.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod cancel;
mod context;
mod conversation;
mod instructions;
mod message;
mod port;
mod provider;
mod registry;
mod session;
mod settings;
mod time;
mod tool;
mod transcript;
mod workspace;

pub use cancel::Cancel;
pub use context::SavedCounts;
pub use message::{Arguments, Call, Message};
pub use port::{
    Approve, Clock, Consent, Decision, Events, Failure, HookNote, LateFailure, News, NobodyAsked, Order, Request,
    ShellBox, Show, SilentShow, ToolSource,
};
pub use provider::anthropic::Anthropic;
pub use provider::http::Patience;
pub use provider::ollama::{ModelDetails, ModelEntry, Ollama, PullProgress, ollama_url};
pub use provider::openai::OpenAi;
pub use provider::protocol::{Connection, RemoteModel};
pub use provider::record::Record;
pub use provider::replay::Replay;
pub use provider::responses::Responses;
pub use provider::{
    CutReason, Model, ModelAnswer, ModelError, ModelName, ModelNameError, PROVIDERS, Piece, Provider, Question,
};
pub use session::{ChangedBy, Opening, Ports, Session, SessionRefused, StartError, Turn, TurnEnd};
pub use settings::{Approval, Limits, Settings, UserData};
pub use time::session_id;
pub use tool::{ShellSettings, unified_diff};
pub use transcript::{Header, SavedSession, Summary, Transcript, TranscriptError, list, load};
pub use workspace::{Workspace, WorkspaceError};
