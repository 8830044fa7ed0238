//! The host with written conversations, scripted hooks and a real HTTP server, through its public interface.

#![cfg(target_os = "linux")]
#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests as well")]

mod approval;
mod faults;
mod files;
mod http;
mod instructions;
mod language;
mod order;
mod other_providers;
mod properties;
mod saved;
mod small_models;
mod subagents;
mod support;
mod tools;
mod verdicts;
