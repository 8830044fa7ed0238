//! The code of a reaper process: it starts the program, adopts its descendants, and ends them all.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

use libc::{c_int, c_ulong, c_void};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::read;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::box_enter::BOX_FILES;
use super::clear_cmdline::clear_cmdline;
use super::files::keep_only;
use super::guard::spare;
use super::kill_children::kill_children;
use super::reaper_protocol::{Incoming, ReaperCommand, ReaperEvent};
use super::release_memory::release_memory;
use super::signals;
use super::spawn::{Launcher, Plan};
use crate::Stage;
use crate::unix::Started;

/// The reaper's name in process lists.
const NAME: &[u8; 16] = b"children-reaper\0";
/// How long it kills children that keep appearing. It is long, because no other process knows them.
pub(super) const BOUND: Duration = Duration::from_mins(1);
/// After this time it reports the program's end although descendants are left, and kills less often.
const HURRY: Duration = Duration::from_millis(200);
/// How long it waits for an exit before it kills again: during the first moments, and after them.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(5)];
/// The size of the kernel's record of one signal.
const NOTE: usize = size_of::<libc::signalfd_siginfo>();

/// The values that a reaper needs.
pub(super) struct ReaperContext<'a> {
    pub(super) launcher: &'a Launcher,
    pub(super) plan: &'a Plan<'a>,
    /// Its end of the line; never a standard stream.
    pub(super) line: RawFd,
}

/// The main function of a reaper. All signals are blocked before it starts, so only `SIGKILL` ends it early.
pub(super) extern "C" fn reaper_main(context: *mut c_void) -> c_int {
    // SAFETY: `Reaper::start` passes a `ReaperContext` whose copy is valid until memory is given back.
    let context = unsafe { &*context.cast::<ReaperContext<'_>>() };
    // SAFETY: this is a new process, and the line is its own.
    let line = unsafe {
        settle(context);
        OwnedFd::from_raw_fd(context.line)
    };
    match begin(context) {
        Ok((program, child_exits)) => {
            let place = context.plan.slot.place().map(ptr::from_ref);
            // SAFETY: no other code uses the files. From here on nothing is used of what we had but the place, which
            // lies in shared memory and stays. The rest is on this stack.
            let place = unsafe {
                leave(context.plan.files);
                ReaperEvent::Started(program).send(&line);
                release_memory(&[(&raw const line).addr(), libc::__errno_location().addr()]);
                place.map(|place| &*place)
            };
            clear_cmdline(NAME);
            ReaperLoop { program, place, line, child_exits, end: None, told: false }.run()
        }
        Err((stage, error)) => {
            ReaperEvent::Failed(stage, error.raw_os_error().unwrap_or(0)).send(&line);
            exit()
        }
    }
}

/// Exits without running any destructor. Its end of the line stays open until then. The owner waits for this process
/// once the line is closed; a stop of this process in between would make it wait forever.
fn exit() -> ! {
    // SAFETY: a plain system call.
    unsafe { libc::_exit(0) }
}

/// Makes a new process a reaper. A failure here either does not matter or shows when the program starts.
///
/// # Safety
///
/// Changes the whole process for good: only for a new one.
unsafe fn settle(context: &ReaperContext<'_>) {
    // SAFETY: as the caller promised; all are plain system calls on valid arguments.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as c_ulong);
        // A stopped reaper continues when we die.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT as c_ulong);
        let [stdin, stdout, stderr] = context.plan.files;
        // If this process was started without standard streams, none of these files has such a number.
        let mut kept = [stdin; 4 + BOX_FILES];
        let files = [context.line, stdin, stdout, stderr].into_iter().chain(context.plan.box_files());
        for (place, file) in kept.iter_mut().zip(files) {
            *place = file;
        }
        keep_only(&mut kept);
    }
    signals::keep_exit_statuses();
}

/// Closes the streams of the program, and leaves our working directory so that it can be removed.
///
/// # Safety
///
/// Only for a process that uses none of these files.
unsafe fn leave(files: [RawFd; 3]) {
    // SAFETY: as the caller promised; all are plain system calls.
    unsafe {
        for file in files {
            libc::close(file);
        }
        libc::chdir(c"/".as_ptr());
    }
}

