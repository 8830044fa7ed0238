//! Children on Windows, with the standard library only.
//!
//! Untested. Provided: deadline, caps, input fed while output is read, exact environment. Not provided: guard, resource
//! limits, a polite signal before the kill (so no grace), and groups: only the direct child is killed, its descendants
//! live on. Threads serve the streams; a thread whose stream a descendant keeps open is left behind (`leaky`).

use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::{BoxMeans, BoxRules, End, Job, Outcome, SpawnError, Stage, Stream};

/// How often the child's exit is polled.
const ASKING: Duration = Duration::from_millis(2);

/// Runs programs and reports how they ended.
#[derive(Debug, Default)]
pub struct Children {}

impl Children {
    /// No children yet; starts nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Announces that this process ends with its jobs; has no effect here.
    pub fn end_soon(&self) {}

    /// Runs one job to its end.
    pub fn run(&self, job: Job) -> Outcome {
        self.run_until(job, &|| false)
    }

    /// Like [`Self::run`], but calls `stop` repeatedly: once it returns true, the job is killed.
    pub fn run_until(&self, job: Job, stop: &dyn Fn() -> bool) -> Outcome {
        let started = Instant::now();
        match start(&job) {
            Ok(child) => supervise(child, job, started, stop),
            Err((stage, error)) => Outcome::not_started(SpawnError::new(&job, stage, error), started),
        }
    }

    /// Runs all jobs at the same time until all have ended; outcomes are in the order of the jobs.
    pub fn run_all(&self, jobs: Vec<Job>) -> Vec<Outcome> {
        self.run_all_until(jobs, &|| false)
    }

    /// Like [`Self::run_all`], but calls `stop` repeatedly: once it returns true, the jobs are killed. If it is true
    /// from the start, no job begins.
    pub fn run_all_until(&self, jobs: Vec<Job>, stop: &(dyn Fn() -> bool + Sync)) -> Vec<Outcome> {
        if stop() {
            return jobs.iter().map(|_| Outcome::without_run(End::Interrupted, Instant::now())).collect();
        }
        thread::scope(|scope| {
            let runs: Vec<_> = jobs.into_iter().map(|job| scope.spawn(|| self.run_until(job, stop))).collect();
            runs.into_iter().filter_map(|run| run.join().ok()).collect()
        })
    }

    /// Not supported on this system; does nothing.
    pub fn hold_signals(&self) -> SignalHold<'_> {
        SignalHold(PhantomData)
    }

    /// Always false on this system.
    pub fn interrupted(&self) -> bool {
        false
    }

    /// Starts a program that continues when we end. Its output is discarded.
    pub fn release(&self, job: &Job) -> io::Result<()> {
        let mut command = Command::new(&job.program);
        command.args(&job.args).env_clear().envs(job.environment());
        if let Some(cwd) = &job.cwd {
            command.current_dir(cwd);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(&job.stdin))
    }

    /// Not supported on this system; jobs end by their deadlines.
    pub fn end_all(&self) {}

    /// This system adopts no descendants; does nothing.
    pub fn kill_adopted(&self) -> usize {
        0
    }
}

/// Nothing is released on this system.
pub fn is_released(_: impl Sized) -> bool {
    false
}

/// This system holds no signals back.
#[derive(Debug)]
#[must_use = "dropped, it lets signals through again"]
pub struct SignalHold<'a>(PhantomData<&'a Children>);

/// This system adopts no descendants.
pub(crate) fn adopt_from_first_start() {}

/// This system does not allow a process to do so.
pub(crate) fn hide_memory() {}

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

/// This system adopts no descendants.
pub(crate) fn kill_adopted() -> usize {
    0
}

