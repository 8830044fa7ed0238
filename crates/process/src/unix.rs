//! Children on Unix: the public interface over spawn, supervision and guard.

mod child;
mod leader;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
mod pipes;
mod resident;
mod supervise;

#[cfg(target_os = "linux")]
use self::linux as platform;
#[cfg(not(target_os = "linux"))]
use self::other as platform;

use std::io;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use self::child::Child;
use self::leader::Leader;
use self::pipes::Pipes;
use self::platform::{Guard, GuardMemory, HeldSignals, Launcher, Reaper};
use self::supervise::{JobRun, supervise};
use crate::spared::is_spared;
use crate::{End, Job, Outcome, SparedChild, SpawnError, Stage};

pub use self::pipes::Streams;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub use self::platform::run_program;
pub use self::platform::{PipeShield, SignalShield, is_released};
pub(crate) use self::platform::{PlatformBox, adopt_from_first_start, hide_memory};
pub use self::resident::Resident;

/// Pauses between tries to start a program that is still open for writing. A writer that has just finished, or a fork
/// of it, needs a moment to close the file.
const BUSY_PAUSES: [Duration; 7] = [
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(4),
    Duration::from_millis(8),
    Duration::from_millis(16),
    Duration::from_millis(32),
    Duration::from_millis(64),
];

/// The released programs of this process that still run.
static RELEASED: Mutex<Vec<SparedChild>> = Mutex::new(Vec::new());

/// The result of a start, or the stage that failed.
type Started<T> = Result<T, (Stage, io::Error)>;

/// Runs programs and cleans up after them; one per process is enough.
///
/// The first job starts the guard process. The guard ends when this value is dropped or when our process dies in any
/// way; in both cases no started process is left. It holds up to 4096 running jobs; one more does not start.
///
/// ```
/// # use ollm_process::{Children, End, Job};
/// let outcomes = Children::new().run_all(vec![Job::new("/bin/true"), Job::new("/bin/false")]);
/// assert!(matches!(outcomes[0].end, End::Exited(0)));
/// assert!(matches!(outcomes[1].end, End::Exited(1)));
/// ```
#[derive(Debug, Default)]
pub struct Children {
    guard: Mutex<Option<Arc<Guard>>>,
    /// The launcher, while it is not in use.
    launcher: Mutex<Option<Launcher>>,
    /// Processes that were killed, but had not exited when their job returned.
    dying: Mutex<Vec<Leader>>,
    /// Whether this process ends with its jobs.
    ends_soon: AtomicBool,
    /// Whether the next job starts to hold signals back.
    holding: AtomicBool,
    /// The last field, because letting signals through may end this process.
    held: Mutex<Option<Arc<HeldSignals>>>,
}

impl Children {
    /// No children yet; starts nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Announces, before the first job, that this process ends with its jobs.
    ///
    /// On Linux their guard then starts at a third of its cost, in our memory. It moves out of our memory once a job
    /// has run for two milliseconds. This does not apply if another `Children` started us, because its guard would
    /// mistake ours for us. Until it moves, two events end the guard together with us: a signal to every process with
    /// our command line, and the kernel ending us when memory runs out. The programs themselves still die with us.
    pub fn end_soon(&self) {
        self.ends_soon.store(true, Ordering::Relaxed);
    }

    /// Runs one job to its end, on this thread.
    pub fn run(&self, job: Job) -> Outcome {
        self.run_one(job, None)
    }

    /// Like [`Self::run`], but calls `stop` repeatedly: once it returns true, the job ends as [`End::Interrupted`].
    pub fn run_until(&self, job: Job, stop: &dyn Fn() -> bool) -> Outcome {
        self.run_one(job, Some(stop))
    }

    fn run_one(&self, job: Job, stop: Option<&dyn Fn() -> bool>) -> Outcome {
        let _shield = PipeShield::is_needed().then(PipeShield::raise);
        let held = self.held();
        let launcher = self.launcher();
        let mut runs = [self.begin(&launcher, job)];
        self.put_back(launcher);
        supervise(&mut runs, held.as_deref(), stop);
        let [run] = runs;
        let outcome = self.close(run);
        platform::reap_adopted();
        outcome
    }

    /// Runs a program on our own streams and terminal, in our own group, and waits for it however long it takes.
    ///
    /// The job's input, timeout and output cap are not used. A signal that asks us to end is passed on to the program.
    pub fn run_attached(&self, job: &Job) -> Outcome {
        let started = Instant::now();
        let signals = platform::PassedSignals::hold();
        let launcher = self.launcher();
        let attached = || -> Started<Leader> {
            let launcher = launcher.as_ref().map_err(|error| (Stage::Clone, copy(error)))?;
            let guard = self.guard(job).map_err(|error| (Stage::Guard, error))?;
            while_busy(|_| true, || launcher.attach(job, &guard)).inspect(Leader::separate_guard)
        };
        let leader = attached();
        self.put_back(launcher);
        let end = match leader {
            Ok(leader) => platform::await_end(leader, &signals),
            Err((stage, error)) => End::NotStarted(SpawnError::new(job, stage, error)),
        };
        Outcome::without_run(end, started)
    }

