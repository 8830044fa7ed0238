//! A program that shares our terminal and our streams, as if a shell ran it: we only wait for it.

use std::os::fd::{AsFd, FromRawFd, OwnedFd};

use libc::{SFD_CLOEXEC, SFD_NONBLOCK, SIG_BLOCK, SIG_SETMASK, SIGHUP, SIGINT, SIGQUIT, SIGTERM, c_int, sigset_t};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::read;
use rustix::process::{Pid, Signal, kill_process};

use super::signals::{mask, set_of};
use crate::End;
use crate::unix::leader::Leader;

/// How often the exit is polled if no file descriptor signals it.
const ASKING: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// Signals to us that are passed on to the program.
const PASSED_ON: [c_int; 4] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT];
/// The size of the kernel's record of one signal.
const NOTE: usize = size_of::<libc::signalfd_siginfo>();

/// Waits for the end of a program. A signal that another process sends us is passed on to it; signals from the terminal
/// reach it directly.
pub(in crate::unix) fn await_end(mut leader: Leader, signals: &PassedSignals) -> End {
    loop {
        let exit = leader.pidfd.as_ref().map(AsFd::as_fd);
        let files = exit.into_iter().chain(signals.file.as_ref().map(AsFd::as_fd));
        let mut files: Vec<_> = files.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect();
        let pause = leader.pidfd.is_none().then_some(&ASKING);
        // An interrupted or failed wait is repeated; the exit is checked in any case.
        let _ = poll(&mut files, pause);
        drop(files);
        signals.pass_on(leader.pid);
        if let Some(end) = leader.reap() {
            return end;
        }
    }
}

/// Signals that are held back from us while a program shares our terminal. After the drop, they reach us again.
#[derive(Debug)]
pub(in crate::unix) struct PassedSignals {
    before: sigset_t,
    /// Readable when a signal has come; without it the signals are only held back.
    file: Option<OwnedFd>,
}

impl PassedSignals {
    pub(in crate::unix) fn hold() -> Self {
        let set = set_of(PASSED_ON);
        // SAFETY: the set is valid, and a new file is asked for.
        let file = unsafe { libc::signalfd(-1, &raw const set, SFD_CLOEXEC | SFD_NONBLOCK) };
        // SAFETY: the kernel has just made this file for us.
        let file = (file >= 0).then(|| unsafe { OwnedFd::from_raw_fd(file) });
        Self { before: mask(SIG_BLOCK, &set), file }
    }

    fn pass_on(&self, program: Pid) {
        let mut note = [0; NOTE];
        while self.file.as_ref().is_some_and(|file| read(file, &mut note) == Ok(NOTE)) {
            let number =
                |at: usize| note.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| c_int::from_ne_bytes(*bytes));
            // The record begins with number, error and code; for typed signals, the kernel is the sender.
            let from_terminal = number(8) == Some(libc::SI_KERNEL);
            let signal = number(0).filter(|_| !from_terminal).and_then(Signal::from_named_raw);
            if let Some(signal) = signal {
                let _ = kill_process(program, signal);
            }
        }
    }
}

impl Drop for PassedSignals {
    fn drop(&mut self) {
        let mut note = [0; NOTE];
        // Discards signals that were meant for the program.
        while self.file.as_ref().is_some_and(|file| read(file, &mut note) == Ok(NOTE)) {}
        mask(SIG_SETMASK, &self.before);
    }
}
