//! The host of ollm: model providers, tools, the agent loop and sessions.
//!
//! This crate knows nothing of how hooks run and never prints: it emits every event of an agent's life through a port.

#![forbid(unsafe_code)]