/// Not supported on this system.
pub(crate) fn leave_session() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn start(job: &Job) -> Result<Child, (Stage, io::Error)> {
    if job.limits.bounds_resources() {
        return Err((Stage::Limits, io::ErrorKind::Unsupported.into()));
    }
    if !job.program.is_absolute() {
        return Err((Stage::Arguments, io::ErrorKind::InvalidInput.into()));
    }
    let mut command = Command::new(&job.program);
    command.args(&job.args).env_clear().envs(job.environment());
    if let Some(cwd) = &job.cwd {
        cwd.metadata().map_err(|error| (Stage::Chdir, error))?;
        command.current_dir(cwd);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|error| (Stage::Exec, error))
}

fn supervise(mut child: Child, job: Job, started: Instant, stop: &dyn Fn() -> bool) -> Outcome {
    if let Some(mut pipe) = child.stdin.take() {
        thread::spawn(move || pipe.write_all(&job.stdin));
    }
    let (chunks, received) = mpsc::sync_channel(4);
    for (stream, pipe) in pipes(&mut child) {
        let chunks = chunks.clone();
        thread::spawn(move || forward(stream, pipe, &chunks));
    }
    drop(chunks);
    let mut record = Record { received, stdout: Vec::new(), stderr: Vec::new(), cap: job.limits.output };
    let end = record.until_exit(&mut child, &|| {
        let late = started.elapsed() >= job.limits.timeout;
        if stop() { Some(End::Interrupted) } else { late.then_some(End::TimedOut) }
    });
    let (overflow, leaky) = record.drain(job.limits.drain);
    Outcome {
        end: match (end, overflow) {
            (End::Exited(_), Some(stream)) => End::Overflowed(stream),
            (end, _) => end,
        },
        stdout: record.stdout,
        stderr: record.stderr,
        leaky,
        started,
        elapsed: started.elapsed(),
    }
}

type Pipe = Box<dyn Read + Send>;
type Chunk = (Stream, Vec<u8>);

fn pipes(child: &mut Child) -> Vec<(Stream, Pipe)> {
    let stdout = child.stdout.take().map(|pipe| (Stream::Stdout, Box::new(pipe) as Pipe));
    let stderr = child.stderr.take().map(|pipe| (Stream::Stderr, Box::new(pipe) as Pipe));
    stdout.into_iter().chain(stderr).collect()
}

fn forward(stream: Stream, mut pipe: Pipe, chunks: &mpsc::SyncSender<Chunk>) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        let chunk = buffer.iter().take(count).copied().collect();
        if chunks.send((stream, chunk)).is_err() {
            return;
        }
    }
}

/// The data received from a child.
struct Record {
    received: Receiver<Chunk>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    cap: usize,
}

impl Record {
    fn until_exit(&mut self, child: &mut Child, over: &dyn Fn() -> Option<End>) -> End {
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                return exited(status);
            }
            let end = match self.received.recv_timeout(ASKING) {
                Ok(chunk) => self.keep(chunk).map(End::Overflowed),
                Err(mpsc::RecvTimeoutError::Timeout) => None,
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    thread::sleep(ASKING);
                    None
                }
            };
            if let Some(end) = end.or_else(over) {
                let _ = child.kill();
                let _ = child.wait();
                return end;
            }
        }
    }

    /// Reads the remaining output for a while; returns which cap was exceeded and whether a stream stayed open.
    fn drain(&mut self, pause: Duration) -> (Option<Stream>, bool) {
        let started = Instant::now();
        loop {
            match self.received.recv_timeout(pause.saturating_sub(started.elapsed())) {
                Ok(chunk) => {
                    if let Some(stream) = self.keep(chunk) {
                        return (Some(stream), false);
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return (None, false),
                Err(mpsc::RecvTimeoutError::Timeout) => return (None, true),
            }
        }
    }

    /// Stores a chunk; returns the stream if it exceeded its cap.
    fn keep(&mut self, (stream, chunk): Chunk) -> Option<Stream> {
        let bytes = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        bytes.extend(chunk);
        let over = bytes.len() > self.cap;
        bytes.truncate(self.cap);
        over.then_some(stream)
    }
}

fn exited(status: ExitStatus) -> End {
    status.code().map_or(End::Lost, End::Exited)
}
