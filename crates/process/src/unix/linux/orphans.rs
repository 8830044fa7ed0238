//! Ends the descendants of a program whose reaper is late or was killed.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::adopted::reap_adopted;
use super::guard::Slot;
use super::kill_marked::{THOROUGH, kill_marked};
use super::reaper::{await_hangup, end, reap};
use super::reaper_main;
use super::signals::BlockedSignals;

/// Room for the thread that does it.
const STACK: usize = 128 * 1024;
/// Longer than a reaper takes.
const PATIENCE: Duration = reaper_main::BOUND.saturating_add(Duration::from_secs(5));

/// What we know of the program and its descendants.
#[derive(Debug)]
pub(super) struct Orphans {
    /// The reaper, unless it is reaped already.
    pub(super) reaper: Option<Pid>,
    /// The program, if its number is known.
    pub(super) program: Option<Pid>,
    /// Its other end is closed once the reaper has exited.
    pub(super) line: OwnedFd,
    pub(super) slot: Slot,
}

impl Orphans {
    /// Ends them on a thread of its own. If no thread can be started, they live until we end: the guard knows them too.
    pub(super) fn end_in_background(self) {
        // Signals are for the threads that there were before.
        let _blocked = BlockedSignals::all();
        let _ = thread::Builder::new().name("orphans".to_owned()).stack_size(STACK).spawn(move || self.end());
    }

    /// Waits for the reaper, then kills the descendants that bear the mark. Those without a mark whose parent died are
    /// ours if we are a subreaper.
    fn end(self) {
        match self.reaper {
            Some(reaper) if !await_hangup(&self.line, PATIENCE) => end(reaper),
            Some(reaper) if reap(reaper) => return,
            Some(_) | None => {}
        }
        // It came to us with the reaper's death, or it did not; only then its number, and its group's, is still its own.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if let Some(program) = self.program.filter(|program| waitid(WaitId::Pid(*program), look).is_ok()) {
            let _ = kill_process_group(program, Signal::KILL);
        }
        kill_marked(&self.slot.entry(), THOROUGH);
        drop(self.slot);
        reap_adopted();
    }
}
