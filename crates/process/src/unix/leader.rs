//! The process we started: head of its group, ours to signal and to reap.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::platform::{Kin, Slot};
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
    /// The guard's note of the group, as long as the group is to die with us.
    pub(super) slot: Option<Slot>,
    /// The descendants that left the group, where they are to end with the process and not only with us.
    pub(super) kin: Option<Kin>,
}

impl Leader {
    /// Sends a signal to every process of the group. A failure means that there is none left that we may signal.
    pub(super) fn signal_group(&self, signal: Signal) {
        let _ = kill_process_group(self.pid, signal);
    }

    /// Whether the process has exited; it stays unreaped.
    pub(super) fn exited(&self) -> bool {
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
    /// The guard spares the group first: once the process is reaped, its number may name a stranger's group.
    pub(super) fn reap(&mut self) -> Option<End> {
        if !self.exited() {
            return None;
        }
        if let Some(slot) = &self.slot {
            slot.spare(self.pid);
        }
        let end = self.take_status();
        self.slot = None;
        self.kin = None;
        Some(end)
    }

    fn take_status(&self) -> End {
        loop {
            let status = match waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED) {
                Ok(Some(status)) => status,
                Err(Errno::INTR) => continue,
                Ok(None) | Err(_) => return End::Lost,
            };
            let signal = status.terminating_signal().map(End::Signalled);
            return status.exit_status().map(End::Exited).or(signal).unwrap_or(End::Lost);
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
