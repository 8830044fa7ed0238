//! A closure of the embedding program; its panic is a failed hook like any other.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ollm_protocol::{Builtin, Event};

use super::Prepared;

pub(super) fn call(builtin: &Builtin, event: &Event) -> Prepared {
    // The closure's own state may be half changed after a panic; that is its owner's to guard, not ours to see.
    match catch_unwind(AssertUnwindSafe(|| builtin.call(event))) {
        Ok(verdict) => Prepared::Decided(Box::new(verdict), Vec::new()),
        Err(_) => Prepared::Impossible("it panicked".to_owned()),
    }
}
