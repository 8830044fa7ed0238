//! `ollm` from the outside: the real binary, real hooks, real processes, real files.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers fail the test that called them"
)]

mod agent;
mod agent_pages;
mod agents_refused;
mod answers;
mod attacks;
mod bad_events;
mod bad_files;
mod boxes;
mod bundled;
mod calls;
mod codes;
mod config;
mod connect;
mod container;
mod contract;
mod coverage;
mod declaring;
mod doctor;
mod documents;
mod embed;
mod events;
mod examples;
mod explain;
mod extension_laws;
mod extensions;
mod faults;
mod forms;
mod gates;
mod git_hook;
mod globals;
mod groups;
mod hosts;
mod in_place;
mod installing;
mod invariants;
mod joined;
mod kept_files;
mod keyring;
mod killed;
mod lab;
mod live;
mod mcp;
mod models;
mod network;
mod odd_names;
mod real_agents;
mod real_git_hooks;
mod real_models;
mod real_servers;
mod releases;
mod replay;
mod samples;
mod screens;
mod scripts;
mod seen;
mod server_laws;
mod settings;
mod switching;
mod task;
mod telemetry;
mod terminal;
mod too_soon;
mod trace;
mod transcripts;
mod trust;
mod trying;
mod tui;
mod watch;
mod written_forms;
