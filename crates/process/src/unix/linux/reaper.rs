//! A reaper: a process between us and a program that stays. Each reaper serves one program and ends with it;
//! `reaper_main` is its code.
//!
//! It is a subreaper: all descendants of the program that lose their parent come to it, in any group, session and
//! environment. At the end of the program, or at ours, it kills its children until none is left.
//!
//! # The owner of the program's id
//!
//! The program is the reaper's child. Only the reaper signals and reaps it, on one thread, so no signal can reach
//! another process that got the same id later. We only send commands to the reaper. Before it reaps the program, it
//! takes the group out of the guard's table, as we do for the programs that we reap. The reaper's own id stays valid
//! until we reap it, which only this file and `orphans` do.
//!
//! # Signals from others
//!
//! A process that may signal us may also signal a reaper. We continue a stopped reaper when we command it or wait for
//! it; the kernel does so when we die. A killed reaper takes its program along (parent-death signal). The program's
//! other descendants are then found only by their group and their mark, like those of a job. (See `orphans`, and the
//! guard.)

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use rustix::process::{Pid, Signal, kill_process};

use super::guard::{Guard, Slot};
use super::memory::Stack;
use super::orphans::Orphans;
use super::reaper_main::{ReaperContext, reaper_main};
use super::reaper_protocol::{Incoming, ReaperCommand, ReaperEvent};
use super::signals::BlockedSignals;
use super::spawn::{ExecArguments, Launcher};
use crate::unix::Started;
use crate::unix::pipes::{Pipes, clear_of_stdio};
use crate::{End, Job, Stage};

/// How long a program may take to start, including look-up and opening on a slow disk.
const BEGINNING: Duration = Duration::from_secs(30);
/// How long we ourselves wait for a reaper to end after the request; longer than the time in which it kills often.
const LAST_WAIT: Duration = Duration::from_millis(300);
/// A reaper that is silent for this long may have been stopped.
const TURN: Duration = Duration::from_millis(100);

/// A program and its reaper. Dropping it ends both, and all descendants of the program.
#[derive(Debug)]
pub(in crate::unix) struct Reaper {
    program: Pid,
    /// The connection, until the end of the program is known.
    connection: Option<ReaperConnection>,
}

#[derive(Debug)]
struct ReaperConnection {
    reaper: Pid,
    /// Carries commands one way and events the other way. Each side sees when the other one has exited.
    line: OwnedFd,
    /// The entry of the program's group in the guard's table.
    slot: Slot,
}

impl Reaper {
    /// Starts a program below its own reaper.
    pub(in crate::unix) fn start(launcher: &Launcher, job: &Job, pipes: &Pipes, guard: &Arc<Guard>) -> Started<Self> {
        let slot = guard.register().map_err(|error| (Stage::Guard, error))?;
        slot.separate_guard();
        let words = ExecArguments::new(job, &slot).map_err(|error| (Stage::Arguments, error))?;
        let (ours, theirs) = line().map_err(|error| (Stage::Pipe, error))?;
        let context =
            ReaperContext { launcher, plan: &launcher.plan(&words, job, &slot, Some(pipes)), line: theirs.as_raw_fd() };
        let reaper = clone(&context).map_err(|error| (Stage::Clone, error))?;
        drop(theirs);
        let event = first_event(reaper, &ours);
        if let Some(ReaperEvent::Started(program)) = event {
            return Ok(Self { program, connection: Some(ReaperConnection { reaper, line: ours, slot }) });
        }
        end(reaper);
        if let Some(ReaperEvent::Failed(stage, error)) = event {
            return Err((stage, io::Error::from_raw_os_error(error)));
        }
        Orphans { reaper: None, program: None, line: ours, slot }.end_in_background();
        Err((Stage::Clone, io::Error::other("its reaper process was killed or did not answer")))
    }

    /// The process id of the program.
    pub(in crate::unix) fn id(&self) -> Pid {
        self.program
    }

