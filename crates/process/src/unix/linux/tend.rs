//! The life of a keeper, in a process of its own: it starts the program, adopts whoever comes of it, and ends them all.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

use libc::{c_int, c_ulong, c_void};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::read;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::blank::blank;
use super::cull::kill_children;
use super::files::keep_only;
use super::guard::spare;
use super::news::{Heard, News, Order};
use super::shed::shed;
use super::signals;
use super::spawn::{Launcher, Plan};
use crate::Stage;
use crate::unix::Started;

/// What process lists call a keeper.
const NAME: &[u8; 16] = b"children-keeper\0";
/// How long it fights those who keep coming, and waits for those who do not go. Nobody else knows them, so it is long.
pub(super) const BOUND: Duration = Duration::from_mins(1);
/// After so long the program's end is told although there is somebody left, and there is no hurry any more.
const HURRY: Duration = Duration::from_millis(200);
/// How long it waits for somebody to go before it strikes again; while there is hurry, and after that.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(5)];
/// The length of what the kernel tells of one signal.
const NOTE: usize = size_of::<libc::signalfd_siginfo>();

/// What a keeper is given.
pub(super) struct Duty<'a> {
    pub(super) launcher: &'a Launcher,
    pub(super) plan: &'a Plan<'a>,
    /// Its end of the line; no standard stream.
    pub(super) line: RawFd,
}

/// The life of a keeper. All signals are blocked from before its birth, so only `SIGKILL` ends it early.
pub(super) extern "C" fn tend(duty: *mut c_void) -> c_int {
    // SAFETY: `Keeper::start` passes a `Duty` whose copy is valid until memory is given back.
    let duty = unsafe { &*duty.cast::<Duty<'_>>() };
    // SAFETY: this is a new process, and the line is its own.
    let line = unsafe {
        settle(duty);
        OwnedFd::from_raw_fd(duty.line)
    };
    match begin(duty) {
        Ok((program, bell)) => {
            let place = duty.plan.slot.place().map(ptr::from_ref);
            // SAFETY: the files are nobody else's. From here on nothing is used of what we had but the place, which lies in
            // shared memory and stays; the rest is on this stack.
            let place = unsafe {
                leave(duty.plan.files);
                News::Started(program).tell(&line);
                shed(&[(&raw const line).addr(), libc::__errno_location().addr()]);
                place.map(|place| &*place)
            };
            blank(NAME);
            Brood { program, place, line, bell, end: None, told: false }.keep()
        }
        Err((stage, error)) => {
            News::Failed(stage, error.raw_os_error().unwrap_or(0)).tell(&line);
            exit()
        }
    }
}

/// Ends this process without running anything of ours. Its end of the line is not closed before: once that is, we wait for
/// the process, and nobody may stop it in between.
fn exit() -> ! {
    // SAFETY: a plain system call.
    unsafe { libc::_exit(0) }
}

/// Makes a new process a keeper. What fails here is not missed, or shows when the program starts.
///
/// # Safety
///
/// Changes the whole process for good: only for a new one.
unsafe fn settle(duty: &Duty<'_>) {
    // SAFETY: as the caller promised; all are plain system calls on valid arguments.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as c_ulong);
        // Where somebody has stopped it, our death is to wake it.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT as c_ulong);
        let [stdin, stdout, stderr] = duty.plan.files;
        keep_only(&mut [duty.line, stdin, stdout, stderr]);
    }
    signals::keep_exit_statuses();
}

/// Leaves the streams to the program, and our folder to whoever wants to remove it.
///
/// # Safety
///
/// Only for a process whose files nobody else uses.
unsafe fn leave(files: [RawFd; 3]) {
    // SAFETY: as the caller promised; all are plain system calls.
    unsafe {
        for file in files {
            libc::close(file);
        }
        libc::chdir(c"/".as_ptr());
    }
}

/// Starts the program; with its number comes a file that is readable when a child has ended.
fn begin(duty: &Duty<'_>) -> Started<(Pid, OwnedFd)> {
    let set = signals::only(libc::SIGCHLD);
    // SAFETY: the set is valid, and a new file is asked for.
    let bell = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if bell == -1 {
        return Err((Stage::Clone, io::Error::last_os_error()));
    }
    // SAFETY: the kernel has just made this file for us.
    let bell = unsafe { OwnedFd::from_raw_fd(bell) };
    duty.launcher.start(duty.plan).map(|(program, _)| (program, bell))
}