    /// Runs all jobs at the same time, on this thread, until all have ended. Outcomes are in the order of the jobs.
    pub fn run_all(&self, jobs: Vec<Job>) -> Vec<Outcome> {
        self.run_many(jobs, None)
    }

    /// Like [`Self::run_all`], but calls `stop` repeatedly: once it returns true, the jobs end as [`End::Interrupted`].
    /// If it is true from the start, no job begins.
    pub fn run_all_until(&self, jobs: Vec<Job>, stop: &(dyn Fn() -> bool + Sync)) -> Vec<Outcome> {
        if stop() {
            return jobs.iter().map(|_| Outcome::without_run(End::Interrupted, Instant::now())).collect();
        }
        self.run_many(jobs, Some(stop))
    }

    fn run_many(&self, jobs: Vec<Job>, stop: Option<&dyn Fn() -> bool>) -> Vec<Outcome> {
        let _shield = PipeShield::is_needed().then(PipeShield::raise);
        let held = self.held();
        let launcher = self.launcher();
        let mut runs: Vec<_> = jobs.into_iter().map(|job| self.begin(&launcher, job)).collect();
        self.put_back(launcher);
        supervise(&mut runs, held.as_deref(), stop);
        let outcomes = runs.into_iter().map(|run| self.close(run)).collect();
        platform::reap_adopted();
        outcomes
    }

    /// Starts a program that runs until its owner ends it; the owner also writes and reads its streams.
    ///
    /// The job's input, timeout and output cap are not used. Everything else applies as for a job: group, environment,
    /// limits, guard. On Linux it also gets its own reaper process, below which it runs, so that no descendant outlives
    /// it or us. It does not end with the thread that called this.
    pub fn start(&self, job: &Job) -> Result<Resident, SpawnError> {
        self.reap_dying();
        platform::reap_adopted();
        if self.interrupted() {
            return Err(SpawnError::new(job, Stage::Clone, io::ErrorKind::Interrupted.into()));
        }
        let launcher = self.launcher();
        let spawned = self.spawn(&launcher, job, Instant::now(), Reaper::start);
        self.put_back(launcher);
        let (reaper, pipes) = spawned.map_err(|(stage, error)| SpawnError::new(job, stage, error))?;
        Ok(Resident::new(reaper, pipes.ours, job))
    }

    /// Kills and reaps descendants of jobs that left their group and that this process has adopted; returns how many.
    ///
    /// Does nothing unless the program made a [`ProcessSetup`](crate::ProcessSetup). Every child process counts as
    /// adopted, unless a `Children` started it or it is a [`SparedChild`](crate::SparedChild). So this is for a process
    /// that starts others only in these two ways. Without adopted children it costs two system calls.
    pub fn kill_adopted(&self) -> usize {
        self.reap_dying();
        kill_adopted()
    }

    /// Starts a program that continues when we end, and that we do not supervise: it has no group, deadline or guard of
    /// ours, and does not bear our mark. Its output is discarded, and the job's limits do not apply. It must unblock
    /// the signals that we hold back ([`ProcessSetup::leave_session`](crate::ProcessSetup::leave_session)). After such
    /// a signal has come, no program starts.
    pub fn release(&self, job: &Job) -> io::Result<()> {
        if self.interrupted() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        platform::keep_files();
        let mut command = Command::new(&job.program);
        command.args(&job.args).env_clear().envs(job.environment());
        if let Some(cwd) = &job.cwd {
            command.current_dir(cwd);
        }
        command.stdin(platform::filled(&job.stdin)?).stdout(Stdio::null()).stderr(Stdio::null());
        let start = || SparedChild::spawn(&mut command).map_err(|error| (Stage::Exec, error));
        let child = while_busy(|_| true, start);
        lock(&RELEASED).push(child.map_err(|(_, error)| error)?);
        Ok(())
    }

    /// Ends all running jobs of this value at once, on all threads. On systems other than Linux they run until their
    /// deadlines.
    pub fn end_all(&self) {
        if let Some(guard) = &*lock(&self.guard) {
            guard.end_all();
        }
    }

