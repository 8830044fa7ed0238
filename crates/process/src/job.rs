//! What to run, within which bounds, and how it ended.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::find::is_absolute_only;
use crate::{ProcessBox, SpawnError, absolute_entries};

/// One program to run: what it is given and what it may use.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Absolute path of the program; there is no search in `PATH` (see [`find_program`](crate::find_program)).
    pub program: PathBuf,
    /// The program's name for itself; the path of the program when absent.
    pub arg0: Option<OsString>,
    /// Arguments after the name.
    pub args: Vec<OsString>,
    /// The whole environment but for the mark: nothing is inherited. What `OLLM_LIFELINE` says here stays in front of it.
    /// Empty and relative entries of `PATH` are left out ([`absolute_entries`](crate::absolute_entries)).
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; ours when absent.
    pub cwd: Option<PathBuf>,
    /// Bytes for standard input, which is closed after them.
    pub stdin: Vec<u8>,
    /// Bounds of time, output and resources.
    pub limits: Limits,
    /// The box that it runs in, with all its descendants; none when absent.
    pub process_box: Option<Arc<ProcessBox>>,
}

impl Job {
    /// A job without arguments, environment and input, under the default limits.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }

    /// The same in a box, whose temporary folder, if it has one, `TMPDIR` names.
    #[must_use]
    pub fn in_box(mut self, made: ProcessBox) -> Self {
        if let Some(temporary) = made.temporary() {
            self.env.retain(|(name, _)| name != "TMPDIR");
            self.env.push(("TMPDIR".into(), temporary.into()));
        }
        self.process_box = Some(Arc::new(made));
        self
    }

    /// The environment as the program gets it: no program is looked up in the folder that it happens to run in.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&OsStr, Cow<'_, OsStr>)> {
        self.env.iter().filter_map(|(name, value)| {
            let stays = name != "PATH" || is_absolute_only(value);
            Some((&**name, if stays { Cow::Borrowed(&**value) } else { Cow::Owned(absolute_entries(value)?) }))
        })
    }
}

/// Bounds of a job. Resource limits that are `None` stay as they are for us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time from the start of the spawn to the exit of the program.
    pub timeout: Duration,
    /// Time between the polite and the final signal once the timeout has passed.
    pub grace: Duration,
    /// Time that streams may stay open after the program itself has exited.
    pub drain: Duration,
    /// Bytes kept per output stream; one more and the job is killed.
    pub output: usize,
    /// Processor time per process, rounded up to whole seconds.
    pub cpu: Option<Duration>,
    /// Bytes of address space per process.
    pub memory: Option<u64>,
    /// Processes and threads of the user. The kernel counts all of the user's, and does not hold root to it.
    pub processes: Option<u64>,
    /// Open files per process.
    pub files: Option<u64>,
    /// Bytes of the largest file that may be written.
    pub file_size: Option<u64>,
}

impl Limits {
    /// Whether any limit is one that the kernel has to hold.
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
    /// A descendant kept a stream open after the program had exited; what it wrote later is not here.
    pub leaky: bool,
    /// From the start of the spawn to this outcome.
    pub elapsed: Duration,
}

impl Outcome {
    /// The outcome of a job that never ran.
    pub(crate) fn not_started(error: SpawnError, elapsed: Duration) -> Self {
        Self::without_run(End::NotStarted(error), elapsed)
    }

    /// The outcome of a job that ended before it began.
    pub(crate) fn without_run(end: End, elapsed: Duration) -> Self {
        Self { end, stdout: Vec::new(), stderr: Vec::new(), leaky: false, elapsed }
    }
}

/// The way a job ended.
#[derive(Debug)]
pub enum End {
    /// The program exited with this code.
    Exited(i32),
    /// A signal that we did not send ended the program.
    Signalled(i32),
    /// The deadline passed; the group got its signals.
    TimedOut,
    /// We were asked to end, so the group got its signals, or the program was not even started.
    Interrupted,
    /// A stream went over its cap; the group was killed.
    Overflowed(Stream),
    /// The program ended, but someone else took its exit status: our process ignores `SIGCHLD`, or waits for any child.
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
