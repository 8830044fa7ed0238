//! The process we started: head of its group, ours to signal and to reap.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::platform::Slot;
use crate::End;

/// How long a killed process that nobody waits for any more may take to go.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// A started process. Until it is reaped its number, and so that of its group, belongs to nobody else. Dropped before
/// that, it takes its group with it.
#[derive(Debug)]
pub(super) struct Leader {
    pub(super) pid: Pid,
    /// Readable once the process has exited; absent on old kernels and other systems.
    pub(super) pidfd: Option<OwnedFd>,
    /// Whether it is known to have exited.
    pub(super) gone: bool,
    /// The guard's note of the group, as long as the group is to die with us.
    pub(super) slot: Option<Slot>,
}

impl Leader {
    /// Sends a signal to every process of the group. A failure means that there is none left that we may signal.
    pub(super) fn signal_group(&self, signal: Signal) {
        let _ = kill_process_group(self.pid, signal);
    }

    /// Whether the process has exited; it stays unreaped.
    pub(super) fn exited(&self) -> bool {
        if self.gone {
            return true;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    pub(super) fn await_exit(&self, pause: Duration) {
        let Some(pidfd) = &self.pidfd else {
            return thread::sleep(pause);
        };
        let pause = Timespec::try_from(pause).ok();
        let _ = poll(&mut [PollFd::new(pidfd, PollFlags::IN)], pause.as_ref());
    }

    /// Reaps the process if it has exited, and says how it ended.
    ///
    /// The guard forgets the group first: once the process is reaped, its number may name a stranger's group.
    pub(super) fn reap(&mut self) -> Option<End> {
        if !self.exited() {
            return None;
        }
        self.slot = None;
        loop {
            let status = match waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED) {
                Ok(Some(status)) => status,
                Err(Errno::INTR) => continue,
                Ok(None) | Err(_) => return Some(End::Lost),
            };
            let signal = status.terminating_signal().map(End::Signalled);
            return Some(match status.exit_status() {
                Some(code) => End::Exited(code),
                None => signal.unwrap_or(End::Lost),
            });
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if self.slot.is_some() {
            self.signal_group(Signal::KILL);
            self.await_exit(LAST_WAIT);
            self.reap();
        }
    }
}