    /// Until the result is dropped, `SIGTERM`, `SIGINT` and `SIGHUP` end our jobs before they end us.
    ///
    /// From the next job on, these signals are held back on its thread. The first one ends all running jobs, with a
    /// short grace, as [`End::Interrupted`]; a second one ends the grace. No job starts after that. When the result is
    /// dropped, this process dies of the first signal that came. Signals that we ignore, block or handle are not
    /// touched.
    ///
    /// This is for a program whose only thread runs all jobs: other threads would receive the signals as usual. Systems
    /// other than Linux do not hold them back.
    pub fn hold_signals(&self) -> SignalHold<'_> {
        self.holding.store(true, Ordering::Relaxed);
        SignalHold(self)
    }

    /// Whether a held-back signal has come.
    pub fn interrupted(&self) -> bool {
        lock(&self.held).as_ref().is_some_and(|held| held.came())
    }

    fn held(&self) -> Option<Arc<HeldSignals>> {
        if !self.holding.load(Ordering::Relaxed) {
            return None;
        }
        let mut held = lock(&self.held);
        if held.is_none() {
            // If this fails, signals end us at once, as without `hold_signals`.
            *held = HeldSignals::hold().ok().map(Arc::new);
        }
        held.clone()
    }

    /// The launcher of an earlier start, unless another thread is using it.
    fn launcher(&self) -> io::Result<Launcher> {
        lock(&self.launcher).take().map_or_else(Launcher::new, Ok)
    }

    fn put_back(&self, launcher: io::Result<Launcher>) {
        *lock(&self.launcher) = launcher.ok();
    }

    fn begin(&self, launcher: &io::Result<Launcher>, mut job: Job) -> JobRun {
        let started = Instant::now();
        if self.interrupted() {
            return JobRun::Done(Outcome::without_run(End::Interrupted, started));
        }
        match self.spawn(launcher, &job, started, Launcher::launch) {
            Ok((leader, pipes)) => JobRun::Live(Child::new(leader, pipes.ours, &mut job, started)),
            Err((stage, error)) => {
                let error = SpawnError::new(&job, stage, error);
                JobRun::Done(Outcome::not_started(error, started))
            }
        }
    }

    /// Starts a program as a job or as a resident.
    fn spawn<T>(
        &self,
        launcher: &io::Result<Launcher>,
        job: &Job,
        started: Instant,
        start: fn(&Launcher, &Job, &Pipes, &Arc<Guard>) -> Started<T>,
    ) -> Started<(T, Pipes)> {
        let launcher = launcher.as_ref().map_err(|error| (Stage::Clone, copy(error)))?;
        let guard = self.guard(job).map_err(|error| (Stage::Guard, error))?;
        let pipes = Pipes::open().map_err(|error| (Stage::Pipe, error))?;
        let in_time = |pause| started.elapsed() + pause < job.limits.timeout;
        let started = while_busy(in_time, || start(launcher, job, &pipes, &guard))?;
        Ok((started, pipes))
    }

    fn guard(&self, first: &Job) -> io::Result<Arc<Guard>> {
        let mut guard = lock(&self.guard);
        if let Some(guard) = &*guard {
            return Ok(Arc::clone(guard));
        }
        // If another `Children` started us, a guard in our memory would show the same mark as we do, and would be ended
        // with us.
        let is_nested = first.env.iter().any(|(name, _)| name == platform::MARK_VARIABLE);
        let ends_soon = self.ends_soon.load(Ordering::Relaxed) && !is_nested;
        let started = Guard::start(if ends_soon { GuardMemory::Shared } else { GuardMemory::Own })?;
        *guard = Some(Arc::clone(&started));
        Ok(started)
    }

    fn close(&self, run: JobRun) -> Outcome {
        self.reap_dying();
        match run {
            JobRun::Done(outcome) => outcome,
            JobRun::Live(child) => {
                let (outcome, leader) = child.close();
                lock(&self.dying).extend(leader);
                outcome
            }
        }
    }

    fn reap_dying(&self) {
        lock(&self.dying).retain_mut(|leader| leader.reap().is_none());
        lock(&RELEASED).retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}

/// Signals that are held back while jobs run ([`Children::hold_signals`]). Drop it on the thread that ran the jobs:
/// that lets the signals through again, and if one has come, the process ends there.
#[derive(Debug)]
#[must_use = "dropped, it lets signals through again"]
pub struct SignalHold<'a>(&'a Children);

impl Drop for SignalHold<'_> {
    fn drop(&mut self) {
        self.0.holding.store(false, Ordering::Relaxed);
        let held = lock(&self.0.held).take();
        drop(held);
    }
}

/// Kills and reaps the adopted descendants of this process, of all `Children`; returns how many.
pub(crate) fn kill_adopted() -> usize {
    let spared = |pid: Pid| u32::try_from(pid.as_raw_nonzero().get()).is_ok_and(is_spared);
    let idle = platform::idle_guards();
    let (killed, gone) = platform::kill_adopted(spared);
    if gone {
        for (guard, starts) in idle {
            guard.settle(starts);
        }
    }
    killed
}

/// Leaves the terminal and the group this process was started in, and blocks no signal on this thread.
pub(crate) fn leave_session() -> io::Result<()> {
    platform::let_signals_through();
    Ok(rustix::process::setsid().map(drop)?)
}

/// The value behind a lock, also after a panic elsewhere: no code here leaves it inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a program, with some retries while another process still has it open for writing.
fn while_busy<T>(may_pause: impl Fn(Duration) -> bool, mut start: impl FnMut() -> Started<T>) -> Started<T> {
    let mut pauses = BUSY_PAUSES.iter();
    loop {
        match start() {
            Err((Stage::Exec, error)) if error.kind() == io::ErrorKind::ExecutableFileBusy => match pauses.next() {
                Some(pause) if may_pause(*pause) => thread::sleep(*pause),
                _ => return Err((Stage::Exec, error)),
            },
            started => return started,
        }
    }
}

fn copy(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}
