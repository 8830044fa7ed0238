//! The process that we started: it leads its group, and only we signal and reap it.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::platform::Slot;
use crate::End;

/// How long a drop waits for a killed process.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// A started process. Until it is reaped, its process id, which is also its group's id, belongs to no other process.
/// Dropped before that, it kills its group.
#[derive(Debug)]
pub(super) struct Leader {
    pub(super) pid: Pid,
    /// Readable once the process has exited; absent on old kernels and other systems.
    pub(super) pidfd: Option<OwnedFd>,
    /// Whether it is known to have exited.
    pub(super) gone: bool,
    /// The group's entry in the guard's table, as long as the group must die with us.
    pub(super) slot: Option<Slot>,
}

impl Leader {
    /// Sends a signal to every process of the group. It fails only if no process is left that we may signal.
    pub(super) fn signal_group(&self, signal: Signal) {
        let _ = kill_process_group(self.pid, signal);
    }

    /// Makes sure that our guard outlives us in every case, because this process runs longer.
    pub(super) fn separate_guard(&self) {
        if let Some(slot) = &self.slot {
            slot.separate_guard();
        }
    }

    /// Whether the process has exited; it stays unreaped.
    pub(super) fn exited(&self) -> bool {
        if self.gone {
            return true;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Waits up to this long for the exit, also through signals; without a file descriptor that signals it, the whole
    /// time.
    pub(super) fn await_exit(&self, pause: Duration) {
        let Some(pidfd) = &self.pidfd else {
            return thread::sleep(pause);
        };
        let began = Instant::now();
        loop {
            let left = Timespec::try_from(pause.saturating_sub(began.elapsed())).ok();
            if poll(&mut [PollFd::new(pidfd, PollFlags::IN)], left.as_ref()) != Err(Errno::INTR) {
                return;
            }
        }
    }

    /// Reaps the process if it has exited, and says how it ended.
    ///
    /// The guard must no longer kill the group before that: once the process is reaped, another group may get its id.
    pub(super) fn reap(&mut self) -> Option<End> {
        if !self.exited() {
            return None;
        }
        if let Some(slot) = &self.slot {
            slot.spare(self.pid);
        }
        let end = self.take_status();
        self.slot = None;
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

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::unix::platform::Launcher;
    use crate::{Children, Job};

    extern "C" fn ignore(_: libc::c_int) {}

    /// Runs work while one signal after another comes to this thread; each of them interrupts system calls.
    #[expect(unsafe_code, reason = "the standard library neither sends nor handles signals")]
    fn disturbed(work: impl FnOnce()) {
        let done = AtomicBool::new(false);
        // SAFETY: the handler does nothing, and the signal has no other use here.
        let thread = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = ignore as *const () as usize;
            libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut());
            libc::pthread_self()
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // SAFETY: the thread waits for us.
                    unsafe { libc::pthread_kill(thread, libc::SIGUSR2) };
                    thread::sleep(Duration::from_millis(1));
                }
            });
            work();
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn an_exit_is_waited_for_whatever_signals_come() {
        let children = Children::new();
        let job = Job { args: vec!["0.1".into()], ..Job::new("/bin/sleep") };
        let (leader, _pipes) = children.spawn(&Launcher::new(), &job, Instant::now(), Launcher::launch).unwrap();
        disturbed(|| leader.await_exit(Duration::from_mins(1)));
        assert!(leader.exited());
    }
}
