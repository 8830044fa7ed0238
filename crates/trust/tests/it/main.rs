//! What holds from version to version, and what holds programs.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests as well")]

mod approved_before;
mod program_boxes;
