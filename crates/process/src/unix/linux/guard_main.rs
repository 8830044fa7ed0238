//! The code of the guard process.

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::Ordering;

use libc::{c_int, c_void};
use rustix::io::{Errno, read};
use rustix::process::{Pid, Signal, kill_process_group, setsid};

use super::clear_cmdline::clear_cmdline;
use super::files::{close_all_but, keep_only};
use super::guard::SharedTable;
use super::kill_marked::{HASTY, THOROUGH, kill_marked};
use super::mark::Mark;

/// The guard's name in process lists.
const NAME: &[u8; 16] = b"children-guard\0\0";

/// The values that the guard needs.
#[derive(Debug)]
pub(super) struct GuardContext {
    /// Valid until the guard has ended.
    pub(super) table: *const SharedTable,
    pub(super) mark: Mark,
    /// The end of the lifeline that it reads; no standard stream.
    pub(super) lifeline: RawFd,
    /// Whether the guard shares our memory instead of having a copy.
    pub(super) shares: bool,
}

// SAFETY: the table consists of atomics, and every thread may read the rest.
unsafe impl Send for GuardContext {}
// SAFETY: as above.
unsafe impl Sync for GuardContext {}

/// The main function of the guard. All signals are blocked before it starts, so only `SIGKILL` ends it early.
///
/// If it shares our memory, it also shares the error number of the thread that started it. So while we live it makes
/// only calls that cannot fail, or bypasses the C library.
pub(super) extern "C" fn guard_main(context: *mut c_void) -> c_int {
    // SAFETY: `GuardProcess::start` passes a `GuardContext` that is valid until the guard exits.
    let context = unsafe { &*context.cast::<GuardContext>() };
    // SAFETY: the table is valid as long.
    let table = unsafe { &*context.table };
    let _ = setsid();
    // SAFETY: these are plain system calls on valid arguments; files, folder and name are the guard's own. What changes
    // memory is done only where that is no longer ours.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        if context.shares {
            close_all_but(context.lifeline);
        } else {
            clear_cmdline(NAME);
            libc::chdir(c"/".as_ptr());
            keep_only(&mut [context.lifeline]);
        }
    }
    await_end(context.lifeline);
    for group in table.used().iter().map(|place| place.load(Ordering::Acquire)).filter(|group| *group > 1) {
        // A group that has already ended needs no killing.
        let _ = Pid::from_raw(group).map(|group| kill_process_group(group, Signal::KILL));
    }
    if !table.is_settled() {
        kill_marked(context.mark.bytes(), if table.awaited.load(Ordering::Acquire) { HASTY } else { THOROUGH });
    }
    // SAFETY: ends this process without running anything of ours.
    unsafe { libc::_exit(0) }
}

/// Waits until the other end of the lifeline is closed. Stray bytes are ignored.
fn await_end(lifeline: RawFd) {
    // SAFETY: the file stays open as long as the guard lives.
    let lifeline = unsafe { BorrowedFd::borrow_raw(lifeline) };
    while matches!(read(lifeline, &mut [0_u8]), Ok(1) | Err(Errno::INTR)) {}
}
