//! The types for a program to run: the job, its limits and its outcome.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::find::is_absolute_only;
use crate::{ProcessBox, SpawnError, absolute_entries};

/// One program to run, with its input and its limits.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Absolute path of the program; there is no search in `PATH` (see [`find_program`](crate::find_program)).
    pub program: PathBuf,
    /// The program's name for itself (`argv[0]`); the path of the program when absent.
    pub arg0: Option<OsString>,
    /// Arguments after the name.
    pub args: Vec<OsString>,
    /// The whole environment except the mark: nothing is inherited. A value of `OLLM_LIFELINE` given here stays in
    /// front of the mark. Empty and relative entries of `PATH` are removed
    /// ([`absolute_entries`](crate::absolute_entries)).
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; that of this process when absent.
    pub cwd: Option<PathBuf>,
    /// Bytes for standard input, which is closed after them.
    pub stdin: Vec<u8>,
    /// Limits of time, output and resources.
    pub limits: Limits,
    /// The box that it runs in, with all its descendants; none when absent.
    pub process_box: Option<Arc<ProcessBox>>,
}

impl Job {
    /// A job without arguments, environment and input, under the default limits.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }

    /// The same job in a box. If the box has a temporary folder, `TMPDIR` names it.
    #[must_use]
    pub fn in_box(mut self, made: ProcessBox) -> Self {
        if let Some(temporary) = made.temporary() {
            self.env.retain(|(name, _)| name != "TMPDIR");
            self.env.push(("TMPDIR".into(), temporary.into()));
        }
        self.process_box = Some(Arc::new(made));
        self
    }

    /// The environment that the program gets. Its `PATH` never leads to the working directory.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&OsStr, Cow<'_, OsStr>)> {
        self.env.iter().filter_map(|(name, value)| {
            let stays = name != "PATH" || is_absolute_only(value);
            Some((&**name, if stays { Cow::Borrowed(&**value) } else { Cow::Owned(absolute_entries(value)?) }))
        })
    }
}

/// Limits of a job. Where a resource limit is `None`, the limit of this process applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time from the start of the spawn to the exit of the program.
    pub timeout: Duration,
    /// Time between the polite and the final signal once the timeout has passed.
    pub grace: Duration,
    /// Time that streams may stay open after the program itself has exited.
    pub drain: Duration,
    /// Bytes kept per output stream; one more byte kills the job.
    pub output: usize,
    /// Processor time per process, rounded up to whole seconds.
    pub cpu: Option<Duration>,
    /// Bytes of address space per process.
    pub memory: Option<u64>,
    /// Processes and threads of the user. The kernel counts all of the user's processes, and does not limit root.
    pub processes: Option<u64>,
    /// Open files per process.
    pub files: Option<u64>,
    /// Bytes of the largest file that may be written.
    pub file_size: Option<u64>,
}

impl Limits {
    /// Whether there is any limit that the kernel must enforce.
    pub(crate) fn bounds_resources(&self) -> bool {
        self.cpu.is_some() || [self.memory, self.processes, self.files, self.file_size].iter().any(Option::is_some)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            grace: Duration::from_millis(500),
            drain: Duration::from_millis(100),
            output: 1024 * 1024,
            cpu: None,
            memory: None,
            processes: None,
            files: None,
            file_size: None,
        }
    }
}

/// How a job ended and what it wrote.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// Bytes of standard output, as written, up to the cap.
    pub stdout: Vec<u8>,
    /// Bytes of standard error, as written, up to the cap.
    pub stderr: Vec<u8>,
    /// A descendant kept a stream open after the program had exited; its later output is missing here.
    pub leaky: bool,
    /// When the spawn began.
    pub started: Instant,
    /// Time from then to this outcome.
    pub elapsed: Duration,
}

impl Outcome {
    /// The outcome of a job that never ran.
    pub(crate) fn not_started(error: SpawnError, started: Instant) -> Self {
        Self::without_run(End::NotStarted(error), started)
    }

    /// The outcome of a job that ended before it began.
    pub(crate) fn without_run(end: End, started: Instant) -> Self {
        let elapsed = started.elapsed();
        Self { end, stdout: Vec::new(), stderr: Vec::new(), leaky: false, started, elapsed }
    }
}

/// The way a job ended.
#[derive(Debug)]
pub enum End {
    /// The program exited with this code.
    Exited(i32),
    /// The program died from a signal that we did not send.
    Signalled(i32),
    /// The deadline passed, so the group was signalled to end.
    TimedOut,
    /// This process was asked to end. The group was signalled to end, or the program was not even started.
    Interrupted,
    /// A stream exceeded its cap, so the group was killed.
    Overflowed(Stream),
    /// The program ended, but other code took its exit status: our process ignores `SIGCHLD`, or waits for any child.
    Lost,
    /// The program never ran.
    NotStarted(SpawnError),
}

/// An output stream of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}
