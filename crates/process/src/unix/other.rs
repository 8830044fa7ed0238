//! The implementation for Unix systems other than Linux: the standard library's spawn, in a separate group.
//!
//! Untested. Not provided: guard, boxes, the mark by which descendants are found, parent-death signal, resource limits,
//! adoption of descendants, and held-back signals. The signal set-up is reset only as far as the standard library does
//! it. Only files with the close-on-exec flag are kept from the program.

#![expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "signatures are those of the Linux twin")]

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::Started;
use super::leader::Leader;
use super::pipes::Pipes;
use crate::{BoxMeans, BoxRules, End, Job, Stage};

/// Stands for the memory that the Linux guard starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardMemory {
    Own,
    Shared,
}

/// The variable by which the guard of the Linux twin finds descendants.
pub(super) const MARK_VARIABLE: &str = "OLLM_LIFELINE";

/// Stands for the memory that the Linux guard starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardMemory {
    Own,
    Shared,
}

/// No guard: groups outlive us if we are killed.
#[derive(Debug)]
pub(super) struct Guard;

impl Guard {
    pub(super) fn start(_: GuardMemory) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self))
    }

    pub(super) fn end_all(&self) {}

    pub(super) fn settle(&self, _: u64) {}
}

/// A file that holds these bytes, to be read from their start.
pub(super) fn filled(bytes: &[u8]) -> io::Result<Stdio> {
    let (reader, mut writer) = io::pipe()?;
    let bytes = bytes.to_vec();
    // We do not wait for the reader, which may be slow or end early.
    std::thread::Builder::new().spawn(move || io::Write::write_all(&mut writer, &bytes))?;
    Ok(reader.into())
}

/// Stands for a place in a guard's table.
#[derive(Debug)]
pub(super) struct Slot;

impl Slot {
    pub(super) fn separate_guard(&self) {}

    pub(super) fn spare(&self, _: Pid) {}
}

/// A long-running program without a reaper: descendants that left its group live on. Dropped, its group is killed.
#[derive(Debug)]
pub(super) struct Reaper(Leader);

impl Reaper {
    pub(super) fn start(launcher: &Launcher, job: &Job, pipes: &Pipes, guard: &Arc<Guard>) -> Started<Self> {
        launcher.launch(job, pipes, guard).map(Self)
    }

    pub(super) fn id(&self) -> Pid {
        self.0.pid
    }

    pub(super) fn exit_file(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    pub(super) fn ask(&self) {
        // A stopped process reacts only to both signals together.
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    pub(super) fn reap(&mut self) -> Option<End> {
        if self.0.slot.is_none() {
            return Some(End::Lost);
        }
        if !self.0.exited() {
            return None;
        }
        self.kill();
        self.0.reap()
    }

    pub(super) fn await_exit(&self, pause: Duration) {
        self.0.await_exit(pause);
    }

    /// Signals the group, unless the program is reaped: then another group may have its id.
    fn signal(&self, signal: Signal) {
        if self.0.slot.is_some() {
            self.0.signal_group(signal);
        }
    }
}

/// The Rust runtime ignores `SIGPIPE`; a program that undoes this is ended by a child that closes its input.
#[derive(Debug)]
pub struct PipeShield;

impl PipeShield {
    /// Nothing to raise on this system.
    pub fn raise() -> Self {
        Self
    }

    /// There is nothing to raise.
    pub fn is_needed() -> bool {
        false
    }
}

/// Signals end this process as usual.
#[derive(Debug)]
pub struct SignalShield;

impl SignalShield {
    /// Nothing to raise on this system.
    pub fn raise() -> Self {
        Self
    }
}

/// No signal is held back.
#[derive(Debug)]
pub(super) enum HeldSignals {}

impl HeldSignals {
    pub(super) fn hold() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        match *self {}
    }

    pub(super) fn came(&self) -> bool {
        match *self {}
    }

    pub(super) fn take(&self) {
        match *self {}
    }
}

/// No signal is passed on: a signal that ends us leaves the program running.
#[derive(Debug)]
pub(super) struct PassedSignals;

impl PassedSignals {
    pub(super) fn hold() -> Self {
        Self
    }
}

/// Waits for the end of a program.
pub(super) fn await_end(mut leader: Leader, _: &PassedSignals) -> End {
    const ASKING: Duration = Duration::from_millis(20);
    loop {
        if let Some(end) = leader.reap() {
            return end;
        }
        leader.await_exit(ASKING);
    }
}

/// This system has no box.
#[derive(Debug)]
pub(crate) enum PlatformBox {}

impl PlatformBox {
    pub(crate) fn landlock_version() -> Option<i64> {
        None
    }

