//! A new process that borrows our memory and waits with us until it becomes the program.
//!
//! `fork` copies the page tables, which costs more the more memory we use. Here parent and child share memory, and the
//! parent sleeps until the child has called `execve` or `_exit`, as in `vfork`. Unlike `posix_spawn`, this allows
//! setting the parent-death signal, the limits and the guard's entry in the child.

use std::cell::Cell;
use std::convert::Infallible;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use libc::{CLONE_PIDFD, c_char, c_int, c_uint, c_ulong, c_void, pid_t};
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, WaitId, WaitIdOptions, getcwd, getpid, getrlimit, setrlimit, waitid};

use super::box_enter::BoxEntry;
use super::box_streams::{OuterStream, outer_streams};
use super::guard::{Guard, Slot};
use super::mark;
use super::memory::Stack;
use super::signals;
use super::vfork::vfork;
use crate::unix::Started;
use crate::unix::leader::Leader;
use crate::unix::pipes::{Pipes, Streams};
use crate::{Job, Limits, Stage};

/// The exit code of a child that did not become its program; it is never reported.
const NOT_STARTED: c_int = 127;

/// Starts programs, one after the other, on one stack.
#[derive(Debug)]
pub(in crate::unix) struct Launcher {
    stack: Stack,
    /// Signals that programs would not get with their default action.
    signals: Vec<c_int>,
}

impl Launcher {
    pub(in crate::unix) fn new() -> io::Result<Self> {
        Ok(Self { stack: Stack::new()?, signals: signals::to_reset() })
    }

    /// Starts the program of a job as the leader of a new, guarded group.
    pub(in crate::unix) fn launch(&self, job: &Job, pipes: &Pipes, guard: &Arc<Guard>) -> Started<Leader> {
        let slot = guard.register().map_err(|error| (Stage::Guard, error))?;
        let words = ExecArguments::new(job, &slot).map_err(|error| (Stage::Arguments, error))?;
        let (pid, pidfd) = self.start(&self.plan(&words, job, &slot, Some(pipes)))?;
        Ok(Leader { pid, pidfd, gone: false, slot: Some(slot) })
    }

    /// Starts the program of a job in our own group, on our own streams and terminal.
    pub(in crate::unix) fn attach(&self, job: &Job, guard: &Arc<Guard>) -> Started<Leader> {
        let slot = guard.register().map_err(|error| (Stage::Guard, error))?;
        let mut words = ExecArguments::new(job, &slot).map_err(|error| (Stage::Arguments, error))?;
        words.streams = job.process_box.iter().flat_map(|made| outer_streams(made.rules())).collect();
        let (pid, pidfd) = self.start(&self.plan(&words, job, &slot, None))?;
        Ok(Leader { pid, pidfd, gone: false, slot: Some(slot) })
    }

    /// Everything that a new process needs to become the program; without pipes it shares our streams and our session.
    pub(super) fn plan<'a>(
        &'a self,
        words: &'a ExecArguments,
        job: &'a Job,
        slot: &'a Slot,
        pipes: Option<&Pipes>,
    ) -> Plan<'a> {
        Plan {
            program: words.program.as_ptr(),
            argv: words.argv.pointers.as_ptr(),
            envp: words.envp.pointers.as_ptr(),
            cwd: words.cwd.as_ref().map_or(ptr::null(), |cwd| cwd.as_ptr()),
            files: pipes.map_or([0, 1, 2], |pipes| numbers(&pipes.theirs)),
            attached: pipes.is_none(),
            streams: &words.streams,
            limits: &words.limits,
            box_entry: job.process_box.as_ref().map(|made| made.inner.entry()),
            slot,
            signals: &self.signals,
            failure: Cell::new(None),
        }
    }

    /// Starts the program as a child of the calling process, which may be a new one. It allocates nothing.
    pub(super) fn start(&self, plan: &Plan<'_>) -> Started<(Pid, Option<OwnedFd>)> {
        let parent = getpid().as_raw_nonzero().get();
        let (pid, pidfd) = self.clone(&CloneContext { plan, parent }).map_err(|error| (Stage::Clone, error))?;
        let Some((stage, errno)) = plan.failure.get() else {
            return Ok((pid, pidfd));
        };
        plan.slot.spare(pid);
        while let Err(Errno::INTR) = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED) {}
        Err((stage, io::Error::from_raw_os_error(errno)))
    }

    /// Returns once the child has become its program, or has failed to.
    fn clone(&self, birth: &CloneContext<'_>) -> io::Result<(Pid, Option<OwnedFd>)> {
        match self.clone_with(birth, CLONE_PIDFD) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {
                self.clone_with(birth, 0)
            }
            result => result,
        }
    }

    fn clone_with(&self, birth: &CloneContext<'_>, flags: c_int) -> io::Result<(Pid, Option<OwnedFd>)> {
        // SAFETY: `become_program` uses only its stack and the values that `birth` points to, and never returns; all of
        // that outlives the call.
        unsafe { vfork(&self.stack, become_program, ptr::from_ref(birth).cast_mut().cast(), flags) }
    }
}

