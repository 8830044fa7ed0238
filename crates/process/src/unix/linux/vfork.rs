//! A new process that borrows our memory, as with `vfork`, but with its own stack.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use libc::{CLONE_VFORK, CLONE_VM, SIGCHLD, c_int, c_void};
use rustix::process::Pid;

use super::memory::Stack;
use super::signals::BlockedSignals;

/// Runs `main` in a new process; returns once that has become a program or has ended. If the flags contain
/// `CLONE_PIDFD` and the kernel supports it, also returns a pidfd.
///
/// # Safety
///
/// `main` must not return, nor use anything but the stack and what `context` points to, which must be valid for it.
pub(super) unsafe fn vfork(
    stack: &Stack,
    main: extern "C" fn(*mut c_void) -> c_int,
    context: *mut c_void,
    flags: c_int,
) -> io::Result<(Pid, Option<OwnedFd>)> {
    // Kernels before CLONE_PIDFD ignore the flag and leave this unchanged.
    let mut pidfd: RawFd = -1;
    let blocked = BlockedSignals::all();
    // SAFETY: the child alone runs on its stack, because we sleep (CLONE_VFORK) until it has left our memory. Signals
    // are blocked, so no handler of ours runs in the child. The rest is the caller's promise.
    let pid =
        unsafe { libc::clone(main, stack.top(), CLONE_VM | CLONE_VFORK | SIGCHLD | flags, context, &raw mut pidfd) };
    let failure = io::Error::last_os_error();
    drop(blocked);
    let pid = (pid > 0).then(|| Pid::from_raw(pid)).flatten().ok_or(failure)?;
    // SAFETY: the kernel has just made this file for us, closed on exec.
    let pidfd = (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd) });
    Ok((pid, pidfd))
}
