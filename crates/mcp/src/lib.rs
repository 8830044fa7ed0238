//! The MCP client of ollm: live MCP servers and their tools.
//!
//! # Theory of operation
//!
//! A [`ReadyServer`] says how a server is reached; a [`Server`] is its handle; a [`BlockingClient`] holds many of them
//! for programs without a runtime. Below them lies the official SDK (`rmcp`). Only its client service loop, its message
//! types and its streamable HTTP session are used. All code that touches a process, a socket or a clock is ours.
//!
//! * **One owner.** Each server has a task that owns its lifecycle and takes commands. Its knowledge is one value that
//!   others only read: [`ServerState`], connection, tools. A server is `ready` only once it has answered and its tools
//!   are known. Dropping the handle ends everything that belongs to the server.
//! * **Calls** do not pass through the task: they go straight to the connection, any number at once, and cost hardly
//!   more than calls of the bare SDK. A call without a connection makes one. A lost call is repeated only if it is
//!   certain that nothing was sent.
//! * **Waiting.** A [`BlockingClient`] has one thread for its servers. Every blocking wait goes through one function.
//!   It drives the runtime of that thread meanwhile, so that a call needs no switch between threads. Only the thread
//!   starts programs. A wait inside that runtime, as in a port, is an error.
//! * **Clocks.** A start has a timeout, and three tries with growing pauses. Progress extends the timeout of a call,
//!   but never beyond a ceiling; while a person is being asked, the call waits for the person. Dropping a call, or its
//!   timeout, cancels it on the server.
//! * **Crashes.** The end of the connection or of the program withdraws the tools. The next call starts the server
//!   again. The task itself restarts servers on the network, and others where the declaration says so. Several crashes
//!   in a short time are a loop, which only a person or some time ends. A silent server is pinged, and three unanswered
//!   pings count as a crash.
//! * **Programs** are started by `ollm_process`: own group, exact environment, limits, and a guard that kills the group
//!   if this process dies. To end a program, we close its input, then send the polite signal, then the final one. The
//!   thread that started a program must outlive it; the thread of a [`BlockingClient`] does.
//! * **Revisions.** A server is first asked `server/discover`, which only the stateless revision knows. After any
//!   failure or silence, `initialize` follows on the same connection. What worked is part of a server's
//!   [`ServerMemory`] and tried first.
//! * **Network.** One pooled client serves all. It follows no redirect to another origin, and reads only up to its
//!   limits. It tries the transport of 2024 (events and posts) if the server does not support the newer one. A port
//!   supplies our identity; a server that does not accept it becomes `needs-auth`.
//! * **Bounds.** Messages, lists, pages, cursors, logs, questions and floods have a cap. Warnings name what was left
//!   out; one bad line, answer or tool does not affect the others.
//! * **Ports.** Questions to the person or to a model, authorization and announcements go through [`Ports`]. A
//!   capability without a port is not offered, and declined if a server asks for it anyway.
//!
//! Text from servers is shown without secrets, control and direction characters. This crate knows nothing of hooks,
//! never prints, and reads neither environment nor home by itself.
//!
//! The crate needs Unix. It is tested on Linux only, and only there it is certain that no process is left behind.
//! The crate needs Unix; only Linux is tested, and only there no process is left behind for certain.
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

pub use auth::{Grant, Login, LoginError, LoginRequest, PersonInput, Tokens, granted, log_out};
pub use blocking::{BlockingClient, PendingAnswer};
pub use cache::{Cache, ServerMemory};
pub use client_handler::{OnProgress, Progress};
pub use endpoint::{WebAddress, web_address};
pub use error::{CallError, CallErrorKind};
pub use handshake::Era;
pub use list::Listing;
pub use name::{BadName, Labels, split, tool_names};
pub use ollm_protocol::schema::{Api, BadSchema, LoweredSchema, SchemaMismatch, check, lower, read as read_schema};
pub use ollm_protocol::{Oauth, ToolFilter};
pub use ports::{Admit, Authorize, Elicit, ElicitAnswer, PortFuture, Ports, Reply, Sample, ServerNotice, Watch};
pub use ready::{Endpoint, ReadyServer};
pub use result::{
    CheckedResult, LARGEST_RESULT, Spill, SpillError, bound as bound_result, read as read_result, read_error,
    show as show_result, write as write_result,
};
pub use server::{Call, ClientContext, Server};
pub use settings::{Bounds, Root, Settings, Timings};
pub use status::{ServerState, ServerStatus};
pub use tool::{Offer, Offers, Remark};