/// The program, and whoever came of it.
struct Brood<'a> {
    program: Pid,
    /// The guard's note of the program's group.
    place: Option<&'a AtomicI32>,
    line: OwnedFd,
    /// Readable when a child has ended.
    bell: OwnedFd,
    /// How the program ended, once it is reaped.
    end: Option<News>,
    told: bool,
}

impl Brood<'_> {
    /// Keeps them until the program has ended, or nobody is at the other end of the line; then ends them.
    fn keep(mut self) -> ! {
        while self.reap() && self.end.is_none() {
            match Order::hear(&self.line) {
                Heard::Nothing => self.rest(),
                Heard::Message(Order::Ask) => {
                    // A stopped process takes no signal but this pair.
                    self.signal(Signal::TERM);
                    self.signal(Signal::CONT);
                }
                Heard::Message(Order::Kill) => self.signal(Signal::KILL),
                Heard::Silence => break,
            }
        }
        self.signal(Signal::KILL);
        self.cull();
        self.tell();
        exit()
    }

    /// Kills everybody until nobody is left. Whom we may not kill is not fought.
    fn cull(&mut self) {
        let began = Instant::now();
        while self.reap() && began.elapsed() < BOUND {
            let struck = kill_children();
            let [soon, late] = PAUSES;
            if began.elapsed() < HURRY {
                self.pause(soon);
            } else if struck {
                self.tell();
                self.pause(late);
            } else {
                return;
            }
        }
    }

    /// Signals the program's group, as long as that is its own.
    fn signal(&self, signal: Signal) {
        if self.end.is_none() {
            let _ = kill_process_group(self.program, signal);
        }
    }

    /// Tells how the program ended, if it has; once.
    fn tell(&mut self) {
        if let Some(end) = self.end.filter(|_| !self.told) {
            end.tell(&self.line);
            self.told = true;
        }
    }

    /// Reaps whoever has ended; whether anybody is left.
    fn reap(&mut self) -> bool {
        // Before the look, so that whoever ends after it is told of again.
        let _ = read(&self.bell, &mut [0; NOTE]);
        loop {
            let (pid, how) = match first_ended() {
                Ok(Some(child)) => child,
                Ok(None) => return true,
                Err(Nobody) => return false,
            };
            if pid == self.program && self.end.is_none() {
                // Its number is its own until it is reaped below, and nobody signals by it after that.
                self.signal(Signal::KILL);
                self.place.inspect(|place| spare(place, pid));
                self.end = Some(how);
            }
            if !matches!(waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG), Ok(Some(_))) {
                return true;
            }
        }
    }

    /// Waits for the end of a child or an order.
    fn rest(&self) {
        let _ = poll(&mut [PollFd::new(&self.bell, PollFlags::IN), PollFd::new(&self.line, PollFlags::IN)], None);
    }

    /// Waits for the end of a child, for a while.
    fn pause(&self, limit: Duration) {
        let limit = Timespec::try_from(limit).unwrap_or_default();
        let _ = poll(&mut [PollFd::new(&self.bell, PollFlags::IN)], Some(&limit));
    }
}

/// There is no child.
struct Nobody;

/// A child that has ended, and how; it stays unreaped.
fn first_ended() -> Result<Option<(Pid, News)>, Nobody> {
    // SAFETY: all zeros are a valid value of this plain structure.
    let mut told: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: there is room for what is told.
    if unsafe { libc::waitid(libc::P_ALL, 0, &raw mut told, options) } == -1 {
        return Err(Nobody);
    }
    // SAFETY: the call has filled in both numbers, or left them zero.
    let (pid, status) = unsafe { (told.si_pid(), told.si_status()) };
    let how = if told.si_code == libc::CLD_EXITED { News::Exited(status) } else { News::Signalled(status) };
    Ok(Pid::from_raw(pid).map(|pid| (pid, how)))
}
