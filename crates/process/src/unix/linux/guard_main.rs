//! What the guard runs, in a process of its own.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use libc::{c_int, c_void};

use super::clear_cmdline::clear_cmdline;
use super::files::keep_only;
use super::guard::SharedTable;
use super::kill_marked::{HASTY, THOROUGH, kill_marked};
use super::mark::Mark;

/// What process lists call the guard.
const NAME: &[u8; 16] = b"children-guard\0\0";

/// What the guard needs.
pub(super) struct GuardContext<'a> {
    pub(super) table: &'a SharedTable,
    pub(super) mark: Mark,
    /// The end of the lifeline that it reads; no standard stream.
    pub(super) lifeline: RawFd,
}

/// The main function of the guard. All signals are blocked before it starts, so only `SIGKILL` ends it early.
pub(super) extern "C" fn guard_main(context: *mut c_void) -> c_int {
    // SAFETY: `Guard::start` passes a `GuardContext` whose copy is valid until the guard exits.
    let context = unsafe { &*context.cast::<GuardContext<'_>>() };
    // SAFETY: these are plain system calls on valid arguments in a process that shares nothing with ours but the table.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        clear_cmdline(NAME);
        libc::chdir(c"/".as_ptr());
        keep_only(&mut [context.lifeline]);
        await_end(context.lifeline);
        for place in context.table.used() {
            let group = place.load(Ordering::Acquire);
            if group > 1 {
                libc::kill(-group, libc::SIGKILL);
            }
        }
        if !context.table.is_settled() {
            kill_marked(
                context.mark.bytes(),
                if context.table.awaited.load(Ordering::Acquire) { HASTY } else { THOROUGH },
            );
        }
        libc::_exit(0)
    }
}

/// Waits until the other end of the lifeline is closed. Bytes that come by mistake are ignored.
///
/// # Safety
///
/// Only for a process whose lifeline this is.
unsafe fn await_end(lifeline: RawFd) {
    let mut byte = 0_u8;
    loop {
        // SAFETY: there is room for one byte.
        let count = unsafe { libc::read(lifeline, (&raw mut byte).cast(), 1) };
        // SAFETY: the place of the error number is always valid.
        let interrupted = count == -1 && unsafe { *libc::__errno_location() } == libc::EINTR;
        if count != 1 && !interrupted {
            return;
        }
    }
}
