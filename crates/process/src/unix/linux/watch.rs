//! The life of the guard, in a process of its own.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use libc::{c_int, c_void};

use super::blank::blank;
use super::files::keep_only;
use super::guard::Shared;
use super::mark::Mark;
use super::sweep::{HASTY, THOROUGH, sweep};

/// What process lists call the guard.
const NAME: &[u8; 16] = b"children-guard\0\0";

/// What the guard is given.
pub(super) struct Post<'a> {
    pub(super) table: &'a Shared,
    pub(super) mark: Mark,
    /// The end of the lifeline that it reads; no standard stream.
    pub(super) lifeline: RawFd,
}

/// The life of the guard. All signals are blocked from before its birth, so only `SIGKILL` ends it early.
pub(super) extern "C" fn keep_watch(post: *mut c_void) -> c_int {
    // SAFETY: `Guard::start` passes a `Post` whose copy is valid for the life of the guard.
    let post = unsafe { &*post.cast::<Post<'_>>() };
    // SAFETY: these are plain system calls on valid arguments in a process that shares nothing with ours but the table.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        blank(NAME);
        libc::chdir(c"/".as_ptr());
        keep_only(&mut [post.lifeline]);
        await_end(post.lifeline);
        for place in post.table.used() {
            let group = place.load(Ordering::Acquire);
            if group > 1 {
                libc::kill(-group, libc::SIGKILL);
            }
        }
        if !post.table.is_settled() {
            sweep(post.mark.bytes(), if post.table.awaited.load(Ordering::Acquire) { HASTY } else { THOROUGH });
        }
        libc::_exit(0)
    }
}

/// Waits until nobody holds the other end of the lifeline. What somebody might write there by mistake says nothing.
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
