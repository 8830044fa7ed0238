//! What is around the wires: names, schemas, results, the cache.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers fail the test that called them")]

mod names;
