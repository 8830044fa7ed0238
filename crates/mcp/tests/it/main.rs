//! What is around the wires: names, schemas, results, the cache.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers fail the test that called them"
)]

mod names;
mod results;
mod schemas;
mod tools;
