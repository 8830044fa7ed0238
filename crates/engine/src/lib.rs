//! From one event to one verdict: selects, plans and runs hooks, and merges their answers.
//!
//! The hooks for an event are selected ([`select`]) and planned ([`plan`]). Stage by stage, trust clears them
//! ([`clear`]), they run, and their answers are merged into one [`Outcome`]. [`Engine::dispatch`] does all of this. It
//! blocks, needs no runtime, prints nothing, and never fails: another program's failure is a value in the outcome. The
//! [`Bus`] tells listeners what happens meanwhile, and [`trace::Recorder`] makes a record of it.
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
pub use background::{FAILURE_FIELDS, LateResult, Launcher, TaskResult, run_handed_over};
pub use bus::Bus;
pub use clear::{ClearedStage, Step, clear};
pub use engine::Engine;
pub use environment::{DEPTH_VARIABLE, EVENT_VARIABLE, EXTENSION_VARIABLE, Environment, HOOK_VARIABLE};
pub use facts::{Facts, Requirement};
pub use limit::unbound_limit;
pub use narrow::Surroundings;
pub use plan::{ForecastStep, Plan, PlannedHook, plan};
pub use rate::{LimitNow, Rates, is_used_up};
pub use registry::{DuplicateId, Registry};
pub use repeat::EarlierDecision;
pub use report::{HookOutput, Outcome, Process, Reason, Report, Skip, Status, Summary, summarise};
pub use select::{Selection, select};
