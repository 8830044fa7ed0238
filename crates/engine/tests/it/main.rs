//! One event in, one outcome out: the engine with real hooks, good and bad, through its public interface.

#![cfg(target_os = "linux")]
#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests as well")]

mod actions;
mod approver;
mod attacks;
mod background;
mod bundle;
mod bus;
mod defects;
mod environment;
mod faults;
mod flow;
mod held_up;
#[cfg(feature = "http")]
mod http;
mod plan;
mod policy;
mod property_flow;
mod property_order;
mod property_plan;
mod property_run;
mod rate;
mod registry;
mod stress;
mod support;
mod template;
mod template_in_shells;
mod trace;
mod trust;
mod trust_machine;
