//! Events, hooks, verdicts and tools, and the dialects that spell them.
//!
//! An [`Event`] is one moment in an agent's work. A [`Hook`] reacts to events. A [`Verdict`] is a hook's decision. A
//! [`Dialect`] reads and writes events and verdicts on the wire.
//!
//! This crate does no I/O and reads neither clock nor environment: bytes in, values out. Hooks written in Rust need
//! only this crate; `examples/guard.rs` is one.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod code;
pub mod dialect;
pub mod event;
pub mod hook;
mod json;
pub mod matcher;
pub mod pattern;
mod placeholder;
pub mod protected;
mod remedy;
mod scope;
mod server;
pub mod tool;
pub mod units;
mod verdict;

pub use code::{Code, CodeClass};
pub use dialect::{Dialect, DialectError, End, HookAnswer, Output, Reply, Request};
pub use event::{Event, EventError, EventKind, FileChange};
pub use hook::{
    Action, ActionSpec, Basis, Builtin, DefaultBox, Endpoint, HeldText, Hook, HookError, HookSpec, Layer, LimitsSpec,
    Needs, OnFailure, Origin, PermissionsSpec, Priority, RateLimit, Reach, Requires, Rules, Setting, Source, Timeout,
    Variable,
};
pub use json::{NotAnObject, ObjectEnd};
pub use matcher::{Matcher, Subject};
pub use ollm_condition::{did_you_mean, nearest};
pub use pattern::{FilePatterns, PatternError, from_root};
pub use placeholder::{Placeholder, placeholders};
pub use remedy::{Commands, Remedy};
pub use scope::scope;
pub use server::{Oauth, ToolFilter};
pub use tool::{Content, Tool, ToolResult, ToolSchema, schema};
pub use verdict::{Flow, Verdict, joined};
