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

/// The stack of the thread that does it.
const STACK: usize = 128 * 1024;
/// Longer than a reaper may take.
const PATIENCE: Duration = reaper_main::BOUND.saturating_add(Duration::from_secs(5));

/// The known parts of a program and its descendants.
#[derive(Debug)]
pub(super) struct Orphans {
    /// The reaper, unless it is reaped already.
    pub(super) reaper: Option<Pid>,
    /// The program, if its number is known.
    pub(super) program: Option<Pid>,
    /// Its other end closes once the reaper has exited.
    pub(super) line: OwnedFd,
    pub(super) slot: Slot,
}

impl Orphans {
    /// Ends them on a separate thread. If no thread can be started, they live until we end, because the guard knows
    /// them too.
    pub(super) fn end_in_background(self) {
        // Signals must go to the other threads.
        let _blocked = BlockedSignals::all();
        let _ = thread::Builder::new().name("orphans".to_owned()).stack_size(STACK).spawn(move || self.end());
    }

    /// Waits for the reaper, then kills the descendants that bear the mark. Unmarked descendants whose parent died come
    /// to us if we are a subreaper.
    fn end(self) {
        match self.reaper {
            Some(reaper) if !await_hangup(&self.line, PATIENCE) => end(reaper),
            Some(reaper) if reap(reaper) => return,
            Some(_) | None => {}
        }
        // If the program came to us at the reaper's death, its id and its group's id are still its own.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if let Some(program) = self.program.filter(|program| waitid(WaitId::Pid(*program), look).is_ok()) {
            let _ = kill_process_group(program, Signal::KILL);
        }
        kill_marked(&self.slot.entry(), THOROUGH);
        drop(self.slot);
        reap_adopted();
    }
}
