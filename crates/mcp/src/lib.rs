//! The wires of ollm: live MCP servers and their tools.
//!
//! A [`Declaration`] says how a server is reached. This crate knows nothing of hooks, never prints, and reads neither
//! environment nor home by itself.

#![forbid(unsafe_code)]

mod cache;
mod declaration;
mod name;
mod result;
mod schema;
mod tool;

pub use cache::{Cache, Entry};
pub use declaration::{Declaration, Endpoint, Filter};
pub use name::{BadName, Labels, split, tool_names};
pub use result::{
    LARGEST_RESULT, Spill, SpillError, Taken, bound as bound_result, read as read_result, read_error,
    show as show_result, write as write_result,
};
pub use schema::{Api, BadSchema, Lowered, Unfit, check, lower, read as read_schema};
pub use tool::{Remark, Offer, Offers};
