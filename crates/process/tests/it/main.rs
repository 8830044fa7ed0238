//! Real programs, run through the public interface.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests as well")]

mod death;
mod ends;
mod escape;
mod reapers;
mod residents;
mod setup;
mod start;
mod streams;
mod support;
mod time;
