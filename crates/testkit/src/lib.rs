//! Generators and fakes for ollm's own tests.
//!
//! Strategies make the values every crate talks about: [`event`], [`verdict`], [`json_value`], and the bytes real hooks
//! print, good and bad, in [`hook_answer_bytes`]. [`Scripts`] writes programs that tests can start; [`mcp_server`] is an MCP
//! server that misbehaves on demand, [`ModelServer`] a model behind real HTTP, for which
//! [`reply_to_agent`] speaks to other people's agents, [`KeyringSession`] a keyring on a bus of its
//! own, [`SecretService`] one that asks a person. [`SHAPES`] are shell commands of every shape, in any length.

mod agent_model;
mod answer;
mod event;
mod keyring;
mod mcp;
mod model_server;
pub mod model_shapes;
mod script;
mod secret_service;
mod shapes;
mod text;
mod verdict;
mod wait;

pub use agent_model::{ScriptedCall, reply_to_agent};
pub use answer::{answer_object, hook_answer_bytes};
pub use event::{complete_event, event, event_of, kind};
pub use keyring::KeyringSession;
pub use mcp::{RemoteServer, bare_screen, mcp_server};
pub use model_server::{Asked, ModelReply, ModelReplyEnd, ModelServer, answer_events};
pub use script::Scripts;
pub use secret_service::{Habits, Person, Prompts, SecretService};
pub use shapes::{SHAPES, Shape};
pub use text::{hostile_text, json_object, json_value, text, timestamp};
pub use verdict::{flow, verdict};
pub use wait::{PATIENCE, eventually, runs};
