//! The MCP client of ollm: live MCP servers and their tools.
//!
//! # Theory of operation
//!
//! A [`ReadyServer`] says how a server is reached; a [`Server`] is its handle; a [`BlockingClient`] holds many of
//! them for programs without a runtime. Below them lies the official SDK (`rmcp`), of which only the client's service loop, the
//! message types and the streamable HTTP session are used; what touches a process, a socket or a clock is ours.
//!
//! * **One owner.** Each server has a task that owns its lifecycle and takes commands. What it knows is one value that
//!   others only read: [`ServerState`], connection, tools. A server is `ready` once it has answered and its tools are
//!   known, and not before. Dropped, a handle takes everything with it.
//! * **Calls** do not pass through the task: they go straight to the connection, any number at once, and cost next to
//!   nothing beside the bare SDK. A call that finds no connection has one made. A call that was lost on the way is never
//!   made twice, unless it is certain that nothing was sent.
//! * **Waiting.** A [`BlockingClient`] has a thread of its own for the servers. Every blocking wait is one function; it drives
//!   the runtime of that thread meanwhile, so that a call costs no change of threads. Only the thread starts programs. A
//!   wait inside that runtime, as in a port, is an error.
//! * **Clocks.** A start has its timeout, and three tries with growing pauses. A call has a timeout that every sign of
//!   progress sets back, under a ceiling that nothing lifts; while a person is being asked, it waits for the person.
//!   Dropping a call, or its timeout, tells the server that it is cancelled.
//! * **Crashes.** The end of the connection or of the program withdraws the tools. The next call starts the server again,
//!   or the task itself does where that is wanted and for servers on the network; crashes in a row are a loop, which only
//!   a person or some time breaks. Silence is followed up by a ping, and three unanswered ones are a crash.
//! * **Programs** are started by `ollm_process`: own group, exact environment, limits, and a guard that kills the group
//!   should we die. They end by the end of their input, the polite signal and the final one, in this order. The thread that
//!   started them must outlive them; the thread of a [`BlockingClient`] does.
//! * **Revisions.** A server is first asked `server/discover`, which only the stateless revision knows; on any failure or
//!   silence follows `initialize` on the same connection. What worked is part of a server's [`ServerMemory`] and tried first.
//! * **Network.** One pooled client serves all. It follows nobody to another origin, reads no more than it is allowed to,
//!   and tries the transport of 2024 (events and posts) where the newer one is not known. Who we are is asked of a port;
//!   a server that is not satisfied `needs-auth`.
//! * **Bounds.** Messages, lists, pages, cursors, logs, questions and floods have a cap. What is left out is told as a
//!   warning; a bad line, answer or tool spoils nothing but itself.
//! * **Ports.** Questions to the person or to a model, authorization and announcements go through [`Ports`]; what nobody
//!   does is not offered, and declined if asked for all the same.
//!
//! What servers say is shown without secrets, control and direction characters. This crate knows nothing of hooks, never
//! prints, and reads neither environment nor home by itself.
//!
//! The crate needs Unix; only Linux is tested, and only there is nobody left behind for certain.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use ollm_mcp::{BlockingClient, ClientContext, Endpoint, Ports, ReadyServer, ServerMemory, Settings};
//! use ollm_process::{Children, Limits};
//!
//! let context = ClientContext::new(Settings::default(), Ports::default(), Arc::new(Children::new()));
//! let client = BlockingClient::new(Arc::new(context))?;
//! let endpoint = Endpoint::Stdio {
//!     program: "/does/not/exist".into(), args: vec![], env: vec![], cwd: None, limits: Limits::default(),
//!     program_box: None,
//! };
//! client.add(ReadyServer::new("files", endpoint), ServerMemory::default());
//! let error = client.start("files").unwrap_err().to_string();
//! assert!(error.starts_with("MCP server `files`: it did not start: `/does/not/exist` does not exist"));
//! assert_eq!(client.server("files")?.status().state.name(), "failed");
//! client.close();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod auth;
mod backoff;
mod batch;
mod blocking;
mod cache;
mod client_handler;
mod clock;
mod connect;
mod depth_limit;
mod endpoint;
mod error;
mod events;
mod fast_decode;
mod handshake;
mod health;
mod http;
mod lifecycle;
#[cfg(test)]
mod limits;
mod line_transport;
mod list;
mod log;
mod name;
mod ports;
mod program;
mod ready;
mod requester;
mod result;
mod runtime;
mod server;
mod settings;
mod shared;
mod sse;
mod status;
mod tool;
mod wait;
mod web;

pub use auth::{Grant, Login, LoginError, Pasted, Tokens, Wanted, granted, log_out};
pub use blocking::{BlockingClient, Pending};
pub use cache::{Cache, ServerMemory};
pub use client_handler::{OnProgress, Progress};
pub use endpoint::{WebAddress, web_address};
pub use error::{CallError, CallErrorKind};
pub use handshake::Era;
pub use list::Listing;
pub use name::{BadName, Labels, split, tool_names};
pub use ollm_protocol::schema::{Api, BadSchema, Lowered, Unfit, check, lower, read as read_schema};
pub use ollm_protocol::{Oauth, ToolFilter};
pub use ports::{Admit, Authorize, Elicit, ElicitAnswer, PortFuture, Ports, Reply, Sample, ServerNotice, Watch};
pub use ready::{Endpoint, ReadyServer};
pub use result::{
    LARGEST_RESULT, Spill, SpillError, Taken, bound as bound_result, read as read_result, read_error,
    show as show_result, write as write_result,
};
pub use server::{Call, ClientContext, Server};
pub use settings::{Bounds, Root, Settings, Timings};
pub use status::{ServerState, ServerStatus};
pub use tool::{Offer, Offers, Remark};
