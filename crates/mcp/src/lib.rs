//! The wires of ollm: live MCP servers and their tools.
//!
//! A [`Declaration`] says how a server is reached. This crate knows nothing of hooks, never prints, and reads neither
//! environment nor home by itself.

#![forbid(unsafe_code)]

mod backoff;
mod cache;
mod connect;
mod declaration;
mod desk;
mod error;
mod events;
mod fleet;
mod handshake;
mod http;
mod life;
mod link;
mod list;
mod log;
mod name;
mod place;
mod port;
mod program;
mod result;
mod schema;
mod server;
mod settings;
mod sse;
mod status;
mod tool;
mod web;
mod wire;

pub use cache::{Cache, Entry};
pub use declaration::{Declaration, Endpoint, Filter};
pub use desk::{OnProgress, Progress};
pub use error::{CallError, Trouble};
pub use fleet::{Fleet, Pending};
pub use handshake::Era;
pub use list::Listing;
pub use name::{BadName, Labels, split, tool_names};
pub use port::{Answer, Answering, Authorize, Elicit, Notice, Ports, Reply, Sample, Watch};
pub use result::{
    LARGEST_RESULT, Spill, SpillError, Taken, bound as bound_result, read as read_result, read_error,
    show as show_result, write as write_result,
};
pub use schema::{Api, BadSchema, Lowered, Unfit, check, lower, read as read_schema};
pub use server::{Call, Context, Memory, Server};
pub use settings::{Bounds, Pace, Root, Settings};
pub use status::{State, Status};
pub use tool::{Offer, Offers, Remark};
