//! Signals that ask us to end, held back until our children have ended.
//!
//! They are blocked on the thread that runs the jobs and read from a file descriptor. So no handler of ours runs, and
//! no system call is interrupted. Their effect stays the default one: when let through, they end this process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::process;
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{SFD_CLOEXEC, SFD_NONBLOCK, SIG_BLOCK, SIG_UNBLOCK, SIGHUP, SIGINT, SIGTERM, c_int, sigset_t};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::read;

use super::signals::{contains, current_mask, has_default_effect, mask, only, set_of};

/// The signals that politely ask a process to end.
const POLITE: [c_int; 3] = [SIGTERM, SIGINT, SIGHUP];
/// Means that no signal has come.
const NONE: c_int = 0;
/// The size of the kernel's record of one signal; it begins with the number.
const NOTE: usize = size_of::<libc::signalfd_siginfo>();

/// Signals held back on this thread. The drop lets them through, and the first that came ends the process.
#[derive(Debug)]
pub(in crate::unix) struct HeldSignals {
    set: sigset_t,
    /// Readable when a further signal has come.
    file: OwnedFd,
    /// The first signal that was read.
    first: AtomicI32,
}

impl HeldSignals {
    /// Holds back the signals that would end us, except those that are ignored (as under `nohup`), blocked, or handled.
    pub(in crate::unix) fn hold() -> io::Result<Self> {
        let blocked = current_mask();
        let ends_us = |signal: &c_int| has_default_effect(*signal) && !contains(&blocked, *signal);
        let set = set_of(POLITE.into_iter().filter(ends_us));
        // SAFETY: the set is valid, and a new file is asked for.
        let file = unsafe { libc::signalfd(-1, &raw const set, SFD_CLOEXEC | SFD_NONBLOCK) };
        if file == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this file for us.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        mask(SIG_BLOCK, &set);
        Ok(Self { set, file, first: AtomicI32::new(NONE) })
    }

    /// A file descriptor that is readable when a signal has come that was not read yet.
    pub(in crate::unix) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Whether a signal has come, read or not.
    pub(in crate::unix) fn came(&self) -> bool {
        let waits = || poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&Timespec::default()));
        self.first.load(Ordering::Relaxed) != NONE || waits().is_ok_and(|count| count > 0)
    }

    /// Reads one signal, so that the file descriptor signals the next one.
    pub(in crate::unix) fn take(&self) {
        let mut note = [0; NOTE];
        if read(&self.file, &mut note) != Ok(NOTE) {
            return;
        }
        let number = note.first_chunk().map_or(NONE, |number| c_int::from_ne_bytes(*number));
        let _ = self.first.compare_exchange(NONE, number, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        self.take();
        let first = self.first.load(Ordering::Relaxed);
        if first != NONE {
            // SAFETY: any number is a valid argument.
            unsafe { libc::raise(first) };
            mask(SIG_UNBLOCK, &only(first));
            // A signal does not end the first process of a container.
            process::exit(128 + first);
        }
        mask(SIG_UNBLOCK, &self.set);
    }
}