    pub(crate) fn new(_: BoxMeans, _: &BoxRules) -> Result<(Self, Vec<String>), String> {
        Err("this system has neither namespaces nor Landlock".to_owned())
    }

    pub(crate) fn temporary(&self) -> Option<&std::path::Path> {
        match *self {}
    }

    pub(crate) fn accesses(&self) -> Vec<crate::WatchedAccess> {
        match *self {}
    }
}

/// Starts programs through the standard library.
#[derive(Debug)]
pub(super) struct Launcher;

impl Launcher {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Starts the program of a job as the leader of a new group.
    pub(super) fn launch(&self, job: &Job, pipes: &Pipes, _: &Arc<Guard>) -> Started<Leader> {
        let mut command = command(job)?;
        command.process_group(0);
        command
            .stdin(stdio(&pipes.theirs.stdin)?)
            .stdout(stdio(&pipes.theirs.stdout)?)
            .stderr(stdio(&pipes.theirs.stderr)?);
        started(command)
    }

    /// Starts the program of a job in our own group, on our own streams and terminal.
    pub(super) fn attach(&self, job: &Job, _: &Arc<Guard>) -> Started<Leader> {
        started(command(job)?)
    }
}

fn command(job: &Job) -> Started<Command> {
    if job.limits.bounds_resources() {
        return Err((Stage::Limits, io::ErrorKind::Unsupported.into()));
    }
    if !job.program.is_absolute() {
        return Err((Stage::Arguments, io::ErrorKind::InvalidInput.into()));
    }
    let mut command = Command::new(&job.program);
    command.args(&job.args).env_clear().envs(job.environment());
    command.arg0(job.arg0.as_ref().unwrap_or(&job.program.clone().into_os_string()));
    if let Some(cwd) = &job.cwd {
        cwd.metadata().map_err(|error| (Stage::Chdir, error))?;
        command.current_dir(cwd);
    }
    Ok(command)
}

fn started(mut command: Command) -> Started<Leader> {
    let child = command.spawn().map_err(|error| (Stage::Exec, error))?;
    Ok(Leader { pid: Pid::from_child(&child), pidfd: None, gone: false, slot: Some(Slot) })
}

fn stdio(end: &OwnedFd) -> Result<Stdio, (Stage, io::Error)> {
    end.try_clone().map(Stdio::from).map_err(|error| (Stage::Pipe, error))
}

/// Our files have the close-on-exec flag, except inherited ones without it.
pub(super) fn keep_files() {}

/// No signal was held back.
pub(super) fn let_signals_through() {}

/// This system adopts no descendants.
pub(super) fn reap_adopted() {}

/// This system adopts no descendants.
pub(super) fn kill_adopted(_: impl Fn(Pid) -> bool) -> (usize, bool) {
    (0, false)
}

/// This system adopts no descendants.
pub(crate) fn adopt_from_first_start() {}

/// This system does not allow a process to do so.
pub(crate) fn hide_memory() {}

/// There is none: this system has no guards.
pub(super) fn idle_guards() -> Vec<(Arc<Guard>, u64)> {
    Vec::new()
}

/// Whether this may be the input of a released job; this system cannot distinguish it from any other pipe.
pub fn is_released(_: impl std::os::fd::AsFd) -> bool {
    true
}
