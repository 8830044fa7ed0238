//! What is left to do for a program whose keeper is late, or did not do its duty because somebody killed it.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::guard::Slot;
use super::keeper::{await_hangup, end, reap};
use super::signals::Blocked;
use super::strays::reap_adopted;
use super::sweep::{THOROUGH, sweep};
use super::tend;

/// Room for the thread that does it.
const STACK: usize = 128 * 1024;
/// Longer than a keeper fights.
const PATIENCE: Duration = tend::BOUND.saturating_add(Duration::from_secs(5));

/// What is known of the program and its descendants.
#[derive(Debug)]
pub(super) struct Kin {
    /// The keeper, unless it is reaped already.
    pub(super) keeper: Option<Pid>,
    /// The program, if its number is known.
    pub(super) program: Option<Pid>,
    /// Where nobody is at the other end once the keeper has gone.
    pub(super) line: OwnedFd,
    pub(super) slot: Slot,
}

impl Kin {
    /// Has a thread of its own do what is left: nobody waits for that. Where there is no thread to be had, they live until
    /// we end: the guard knows them as well.
    pub(super) fn follow(self) {
        // Signals are for the threads that there were before.
        let _blocked = Blocked::all();
        let _ = thread::Builder::new().name("kin".to_owned()).stack_size(STACK).spawn(move || self.end());
    }

    /// Waits for the keeper. Whoever it left alone is looked for by the mark; those who bear none, and lost their parent,
    /// have come to us if we are a subreaper.
    fn end(self) {
        match self.keeper {
            Some(keeper) if !await_hangup(&self.line, PATIENCE) => end(keeper),
            Some(keeper) if reap(keeper) => return,
            Some(_) | None => {}
        }
        // It came to us with the keeper's death, or it did not; only then its number, and its group's, is still its own.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if let Some(program) = self.program.filter(|program| waitid(WaitId::Pid(*program), look).is_ok()) {
            let _ = kill_process_group(program, Signal::KILL);
        }
        sweep(&self.slot.entry(), THOROUGH);
        drop(self.slot);
        reap_adopted();
    }
}
