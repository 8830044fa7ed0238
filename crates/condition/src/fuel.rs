//! Limits the work of one evaluation.

use crate::STEPS;
use crate::error::Fault;

/// Reading a text costs one step per this many bytes.
const READ: usize = 1024;

/// Building a text costs one step per this many bytes; this limits the memory of a condition.
const BUILT: usize = 64;

/// The steps that one evaluation has left.
#[derive(Debug)]
pub(crate) struct Fuel(usize);

impl Fuel {
    pub(crate) fn full() -> Fuel {
        Fuel(STEPS)
    }

    /// Takes some steps; once too few are left, every later request fails too.
    pub(crate) fn take(&mut self, steps: usize) -> Result<(), Fault> {
        let left = self.0.checked_sub(steps);
        self.0 = left.unwrap_or(0);
        left.map(|_| ()).ok_or(Fault::Exhausted)
    }

    /// Takes the steps for reading this many bytes.
    pub(crate) fn read(&mut self, bytes: usize) -> Result<(), Fault> {
        self.take(bytes / READ)
    }

    /// Takes the steps for a new text of this many bytes, before it is built.
    pub(crate) fn build(&mut self, bytes: usize) -> Result<(), Fault> {
        self.take(1 + bytes / BUILT)
    }
}
