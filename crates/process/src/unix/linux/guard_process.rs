//! Starts and ends the process of a guard.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use libc::{c_int, pid_t};

use super::files::knows_close_range;
use super::guard::SharedTable;
use super::guard_main::{GuardContext, guard_main};
use super::mark::Mark;
use super::memory::Stack;
use super::signals::BlockedSignals;

/// The memory that a guard starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::unix) enum GuardMemory {
    /// A copy of ours.
    Own,
    /// Ours, until [`Guard::separate`].
    Shared,
}

/// The process that waits for our end.
#[derive(Debug)]
pub(super) struct GuardProcess {
    pub(super) pid: pid_t,
    /// The parts of our memory that it uses, if it has none of its own.
    pub(super) shared: Option<SharedParts>,
}

/// The memory that a guard in our memory uses until it has ended.
#[derive(Debug)]
pub(super) struct SharedParts {
    _stack: Stack,
    _context: Box<GuardContext>,
    /// The end of the lifeline that its successor will read.
    pub(super) theirs: OwnedFd,
}

impl GuardProcess {
    pub(super) fn start(memory: GuardMemory, table: &SharedTable, mark: Mark, theirs: OwnedFd) -> io::Result<Self> {
        // Without this call it would have to close files one by one, and failures would change our error number.
        let shares = memory == GuardMemory::Shared && knows_close_range();
        let lifeline = theirs.as_raw_fd();
        let (stack, context) = (Stack::new()?, Box::new(GuardContext { table, mark, lifeline, shares }));
        let flags = if shares { libc::CLONE_VM } else { 0 };
        let blocked = BlockedSignals::all();
        // No exit signal, so a wait for "any child" does not meet the guard. SAFETY: without CLONE_VM the new process
        // runs on its own copy of the stack and of the context. With it, both stay until it has ended, and so does the
        // table; no other thread runs on that stack. `guard_main` only makes system calls, and changes nothing of ours.
        let pid = unsafe {
            libc::clone(guard_main, stack.top(), flags, ptr::from_ref::<GuardContext>(&context).cast_mut().cast())
        };
        let failure = io::Error::last_os_error();
        drop(blocked);
        if pid == -1 {
            return Err(failure);
        }
        Ok(Self { pid, shared: shares.then_some(SharedParts { _stack: stack, _context: context, theirs }) })
    }

    /// Kills the guard itself, and waits for its end.
    pub(super) fn kill(&self) {
        // SAFETY: the guard is our child and not reaped before the next line, so its number is its own.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        self.reap(0);
    }

    /// Whether the guard has ended. No other process gets its id before it is reaped here.
    pub(super) fn reap(&self, options: c_int) -> bool {
        loop {
            // SAFETY: no status is asked for.
            match unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::__WALL | options) } {
                0 => return false,
                -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                _ => return true,
            }
        }
    }
}
