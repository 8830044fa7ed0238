//! Runs hooks in the background: the event does not wait for them.
//!
//! In a long-lived process, a few threads run them. When the engine is dropped, running hooks get a short grace and are
//! then ended. A process that is about to end hands each hook to a small process of its own, which keeps the deadline
//! and the output cap. Background hooks decide nothing.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ollm_process::{Children, Job, after};
use ollm_protocol::{Event, EventKind, Hook};
use serde_json::Map;

use crate::action::Task;
use crate::environment::Environment;
use crate::present::{presentable, redactor};
use crate::report::Report;
use crate::run::{RunContext, SentTask, answered, failed, remains, returned};

mod payload;

pub use payload::{FAILURE_FIELDS, TaskResult, run as run_handed_over};
#[cfg(feature = "http")]
pub(crate) use payload::{bytes, unbytes};

/// The most background hooks that run at once; others wait.
const THREADS: usize = 8;
/// The most background hooks that wait; others are refused.
const WAITING: usize = 256;
/// How long running hooks may go on after the engine is dropped.
const GRACE: Duration = Duration::from_secs(2);

/// A program that reads a task from standard input and runs it after our process has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// The result of a background hook.
#[derive(Clone, Debug)]
pub struct LateResult {
    /// The hook's id as the event's record has it: without secrets.
    pub id: String,
    /// The dispatch it belongs to.
    pub trace_id: String,
    /// The event.
    pub event: EventKind,
    /// How it went.
    pub report: Report,
}

impl LateResult {
    /// The same result, in the form that a handed-over task has.
    pub fn done(&self) -> TaskResult {
        let Report { status, error, stack, duration, process, hook, .. } = &self.report;
        TaskResult {
            hook: self.id.clone(),
            label: hook.spec.label(),
            about: Map::new(),
            trace_id: self.trace_id.clone(),
            event: self.event,
            status: *status,
            error: error.clone(),
            stack: stack.clone(),
            duration: *duration,
            process: process.clone(),
        }
    }
}

/// The listener for the results of background hooks.
pub(crate) type LateListener = Arc<dyn Fn(LateResult) + Send + Sync>;

pub(crate) struct Background {
    shared: Arc<BackgroundShared>,
    pub(crate) told: Option<LateListener>,
}

impl fmt::Debug for Background {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Background")
    }
}

struct BackgroundShared {
    children: Arc<Children>,
    queue: Mutex<Queue>,
    idle: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    threads: usize,
}

struct Work {
    hook: Arc<Hook>,
    event: Event,
    task: Task,
    environment: Environment,
    trace_id: String,
    told: Option<LateListener>,
}

impl Background {
    pub(crate) fn new(children: Arc<Children>) -> Background {
        let shared = BackgroundShared { children, queue: Mutex::default(), idle: Condvar::new() };
        Background { shared: Arc::new(shared), told: None }
    }

    /// Starts a task. The error says why it could not start.
    pub(crate) fn start(
        &self,
        hook: &Arc<Hook>,
        event: &Event,
        task: Task,
        means: &RunContext<'_>,
    ) -> Result<(), String> {
        if let Some(launcher) = &means.environment.background {
            return hand_over(launcher, hook, event, &task, means);
        }
        let work = Work {
            hook: Arc::clone(hook),
            event: event.clone(),
            task,
            environment: means.environment.clone(),
            trace_id: means.wire.trace_id.to_owned(),
            told: self.told.clone(),
        };
        self.shared.enqueue(work)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Hooks of the last event get this time too, even if no thread has taken them yet.
        let mut queue = self.shared.wait(self.shared.queue(), GRACE);
        queue.waiting.clear();
        if queue.threads > 0 {
            drop(queue);
            self.shared.children.end_all();
            drop(self.shared.wait(self.shared.queue(), GRACE));
        }
    }
}

impl BackgroundShared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enqueue(self: &Arc<Self>, work: Work) -> Result<(), String> {
        let mut queue = self.queue();
        if queue.waiting.len() >= WAITING {
            return Err(format!("{WAITING} hooks wait to run in the background already"));
        }
        queue.waiting.push_back(work);
        if queue.threads < THREADS {
            let shared = Arc::clone(self);
            let started = thread::Builder::new().name("ollm-background".to_owned()).spawn(move || shared.work());
            match started {
                Ok(_) => queue.threads += 1,
                Err(error) if queue.threads == 0 => {
                    queue.waiting.pop_back();
                    return Err(format!("no thread could be started for it: {error}"));
                }
                // The existing threads take it.
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn work(&self) {
        while let Some(work) = self.next() {
            // A panic spoils only its own task; the others still run.
            let _ = catch_unwind(AssertUnwindSafe(|| work.run(&self.children)));
        }
    }

    /// The next piece of work. A thread that finds none is removed from the count under the same lock. So new work
    /// either finds a counted thread or starts another one.
    fn next(&self) -> Option<Work> {
        let mut queue = self.queue();
        let work = queue.waiting.pop_front();
        if work.is_none() {
            queue.threads -= 1;
            self.idle.notify_all();
        }
        work
    }

    /// Waits until no thread is left, at most for `patience`.
    fn wait<'a>(&self, mut queue: MutexGuard<'a, Queue>, patience: Duration) -> MutexGuard<'a, Queue> {
        let deadline = after(Instant::now(), patience);
        while queue.threads > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            queue = self.idle.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        queue
    }
}

impl Work {
    fn run(self, children: &Children) {
        let sent = SentTask::now();
        let report = match self.task {
            Task::Job(job) => match job.held() {
                Ok((job, running)) => {
                    let bytes = job.stdin.len();
                    let outcome = children.run(job);
                    let process = remains(&outcome, bytes);
                    let report = answered(&self.hook, &self.event, &outcome, &sent);
                    running.told(Report { process, ..report }, &outcome.stderr)
                }
                Err(why) => failed(&self.hook, why, &sent),
            },
            Task::Remote(remote_task) => returned(&self.hook, &self.event, &remote_task.run(), &sent),
        };
        if let Some(told) = &self.told {
            let report = presentable(Report { detached: true, ..report }, &self.environment);
            let id = shown_id(&self.hook, &self.environment);
            told(LateResult { id, trace_id: self.trace_id, event: self.event.kind, report });
        }
    }
}

fn shown_id(hook: &Hook, environment: &Environment) -> String {
    redactor(std::iter::once(hook), environment).redact_str(hook.id()).into_owned()
}

fn hand_over(
    launcher: &Launcher,
    hook: &Hook,
    event: &Event,
    task: &Task,
    means: &RunContext<'_>,
) -> Result<(), String> {
    let redactor = redactor(std::iter::once(hook), means.environment);
    let shown = [hook.id(), &hook.spec.label()].map(|text| redactor.redact_str(text).into_owned());
    let stdin = payload::write(hook, &shown, event, task, means.wire.trace_id)?;
    let job = Job {
        args: launcher.args.clone(),
        env: means.environment.variables.clone(),
        stdin,
        ..Job::new(&launcher.program)
    };
    means.children.release(&job).map_err(|error| format!("it could not be left to the background: {error}"))
}
