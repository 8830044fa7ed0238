//! What archives may do to a disk.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should stop, and its tables are read by eye"
)]

mod archives;
mod attacks;
