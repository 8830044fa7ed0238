//! How much work one question to a condition may cost.

use crate::STEPS;
use crate::error::Fault;

/// Texts are read at this many bytes per step.
const READ: usize = 1024;

/// Texts are built at this many bytes per step, which bounds what a condition can hold in memory.
const BUILT: usize = 64;

/// What is left of the steps of one question.
#[derive(Debug)]
pub(crate) struct Fuel(usize);

impl Fuel {
    pub(crate) fn full() -> Fuel {
        Fuel(STEPS)
    }

    /// Pays for some steps; once the fuel is spent, nothing can be paid any more.
    pub(crate) fn take(&mut self, steps: usize) -> Result<(), Fault> {
        let left = self.0.checked_sub(steps);
        self.0 = left.unwrap_or(0);
        left.map(|_| ()).ok_or(Fault::Exhausted)
    }

    /// Pays for looking at so many bytes.
    pub(crate) fn read(&mut self, bytes: usize) -> Result<(), Fault> {
        self.take(bytes / READ)
    }

    /// Pays for a new text of so many bytes, before it is made.
    pub(crate) fn build(&mut self, bytes: usize) -> Result<(), Fault> {
        self.take(1 + bytes / BUILT)
    }
}