/// The values for the child.
struct CloneContext<'a> {
    plan: &'a Plan<'a>,
    parent: pid_t,
}

/// Everything that the child needs, prepared before it exists.
pub(super) struct Plan<'a> {
    program: *const c_char,
    argv: *const *const c_char,
    envp: *const *const c_char,
    /// Null to keep the present working directory.
    cwd: *const c_char,
    pub(super) files: [RawFd; 3],
    /// Whether it stays in our session, group and terminal.
    attached: bool,
    /// Our streams that must be reopened in its box.
    streams: &'a [OuterStream],
    limits: &'a [(Resource, Rlimit)],
    box_entry: Option<BoxEntry<'a>>,
    pub(super) slot: &'a Slot,
    signals: &'a [c_int],
    /// The stage that failed in the child, and its error number.
    failure: Cell<Option<(Stage, i32)>>,
}

impl Plan<'_> {
    /// The files that the program needs to enter its box.
    pub(super) fn box_files(&self) -> impl Iterator<Item = RawFd> {
        self.box_entry.iter().flat_map(BoxEntry::files).flatten()
    }
}

/// The first and last steps of the child in our memory.
extern "C" fn become_program(birth: *mut c_void) -> c_int {
    // SAFETY: `Launcher::clone_with` passes a `CloneContext` that outlives the child's stay in our memory.
    let CloneContext { plan, parent } = unsafe { &*birth.cast::<CloneContext<'_>>() };
    // SAFETY: this is the new process, alone on its stack.
    let Err(failure) = unsafe { prepare_and_exec(plan, *parent) };
    plan.failure.set(Some(failure));
    // SAFETY: ends the new process without running anything of ours.
    unsafe { libc::_exit(NOT_STARTED) }
}

/// Returns only if a step failed.
///
/// # Safety
///
/// Changes the whole process for good: only for a new one.
unsafe fn prepare_and_exec(plan: &Plan<'_>, parent: pid_t) -> Result<Infallible, (Stage, i32)> {
    // SAFETY: as the caller promised; all are system calls on arguments that are valid while `plan` is.
    unsafe {
        // A new session comes with a new group, and without our terminal. So the program can neither read what a person
        // types there, nor type in their place.
        let session = if plan.attached { libc::getpid() } else { libc::setsid() };
        check(Stage::Clone, session)?;
        // The group's id is that of its leading process.
        plan.slot.enter(session);
        check(Stage::Clone, libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong))?;
        if libc::getppid() != parent {
            // The parent died before the line above could tie us to it.
            libc::_exit(NOT_STARTED);
        }
        for (target, file) in (0..).zip(plan.files) {
            check(Stage::Pipe, libc::dup2(file, target))?;
        }
        // The program must not get files of ours without the close-on-exec flag, inherited or foreign. Kernels without
        // this call leave them open.
        libc::syscall(libc::SYS_close_range, 3, c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
        let in_box = |error| (Stage::Box, error);
        plan.box_entry.as_ref().map_or(Ok(()), |entry| entry.join()).map_err(in_box)?;
        for stream in plan.streams {
            stream.reopen().map_err(|error| in_box(error.raw_os_error()))?;
        }
        if !plan.cwd.is_null() {
            check(Stage::Chdir, libc::chdir(plan.cwd))?;
        }
        for (resource, limit) in plan.limits {
            setrlimit(*resource, *limit).map_err(|error| (Stage::Limits, error.raw_os_error()))?;
        }
        plan.box_entry.as_ref().map_or(Ok(()), |entry| entry.seal()).map_err(in_box)?;
        signals::reset(plan.signals);
        libc::execve(plan.program, plan.argv, plan.envp);
        Err((Stage::Exec, last_error()))
    }
}

fn check(stage: Stage, result: c_int) -> Result<(), (Stage, i32)> {
    if result == -1 {
        return Err((stage, last_error()));
    }
    Ok(())
}

/// The error number of the call that has just failed.
fn last_error() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Arguments, environment and limits of a job in the form that the kernel takes.
pub(super) struct ExecArguments {
    program: CString,
    argv: List,
    envp: List,
    cwd: Option<CString>,
    limits: Vec<(Resource, Rlimit)>,
    /// Empty if the program gets pipes as its streams.
    streams: Vec<OuterStream>,
}

impl ExecArguments {
    pub(super) fn new(job: &Job, slot: &Slot) -> io::Result<Self> {
        if !job.program.is_absolute() {
            return Err(invalid("the path of the program is not absolute"));
        }
        let program = word(job.program.as_os_str(), "the path of the program")?;
        let name = job.arg0.as_deref().unwrap_or(job.program.as_os_str());
        let argv: Vec<_> = [name]
            .into_iter()
            .chain(job.args.iter().map(|argument| &**argument))
            .map(|argument| word(argument, "an argument"))
            .collect::<io::Result<_>>()?;
        let mut envp = Vec::with_capacity(job.env.len() + 2);
        let mut passed_on = None;
        for (name, value) in job.environment() {
            if name == mark::VARIABLE {
                passed_on = passed_on.or(Some(value));
            } else {
                envp.push(variable(name, &value)?);
            }
        }
        envp.push(CString::new(slot.variable(passed_on.as_deref()))?);
        // A program that enters a box starts at the root of the box.
        let cwd = match &job.cwd {
            None if job.process_box.is_some() => Some(Ok(getcwd(Vec::new())?)),
            cwd => cwd.as_ref().map(|cwd| word(cwd.as_os_str(), "the working directory")),
        };
        let (argv, envp) = (List::new(argv), List::new(envp));
        Ok(Self { program, argv, envp, cwd: cwd.transpose()?, limits: kernel_limits(&job.limits), streams: Vec::new() })
    }
}

fn word(text: &OsStr, what: &str) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| invalid(&format!("{what} contains a NUL byte")))
}

