//! A keeper: a process between us and a program that stays, made for one program and gone with it; `tend` is its life.
//!
//! It is a subreaper, so every descendant of the program that loses its parent comes to it, whatever became of its group,
//! its session and its environment. When the program ends, or we do, in whichever way, it kills its children until there
//! are none.
//!
//! # Whose the program's number is
//!
//! The program is the keeper's child. The keeper alone signals it and reaps it, on one thread, so no signal of it can go to
//! a stranger who got the number after the program; we order signals, and never send one ourselves. Before it reaps the
//! program it takes the group out of the guard's table, as we do for the programs that we reap. The keeper's own number is
//! ours until we reap it, which only this file and `kin` do.
//!
//! # If somebody acts against it
//!
//! Whoever may signal us may signal a keeper. One that was stopped is woken whenever we order something or wait for it, and by the
//! kernel when we die. One that was killed takes its program along (parent-death signal); the rest of the program's descendants
//! are then known by their group and their mark only, as those of a job are (`kin`, and the guard).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{Pid, Signal, kill_process};

use super::guard::{Guard, Slot};
use super::kin::Kin;
use super::memory::Stack;
use super::news::{Heard, News, Order};
use super::signals::Blocked;
use super::spawn::{Launcher, Words};
use super::tend::{Duty, tend};
use crate::unix::Started;
use crate::unix::pipes::{Pipes, clear_of_stdio};
use crate::{End, Job, Stage};

/// How long a program may take to start: to be found and opened, on whichever disk.
const BEGINNING: Duration = Duration::from_secs(30);
/// How long we wait ourselves for a keeper that was told to end; longer than it is in a hurry.
const LAST_WAIT: Duration = Duration::from_millis(300);
/// After so long a keeper that tells nothing may have been stopped.
const TURN: Duration = Duration::from_millis(100);

/// A program and its keeper. Dropped, both end, and whoever came of the program.
#[derive(Debug)]
pub(in crate::unix) struct Keeper {
    program: Pid,
    /// What is there until the end is known.
    bond: Option<Bond>,
}

#[derive(Debug)]
struct Bond {
    keeper: Pid,
    /// Carries orders one way and news the other way. Either side sees when the other one is gone.
    line: OwnedFd,
    /// The guard's note of the program's group.
    slot: Slot,
}

impl Keeper {
    /// Starts a program below a keeper of its own.
    pub(in crate::unix) fn start(launcher: &Launcher, job: &Job, pipes: &Pipes, guard: &Arc<Guard>) -> Started<Self> {
        let slot = guard.register().map_err(|error| (Stage::Guard, error))?;
        let words = Words::new(job, &slot).map_err(|error| (Stage::Arguments, error))?;
        let (ours, theirs) = line().map_err(|error| (Stage::Pipe, error))?;
        let duty = Duty { launcher, plan: &launcher.plan(&words, &slot, pipes), line: theirs.as_raw_fd() };
        let keeper = clone(&duty).map_err(|error| (Stage::Clone, error))?;
        drop(theirs);
        let news = first_news(keeper, &ours);
        if let Some(News::Started(program)) = news {
            return Ok(Self { program, bond: Some(Bond { keeper, line: ours, slot }) });
        }
        end(keeper);
        if let Some(News::Failed(stage, error)) = news {
            return Err((stage, io::Error::from_raw_os_error(error)));
        }
        Kin { keeper: None, program: None, line: ours, slot }.follow();
        Err((Stage::Clone, io::Error::other("its keeper was killed, or did not answer")))
    }

    /// The number of the program.
    pub(in crate::unix) fn id(&self) -> Pid {
        self.program
    }

