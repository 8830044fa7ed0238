//! From one event to one verdict: selects, plans and runs hooks, and merges their answers.
//!
//! The hooks for an event are selected ([`select`]) and planned ([`plan`]); stage by stage its hooks are cleared by trust ([`clear`]) and run, and their answers
//! are folded into one [`Outcome`]. [`Engine::dispatch`] walks that way. It blocks, needs no runtime, prints nothing,
//! and never fails: another program's failure is a value in the outcome. Whoever wants to know what happens meanwhile
//! listens to the [`Bus`]; what happened is written down by [`trace::Recorder`].
//!
//! ```
//! use std::time::SystemTime;
//! use ollm_engine::{Engine, Environment};
//! use ollm_protocol::{ActionSpec, Builtin, Event, EventKind, Hook, HookSpec, Rules, Source, Verdict};
//! use ollm_trust::Trust;
//!
//! let trust = Trust::new("trusted-hooks.json".into(), SystemTime::now);
//! let mut engine = Engine::new(trust, Environment::default());
//! let guard = Builtin::new(|event| match event.text("tool_name") {
//!     Some("shell") => Verdict::block("no shell today"),
//!     _ => Verdict::default(),
//! });
//! let spec = HookSpec { source: Source::Builtin, ..HookSpec::new("guard", "before_tool", ActionSpec::Builtin(guard)) };
//! engine.registry.register(Hook::new(spec, &Rules::default())?)?;
//!
//! let outcome = engine.dispatch(&Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into())]));
//! assert!(!outcome.continues());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod action;
mod background;
mod boxed_job;
pub mod bus;
mod clear;
mod engine;
mod environment;
mod facts;
mod limit;
mod merge;
mod narrow;
mod plan;
mod present;
mod rate;
mod registry;
mod repeat;
mod report;
mod run;
mod select;
pub mod template;
pub mod trace;
mod twin;

pub use action::{ToolCall, ToolCaller, ToolFailure};
pub use background::{Done, Late, Launcher, run_handed_over};
pub use bus::Bus;
pub use clear::{Cleared, Step, clear};
pub use engine::Engine;
pub use environment::{DEPTH_VARIABLE, EXTENSION_VARIABLE, Environment};
pub use facts::{Facts, Requirement};
pub use narrow::Surroundings;
pub use plan::{Plan, Planned, plan};
pub use rate::Rates;
pub use registry::{DuplicateId, Registry};
pub use repeat::Earlier;
pub use report::{Outcome, Process, Reason, Report, Skip, Spoken, Status, Summary, summarise};
pub use select::{Selection, select};
