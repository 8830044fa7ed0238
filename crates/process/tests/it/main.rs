//! Real programs, run through the public interface.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "helpers of tests are tests as well")]

mod boxes;
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
mod watched;
