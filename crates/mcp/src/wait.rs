//! The one loop that waits for servers' answers: every blocking wait goes through [`RuntimeHandle::wait`].
//!
//! It knows a time limit and the end of the runtime. The awaited task itself keeps the deadline of a request, which
//! progress extends (`requester`).

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use ollm_process::PipeShield;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle as Task, yield_now};

use crate::runtime::{RuntimeGuard, RuntimeHandle};

/// How long a caller polls for an answer before it sleeps. A wake-up costs both threads about as much as a short call.
const SPIN_TIME: Duration = Duration::from_micros(100);
/// After this many slower answers in a row no caller spins, until one answer is fast again.
const SLOW_ANSWERS: u32 = 3;

/// How a wait ended.
#[derive(Debug)]
pub(crate) enum WaitEnd<T> {
    Answered(T),
    /// The limit has passed; the task continues.
    TimedOut,
    /// The task was aborted, or the runtime has ended.
    Cancelled,
    /// The caller waits inside the runtime, which would deadlock.
    InsideRuntime,
}

impl RuntimeHandle {
    /// Waits for a task of the runtime, at most until the limit, and drives the runtime meanwhile.
    pub(crate) fn wait<T: Send>(&self, task: &mut Task<T>, limit: Option<Duration>) -> WaitEnd<T> {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        if self.is_current() {
            return WaitEnd::InsideRuntime;
        }
        if Handle::try_current().is_err() {
            return self.drive_until(task, end);
        }
        // A thread inside one runtime cannot drive another, so a new thread drives it.
        thread::scope(|scope| {
            let waiter = thread::Builder::new().spawn_scoped(scope, || self.drive_until(task, end));
            waiter.ok().and_then(|waiter| waiter.join().ok()).unwrap_or(WaitEnd::Cancelled)
        })
    }

    fn drive_until<T>(&self, task: &mut Task<T>, end: Option<Instant>) -> WaitEnd<T> {
        let Some(guard) = RuntimeGuard::enter(self) else {
            return ended(task);
        };
        let _shield = self.needs_pipe_shield.then(PipeShield::raise);
        let begun = Instant::now();
        let answer = guard.drive(async {
            if self.spin_policy.should_spin()
                && let Some(answer) = spin(task, begun).await
            {
                return Some(answer);
            }
            let mut closed = self.closed.subscribe();
            let late = async {
                match end {
                    Some(end) => tokio::time::sleep_until(end.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                answer = &mut *task => Some(answer.map_or(WaitEnd::Cancelled, WaitEnd::Answered)),
                _ = closed.wait_for(|closed| *closed) => None,
                () = late => Some(WaitEnd::TimedOut),
            }
        });
        self.spin_policy.record(begun.elapsed());
        answer.flatten().unwrap_or(WaitEnd::Cancelled)
    }
}

/// The answer of a task whose runtime has ended, if the answer came before that.
fn ended<T>(task: &mut Task<T>) -> WaitEnd<T> {
    match task.now_or_never() {
        Some(Ok(answer)) => WaitEnd::Answered(answer),
        Some(Err(_)) | None => WaitEnd::Cancelled,
    }
}

/// The answer of a task, if it comes within the spin time. All other tasks of the runtime run meanwhile.
async fn spin<T>(task: &mut Task<T>, begun: Instant) -> Option<WaitEnd<T>> {
    loop {
        let look = poll_fn(|context| Poll::Ready(Pin::new(&mut *task).poll(context)));
        if let Poll::Ready(answer) = look.await {
            return Some(answer.map_or(WaitEnd::Cancelled, WaitEnd::Answered));
        }
        if begun.elapsed() > SPIN_TIME {
            return None;
        }
        yield_now().await;
    }
}

/// Decides whether spinning pays: some servers answer at once, others do not.
#[derive(Debug)]
pub(crate) struct SpinPolicy {
    single_core: bool,
    /// How many answers in a row took longer than the spin time.
    slow_answers: AtomicU32,
}

impl SpinPolicy {
    pub(crate) fn new() -> Self {
        let single_core = thread::available_parallelism().is_ok_and(|cores| cores.get() == 1);
        Self { single_core, slow_answers: AtomicU32::new(0) }
    }

    fn should_spin(&self) -> bool {
        !self.single_core && self.slow_answers.load(Ordering::Relaxed) < SLOW_ANSWERS
    }

    fn record(&self, waited: Duration) {
        if waited <= SPIN_TIME {
            self.slow_answers.store(0, Ordering::Relaxed);
        } else if self.should_spin() {
            self.slow_answers.fetch_add(1, Ordering::Relaxed);
        }
    }
}