fn variable(name: &OsStr, value: &OsStr) -> io::Result<CString> {
    if name.is_empty() || name.as_bytes().contains(&b'=') {
        return Err(invalid(&format!("`{}` cannot be the name of an environment variable", name.display())));
    }
    // The additional byte is for the zero at the end.
    let mut pair = Vec::with_capacity(name.len() + value.len() + 2);
    pair.extend_from_slice(name.as_bytes());
    pair.push(b'=');
    pair.extend_from_slice(value.as_bytes());
    CString::new(pair).map_err(|_| invalid("an environment variable contains a NUL byte"))
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}

/// Strings, with pointers to all of them and a final null pointer.
struct List {
    pointers: Vec<*const c_char>,
    _words: Vec<CString>,
}

impl List {
    fn new(words: Vec<CString>) -> Self {
        Self { pointers: words.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect(), _words: words }
    }
}

fn numbers(ends: &Streams) -> [RawFd; 3] {
    [&ends.stdin, &ends.stdout, &ends.stderr].map(AsRawFd::as_raw_fd)
}

/// The limits for the kernel, none above our own maximum. A limited program dumps no core.
fn kernel_limits(limits: &Limits) -> Vec<(Resource, Rlimit)> {
    if !limits.bounds_resources() {
        return Vec::new();
    }
    let bounds = [
        (Resource::Cpu, limits.cpu.map(whole_seconds)),
        (Resource::As, limits.memory),
        (Resource::Nproc, limits.processes),
        (Resource::Nofile, limits.files),
        (Resource::Fsize, limits.file_size),
        (Resource::Core, Some(0)),
    ];
    bounds
        .into_iter()
        .filter_map(|(resource, bound)| Some((resource, bound?)))
        .map(|(resource, bound)| (resource, kernel_limit(resource, bound)))
        .collect()
}

fn kernel_limit(resource: Resource, bound: u64) -> Rlimit {
    // The first second over the limit sends SIGXCPU, which can be caught; the next one kills.
    let hard = if resource == Resource::Cpu { bound.saturating_add(1) } else { bound };
    let ours = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    Rlimit { current: Some(bound.min(ours)), maximum: Some(hard.min(ours)) }
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0)).max(1)
}
