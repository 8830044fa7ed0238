//! The thread that the servers' tasks run on, and the handle by which callers use its runtime (`wait`).
//!
//! Passing a call to another thread, and its answer back, costs about half as much as the call itself. So a waiting
//! caller drives the runtime itself while the thread rests; the thread drives again once no caller has waited for a
//! moment. Only the thread starts programs, for two reasons: programs end with the thread that started them, and a slow
//! disk must not delay a caller that waits for another server.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

use ollm_process::{Children, Job, PipeShield, Resident, SpawnError};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::{JoinHandle as Task, yield_now};

use crate::wait::SpinPolicy;

/// How long no caller must have waited before the thread drives again. In that time no task makes progress.
const IDLE_TIME: Duration = Duration::from_millis(20);
/// How long shutdown waits for work that cannot be interrupted, such as a name look-up.
const SHUTDOWN_TIME: Duration = Duration::from_millis(100);

/// The thread and its runtime. Dropping it ends both, and all tasks with them.
#[derive(Debug)]
pub(crate) struct RuntimeThread {
    handle: Arc<RuntimeHandle>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and waiting callers share.
#[derive(Debug)]
pub(crate) struct RuntimeHandle {
    handle: Handle,
    runtime: Weak<Runtime>,
    state: Mutex<RuntimeState>,
    /// Wakes the resting thread.
    changed: Condvar,
    /// Asks the driving thread to leave the runtime.
    leave: Notify,
    pub(crate) closed: watch::Sender<bool>,
    /// Whether this process would die from a signal when it writes to a server that has exited.
    pub(crate) needs_pipe_shield: bool,
    pub(crate) spin_policy: SpinPolicy,
}

#[derive(Default)]
struct RuntimeState {
    /// Callers that drive the runtime now.
    callers: usize,
    /// How many times a caller has driven it.
    visits: u64,
    thread_state: ThreadState,
    /// The thread's id, once it runs.
    thread: Option<ThreadId>,
    jobs: Vec<ThreadJob>,
    closed: bool,
}

/// Work that only the thread may do.
type ThreadJob = Box<dyn FnOnce() + Send>;

/// What the thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ThreadState {
    /// It drives the runtime, or is about to.
    #[default]
    Driving,
    /// It checks again soon whether to drive.
    Dozing,
    /// It waits to be woken.
    Resting,
}

/// What the thread does next.
enum NextStep {
    Drive,
    Run(Vec<ThreadJob>),
    End,
}

impl RuntimeThread {
    /// Starts the thread.
    pub(crate) fn new() -> io::Result<Self> {
        let runtime = Arc::new(Builder::new_current_thread().enable_all().build()?);
        let handle = Arc::new(RuntimeHandle {
            handle: runtime.handle().clone(),
            runtime: Arc::downgrade(&runtime),
            state: Mutex::default(),
            changed: Condvar::new(),
            leave: Notify::new(),
            closed: watch::channel(false).0,
            needs_pipe_shield: PipeShield::is_needed(),
            spin_policy: SpinPolicy::new(),
        });
        let theirs = Arc::clone(&handle);
        let thread = thread::Builder::new().name("mcp".to_owned()).spawn(move || run(&theirs, runtime))?;
        Ok(Self { handle, thread: Some(thread) })
    }

    pub(crate) fn handle(&self) -> &Arc<RuntimeHandle> {
        &self.handle
    }
}

impl Drop for RuntimeThread {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take()
            && !self.handle.is_current()
        {
            let _ = thread.join();
        }
    }
}

/// The main function of the thread.
fn run(handle: &RuntimeHandle, runtime: Arc<Runtime>) {
    let _shield = PipeShield::raise();
    handle.lock().thread = Some(thread::current().id());
    loop {
        match handle.next_step() {
            NextStep::Drive => runtime.block_on(async {
                handle.leave.notified().await;
                // Requests already made are sent before a caller takes over.
                yield_now().await;
            }),
            NextStep::Run(jobs) => jobs.into_iter().for_each(|job| job()),
            NextStep::End => break,
        }
    }
    if let Some(runtime) = Arc::into_inner(runtime) {
        runtime.shutdown_timeout(SHUTDOWN_TIME);
    }
}

