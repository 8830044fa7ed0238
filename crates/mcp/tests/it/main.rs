//! Live servers, and what is around the wires: names, schemas, results, the cache.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests are tests as well")]

mod calls;
mod faults;
mod names;
mod orphans;
mod properties;
mod remote;
mod results;
mod schemas;
mod support;
mod tools;
mod waiting;
mod web;