/// Starts the program. Returns its id, and a file descriptor that is readable when a child has ended.
fn begin(context: &ReaperContext<'_>) -> Started<(Pid, OwnedFd)> {
    let set = signals::only(libc::SIGCHLD);
    // SAFETY: the set is valid, and a new file is asked for.
    let child_exits = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if child_exits == -1 {
        return Err((Stage::Clone, io::Error::last_os_error()));
    }
    // SAFETY: the kernel has just made this file for us.
    let child_exits = unsafe { OwnedFd::from_raw_fd(child_exits) };
    context.launcher.start(context.plan).map(|(program, _)| (program, child_exits))
}

/// The program and its descendants.
struct ReaperLoop<'a> {
    program: Pid,
    /// The entry of the program's group in the guard's table.
    place: Option<&'a AtomicI32>,
    line: OwnedFd,
    /// Readable when a child has ended.
    child_exits: OwnedFd,
    /// How the program ended, after it is reaped.
    end: Option<ReaperEvent>,
    told: bool,
}

impl ReaperLoop<'_> {
    /// Waits until the program has ended or our end of the line is closed; then ends all descendants.
    fn run(mut self) -> ! {
        while self.reap() && self.end.is_none() {
            match ReaperCommand::receive(&self.line) {
                Incoming::Nothing => self.rest(),
                Incoming::Message(ReaperCommand::Ask) => {
                    // A stopped process reacts only to both signals together.
                    self.signal(Signal::TERM);
                    self.signal(Signal::CONT);
                }
                Incoming::Message(ReaperCommand::Kill) => self.signal(Signal::KILL),
                Incoming::Closed => break,
            }
        }
        self.signal(Signal::KILL);
        self.kill_all();
        self.tell();
        exit()
    }

    /// Kills all children until none is left. Gives up on children that we may not kill.
    fn kill_all(&mut self) {
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

    /// Signals the program's group, as long as its id is valid.
    fn signal(&self, signal: Signal) {
        if self.end.is_none() {
            let _ = kill_process_group(self.program, signal);
        }
    }

    /// Reports how the program ended, if it has; only once.
    fn tell(&mut self) {
        if let Some(end) = self.end.filter(|_| !self.told) {
            end.send(&self.line);
            self.told = true;
        }
    }

    /// Reaps all children that have exited; returns whether any is left.
    fn reap(&mut self) -> bool {
        // This comes before the check, so that a later exit makes the file descriptor readable again.
        let _ = read(&self.child_exits, &mut [0; NOTE]);
        loop {
            let (pid, how) = match first_ended() {
                Ok(Some(child)) => child,
                Ok(None) => return true,
                Err(NoChild) => return false,
            };
            if pid == self.program && self.end.is_none() {
                // Its id is valid until it is reaped below, and no signal is sent to that id afterwards.
                self.signal(Signal::KILL);
                self.place.inspect(|place| spare(place, pid));
                self.end = Some(how);
            }
            if !matches!(waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG), Ok(Some(_))) {
                return true;
            }
        }
    }

    /// Waits for the end of a child or a command.
    fn rest(&self) {
        let _ =
            poll(&mut [PollFd::new(&self.child_exits, PollFlags::IN), PollFd::new(&self.line, PollFlags::IN)], None);
    }

    /// Waits up to this long for the end of a child.
    fn pause(&self, limit: Duration) {
        let limit = Timespec::try_from(limit).unwrap_or_default();
        let _ = poll(&mut [PollFd::new(&self.child_exits, PollFlags::IN)], Some(&limit));
    }
}

/// There are no children.
struct NoChild;

/// A child that has ended, and how. It stays unreaped.
fn first_ended() -> Result<Option<(Pid, ReaperEvent)>, NoChild> {
    // SAFETY: all zeros are a valid value of this plain structure.
    let mut told: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: there is room for what is told.
    if unsafe { libc::waitid(libc::P_ALL, 0, &raw mut told, options) } == -1 {
        return Err(NoChild);
    }
    // SAFETY: the call has filled in both numbers, or left them zero.
    let (pid, status) = unsafe { (told.si_pid(), told.si_status()) };
    let how =
        if told.si_code == libc::CLD_EXITED { ReaperEvent::Exited(status) } else { ReaperEvent::Signalled(status) };
    Ok(Pid::from_raw(pid).map(|pid| (pid, how)))
}
