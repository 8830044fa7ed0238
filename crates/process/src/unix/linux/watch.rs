//! The life of the guard, in a process of its own.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use libc::{c_int, c_uint, c_void};

use super::blank::blank;
use super::guard::Shared;
use super::mark::Mark;
use super::sweep::{HASTY, THOROUGH, sweep};

/// Where the guard keeps the lifeline, above its standard streams.
const LIFELINE: RawFd = 3;
/// What process lists call the guard.
const NAME: &[u8; 16] = b"children-guard\0\0";

/// What the guard is given.
pub(super) struct Post<'a> {
    pub(super) table: &'a Shared,
    pub(super) mark: Mark,
    /// The end of the lifeline that it reads, and the one that it must not keep.
    pub(super) theirs: RawFd,
    pub(super) ours: RawFd,
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
        settle_files(post.theirs, post.ours);
        await_end();
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
/// Only for a process that has the lifeline in its place.
unsafe fn await_end() {
    let mut byte = 0_u8;
    loop {
        // SAFETY: there is room for one byte.
        let count = unsafe { libc::read(LIFELINE, (&raw mut byte).cast(), 1) };
        // SAFETY: the place of the error number is always valid.
        let interrupted = count == -1 && unsafe { *libc::__errno_location() } == libc::EINTR;
        if count != 1 && !interrupted {
            return;
        }
    }
}

/// Leaves the lifeline open and nothing else of ours, least of all our end of the lifeline and our standard streams.
///
/// # Safety
///
/// Closes nearly every file of the process: only for a process whose files nobody else uses.
unsafe fn settle_files(theirs: RawFd, ours: RawFd) {
    // SAFETY: as the caller promised; all are plain system calls.
    unsafe {
        if theirs != LIFELINE {
            libc::dup2(theirs, LIFELINE);
        }
        if ours != LIFELINE {
            libc::close(ours);
        }
        let first = LIFELINE + 1;
        if libc::syscall(libc::SYS_close_range, first, c_uint::MAX, 0) == -1 {
            close_from(first);
        }
        for stream in 0..=2 {
            libc::close(stream);
            libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        }
    }
}

/// Closes files one by one, for kernels that cannot close a range; as far as files are likely to be.
///
/// # Safety
///
/// As for [`settle_files`].
unsafe fn close_from(first: RawFd) {
    // SAFETY: as the caller promised.
    unsafe {
        let limit = libc::sysconf(libc::_SC_OPEN_MAX).clamp(1024, 65536);
        for file in first..limit as RawFd {
            libc::close(file);
        }
    }
}