impl RuntimeHandle {
    /// While the guard lives, tasks spawned by this code run on this runtime.
    pub(crate) fn enter(&self) -> tokio::runtime::EnterGuard<'_> {
        self.handle.enter()
    }

    /// Whether this code runs inside the runtime, where waiting for it would be a deadlock.
    pub(crate) fn is_current(&self) -> bool {
        Handle::try_current().is_ok_and(|current| current.id() == self.handle.id())
    }

    /// Spawns a task on the runtime.
    #[expect(clippy::async_yields_async, reason = "the task is begun there and waited for elsewhere")]
    pub(crate) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Task<T> {
        // While no thread drives, no thread needs waking, and waking is costly.
        let idle = self.lock().thread_state == ThreadState::Dozing && Handle::try_current().is_err();
        match self.runtime.upgrade().filter(|_| idle) {
            Some(runtime) => {
                let work = Box::pin(work);
                runtime.block_on(async { tokio::spawn(work) })
            }
            None => self.handle.spawn(work),
        }
    }

    /// Starts a program on the thread.
    pub(crate) async fn start_program(&self, children: &Arc<Children>, job: Job) -> Result<Resident, SpawnError> {
        if self.lock().thread != Some(thread::current().id()) {
            let (reply, started) = oneshot::channel();
            let children = Arc::clone(children);
            self.send(Box::new(move || {
                if !reply.is_closed() {
                    // If the caller no longer waits, dropping the reply ends the program.
                    drop(reply.send(children.start(&job)));
                }
            }));
            return match started.await {
                Ok(started) => started,
                // The thread has ended; this task ends with it.
                Err(_) => std::future::pending().await,
            };
        }
        children.start(&job)
    }

    /// Waits until the thread has finished all earlier jobs.
    pub(crate) async fn finish_starts(&self) {
        let (reply, done) = oneshot::channel();
        self.send(Box::new(move || {
            let _ = reply.send(());
        }));
        let _ = done.await;
    }

    fn send(&self, job: ThreadJob) {
        self.lock().jobs.push(job);
        self.changed.notify_one();
        self.leave.notify_one();
    }

    /// Returns what the thread does next; the thread rests here while callers drive.
    fn next_step(&self) -> NextStep {
        let mut state = self.lock();
        let mut seen = None;
        loop {
            if !state.jobs.is_empty() {
                return NextStep::Run(std::mem::take(&mut state.jobs));
            }
            if state.callers > 0 {
                state.thread_state = ThreadState::Resting;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if state.closed {
                return NextStep::End;
            }
            let visits = state.visits;
            if visits == 0 || seen.replace(visits) == Some(visits) {
                state.thread_state = ThreadState::Driving;
                return NextStep::Drive;
            }
            state.thread_state = ThreadState::Dozing;
            state = self.changed.wait_timeout(state, IDLE_TIME).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn close(&self) {
        self.lock().closed = true;
        self.closed.send_replace(true);
        self.changed.notify_one();
        self.leave.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, RuntimeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for RuntimeState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuntimeState")
            .field("callers", &self.callers)
            .field("thread_state", &self.thread_state)
            .finish_non_exhaustive()
    }
}

/// A caller that drives the runtime in place of the thread.
pub(crate) struct RuntimeGuard<'a> {
    handle: &'a RuntimeHandle,
    /// Dropped before the thread may shut the runtime down.
    runtime: Option<Arc<Runtime>>,
}

impl<'a> RuntimeGuard<'a> {
    /// `None` once the runtime is shutting down.
    pub(crate) fn enter(handle: &'a RuntimeHandle) -> Option<Self> {
        let mut state = handle.lock();
        let runtime = handle.runtime.upgrade().filter(|_| !state.closed)?;
        state.callers += 1;
        state.visits = state.visits.wrapping_add(1).max(1);
        let driving = state.thread_state == ThreadState::Driving;
        drop(state);
        if driving {
            handle.leave.notify_one();
        }
        Some(Self { handle, runtime: Some(runtime) })
    }

    /// Drives the runtime until this future is done.
    pub(crate) fn drive<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.runtime.as_ref().map(|runtime| runtime.block_on(work))
    }
}

impl Drop for RuntimeGuard<'_> {
    fn drop(&mut self) {
        self.runtime = None;
        let mut state = self.handle.lock();
        state.callers -= 1;
        let wake = state.callers == 0 && state.thread_state == ThreadState::Resting;
        drop(state);
        if wake {
            self.handle.changed.notify_one();
        }
    }
}
