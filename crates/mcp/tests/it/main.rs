//! Live servers, through the public interface.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests are tests as well")]

mod calls;
mod faults;
mod orphans;
mod properties;
mod remote;
mod support;
mod web;
