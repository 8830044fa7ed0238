//! The wires of ollm: live MCP servers and their tools.
//!
//! A [`Declaration`] says how a server is reached. This crate knows nothing of hooks, never prints, and reads neither
//! environment nor home by itself.

#![forbid(unsafe_code)]

mod declaration;
mod name;

pub use declaration::{Declaration, Endpoint, Filter};
pub use name::{BadName, Labels, split, tool_names};