    /// A file descriptor that is readable once the program has ended.
    pub(in crate::unix) fn exit_file(&self) -> Option<BorrowedFd<'_>> {
        self.connection.as_ref().map(|connection| connection.line.as_fd())
    }

    /// Asks the program's group to end.
    pub(in crate::unix) fn ask(&self) {
        self.command(ReaperCommand::Ask);
    }

    /// Kills the program's group.
    pub(in crate::unix) fn kill(&self) {
        self.command(ReaperCommand::Kill);
    }

    fn command(&self, command: ReaperCommand) {
        if let Some(connection) = &self.connection {
            command.send(&connection.line);
            wake(connection.reaper);
        }
    }

    /// How the program ended, if it has; returned only once.
    pub(in crate::unix) fn reap(&mut self) -> Option<End> {
        let Some(connection) = &self.connection else {
            return Some(End::Lost);
        };
        let end = match ReaperEvent::receive(&connection.line) {
            Incoming::Nothing => return None,
            Incoming::Message(event) => event.end(),
            Incoming::Closed => End::Lost,
        };
        self.shut_down();
        Some(end)
    }

    /// Waits up to this long for the exit, also through signals.
    pub(in crate::unix) fn await_exit(&self, pause: Duration) {
        if let Some(connection) = &self.connection {
            listen(connection.reaper, &connection.line, pause);
        }
    }

    /// Makes the reaper end all remaining descendants, and then itself.
    fn shut_down(&mut self) {
        let Some(ReaperConnection { reaper, line, slot }) = self.connection.take() else {
            return;
        };
        // This also works if another handle of this end is open.
        let _ = shutdown(&line, Shutdown::Write);
        wake(reaper);
        let gone = await_hangup(&line, LAST_WAIT);
        if !gone || !reap(reaper) {
            Orphans { reaper: (!gone).then_some(reaper), program: Some(self.program), line, slot }.end_in_background();
        }
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// Continues a reaper that was stopped.
fn wake(reaper: Pid) {
    let _ = kill_process(reaper, Signal::CONT);
}

/// Our end of a line, and the reaper's end, which is no standard stream.
fn line() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    Ok((ours, clear_of_stdio(theirs)?))
}

/// Makes the process of a reaper.
fn clone(context: &ReaperContext<'_>) -> io::Result<Pid> {
    let stack = Stack::new()?;
    let blocked = BlockedSignals::all();
    // No exit signal, so a wait for "any child" does not meet a reaper. SAFETY: without CLONE_VM the new process runs
    // on its own copy of the stack and of all that `context` points to. `reaper_main` only makes system calls.
    let pid = unsafe { libc::clone(reaper_main, stack.top(), 0, std::ptr::from_ref(context).cast_mut().cast()) };
    let failure = io::Error::last_os_error();
    drop(blocked);
    (pid > 0).then(|| Pid::from_raw(pid)).flatten().ok_or(failure)
}

/// The result of the start, unless the reaper died or did not answer.
fn first_event(reaper: Pid, line: &OwnedFd) -> Option<ReaperEvent> {
    listen(reaper, line, BEGINNING);
    match ReaperEvent::receive(line) {
        Incoming::Message(event) => Some(event),
        Incoming::Nothing | Incoming::Closed => None,
    }
}

/// Waits for an event of a reaper. It continues the reaper repeatedly, because its program may stop it at any moment.
fn listen(reaper: Pid, line: &OwnedFd, patience: Duration) {
    let began = Instant::now();
    while let Some(left) = patience.checked_sub(began.elapsed()) {
        if wait(line, PollFlags::IN, left.min(TURN)) {
            return;
        }
        wake(reaper);
    }
}

/// Waits for the first message of a new process; returns whether it came.
pub(super) fn listen_once(line: &OwnedFd) -> bool {
    wait(line, PollFlags::IN, BEGINNING)
}

/// Waits until the other end is closed, which means that the reaper has exited; returns whether that happened.
pub(super) fn await_hangup(line: &OwnedFd, patience: Duration) -> bool {
    // The kernel reports a hang-up without being asked.
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

/// Kills a reaper that has nothing to do, or does not respond.
pub(super) fn end(reaper: Pid) {
    let _ = kill_process(reaper, Signal::KILL);
    reap(reaper);
}

/// Waits for a reaper that has exited; returns whether it ended all descendants.
pub(super) fn reap(reaper: Pid) -> bool {
    let number = reaper.as_raw_nonzero().get();
    let mut status = 0;
    loop {
        // SAFETY: there is room for the status.
        match unsafe { libc::waitpid(number, &raw mut status, libc::__WALL) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            own => return own == number && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        }
    }
}
