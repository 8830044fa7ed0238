//! The files of a process that is made from ours and does not become a program: it keeps only the files that it needs.

use std::os::fd::RawFd;

use libc::{c_int, c_uint};

/// The first file descriptor that is no standard stream.
const FIRST: RawFd = 3;

/// Closes everything except these files, which are no standard streams; above all, our ends of pipes. The standard
/// streams then lead nowhere.
///
/// # Safety
///
/// Closes nearly every file of the process: only for a process whose files no other code uses.
pub(super) unsafe fn keep_only(kept: &mut [RawFd]) {
    kept.sort_unstable();
    let mut first = FIRST;
    for file in kept {
        // SAFETY: as the caller promised.
        unsafe { close_range(first, *file - 1) };
        first = *file + 1;
    }
    // SAFETY: as above, and all are plain system calls.
    unsafe {
        close_range(first, c_int::MAX);
        for stream in 0..FIRST {
            libc::close(stream);
            libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        }
    }
}

/// Closes all files but one, with calls that cannot fail where [`knows_close_range`].
///
/// # Safety
///
/// As for [`keep_only`].
pub(super) unsafe fn close_all_but(kept: RawFd) {
    let kept = kept.unsigned_abs();
    // SAFETY: as the caller promised.
    unsafe {
        if kept > 0 {
            libc::syscall(libc::SYS_close_range, 0 as c_uint, kept - 1, 0 as c_uint);
        }
        libc::syscall(libc::SYS_close_range, kept + 1, c_uint::MAX, 0 as c_uint);
    }
}

/// Whether a range of files can be closed at once: Linux 5.9 and later can, unless a filter of system calls forbids it.
pub(super) fn knows_close_range() -> bool {
    // SAFETY: no file has this number.
    unsafe { libc::syscall(libc::SYS_close_range, c_uint::MAX, c_uint::MAX, 0 as c_uint) == 0 }
}

/// Closes files one by one on kernels that cannot close a range, up to the highest number that is likely in use.
///
/// # Safety
///
/// As for [`keep_only`].
unsafe fn close_range(first: RawFd, last: RawFd) {
    if first > last {
        return;
    }
    // SAFETY: as the caller promised.
    unsafe {
        let (from, to) = (first.unsigned_abs(), last.unsigned_abs());
        if libc::syscall(libc::SYS_close_range, from, to, 0 as c_uint) == -1 {
            let limit = libc::sysconf(libc::_SC_OPEN_MAX).clamp(1024, 65536);
            for file in first..=last.min(limit as RawFd) {
                libc::close(file);
            }
        }
    }
}