    /// A file that is readable once the program has ended.
    pub(in crate::unix) fn exit_file(&self) -> Option<BorrowedFd<'_>> {
        self.bond.as_ref().map(|bond| bond.line.as_fd())
    }

    /// Asks the program's group to end.
    pub(in crate::unix) fn ask(&self) {
        self.order(Order::Ask);
    }

    /// Ends it.
    pub(in crate::unix) fn kill(&self) {
        self.order(Order::Kill);
    }

    fn order(&self, order: Order) {
        if let Some(bond) = &self.bond {
            order.tell(&bond.line);
            wake(bond.keeper);
        }
    }

    /// How the program ended, if it has; known only once.
    pub(in crate::unix) fn reap(&mut self) -> Option<End> {
        let Some(bond) = &self.bond else {
            return Some(End::Lost);
        };
        let end = match News::hear(&bond.line) {
            Heard::Nothing => return None,
            Heard::Message(news) => news.end(),
            Heard::Silence => End::Lost,
        };
        self.part();
        Some(end)
    }

    /// Waits for the exit for a while, whatever signals come.
    pub(in crate::unix) fn await_exit(&self, pause: Duration) {
        if let Some(bond) = &self.bond {
            listen(bond.keeper, &bond.line, pause);
        }
    }

    /// Has the keeper end whoever is left, and then itself.
    fn part(&mut self) {
        let Some(Bond { keeper, line, slot }) = self.bond.take() else {
            return;
        };
        // Also where somebody holds on to another handle of ours.
        let _ = shutdown(&line, Shutdown::Write);
        wake(keeper);
        let gone = await_hangup(&line, LAST_WAIT);
        if !gone || !reap(keeper) {
            Kin { keeper: (!gone).then_some(keeper), program: Some(self.program), line, slot }.follow();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.part();
    }
}

/// Has a keeper go on that somebody stopped.
fn wake(keeper: Pid) {
    let _ = kill_process(keeper, Signal::CONT);
}

/// Our end of a line and the keeper's, which is no standard stream.
fn line() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    Ok((ours, clear_of_stdio(theirs)?))
}

/// Makes the process of a keeper.
fn clone(duty: &Duty<'_>) -> io::Result<Pid> {
    let stack = Stack::new()?;
    let blocked = Blocked::all();
    // No exit signal: nobody who waits for "any child" meets a keeper. SAFETY: without CLONE_VM the new process runs on its
    // own copy of the stack and of everything that `duty` points to, and `tend` only makes system calls.
    let pid = unsafe { libc::clone(tend, stack.top(), 0, std::ptr::from_ref(duty).cast_mut().cast()) };
    let failure = io::Error::last_os_error();
    drop(blocked);
    (pid > 0).then(|| Pid::from_raw(pid)).flatten().ok_or(failure)
}

/// What came of the start, if there is anybody to tell.
fn first_news(keeper: Pid, line: &OwnedFd) -> Option<News> {
    listen(keeper, line, BEGINNING);
    match News::hear(line) {
        Heard::Message(news) => Some(news),
        Heard::Nothing | Heard::Silence => None,
    }
}

/// Waits for news of a keeper, which is woken again and again: its program may stop it at any moment.
fn listen(keeper: Pid, line: &OwnedFd, patience: Duration) {
    let began = Instant::now();
    while let Some(left) = patience.checked_sub(began.elapsed()) {
        if wait(line, PollFlags::IN, left.min(TURN)) {
            return;
        }
        wake(keeper);
    }
}

/// Waits until nobody is at the other end, which is so once the keeper has gone; whether it is.
pub(super) fn await_hangup(line: &OwnedFd, patience: Duration) -> bool {
    // That is told without being asked for.
    wait(line, PollFlags::empty(), patience)
}

fn wait(line: &OwnedFd, what: PollFlags, patience: Duration) -> bool {
    let began = Instant::now();
    loop {
        let left = Timespec::try_from(patience.saturating_sub(began.elapsed())).ok();
        match poll(&mut [PollFd::new(line, what)], left.as_ref()) {
            Err(Errno::INTR) => {}
            told => return told.is_ok_and(|count| count > 0),
        }
    }
}

/// Kills a keeper that has nothing to do, or does it no more.
pub(super) fn end(keeper: Pid) {
    let _ = kill_process(keeper, Signal::KILL);
    reap(keeper);
}

/// Reaps a keeper that has gone; whether it has done its duty.
pub(super) fn reap(keeper: Pid) -> bool {
    let number = keeper.as_raw_nonzero().get();
    let mut status = 0;
    loop {
        // SAFETY: there is room for the status.
        match unsafe { libc::waitpid(number, &raw mut status, libc::__WALL) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            own => return own == number && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        }
    }
}
