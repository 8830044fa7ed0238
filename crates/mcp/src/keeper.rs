//! The thread that servers live on, and those who stand in for it.
//!
//! To hand a call over to another thread and its answer back costs about half of the call. So whoever waits for an answer
//! drives the runtime meanwhile, and the thread rests; it comes back once nobody has waited for a moment. Only programs
//! are started by the thread and nobody else: a disk that takes its time holds up nobody who waits for another server.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread, ThreadId};
use std::time::{Duration, Instant};

use ollm_process::{Children, Job, PipeShield, Resident, SpawnError};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::{JoinError, JoinHandle as Task, yield_now};

/// How long nobody must have waited before the thread comes back. Until then nothing happens by itself.
const LULL: Duration = Duration::from_millis(20);
/// How long an answer is looked out for without falling asleep: to be woken costs us, and whoever wakes us, as much as a
/// short call takes.
const SOON: Duration = Duration::from_micros(100);
/// After so many answers in a row that took longer nobody looks out, until one comes sooner again.
const LATE: u32 = 3;
/// How long work that cannot be interrupted, such as looking up a name, is waited for at the end.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// The thread and its runtime. Dropped, both end, and everything that lives there.
#[derive(Debug)]
pub(crate) struct Keeper {
    post: Arc<Post>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and those who stand in for it share.
#[derive(Debug)]
pub(crate) struct Post {
    handle: Handle,
    runtime: Weak<Runtime>,
    state: Mutex<State>,
    /// Something the resting thread should look at.
    changed: Condvar,
    /// Calls the thread away from the runtime.
    relief: Notify,
    closed: watch::Sender<bool>,
    /// Whether a server that is gone could end us by a signal.
    shielded: bool,
    pace: Pace,
}

/// Whether it pays to look out for answers: servers that answer at once are as common as such that take their time.
#[derive(Debug)]
struct Pace {
    /// Whether somebody else can work while we look out.
    alone: bool,
    /// How many answers in a row did not come soon.
    late: AtomicU32,
}

impl Pace {
    fn new() -> Self {
        Self { alone: thread::available_parallelism().is_ok_and(|cores| cores.get() == 1), late: AtomicU32::new(0) }
    }

    fn is_quick(&self) -> bool {
        !self.alone && self.late.load(Ordering::Relaxed) < LATE
    }

    fn note(&self, waited: Duration) {
        if waited <= SOON {
            self.late.store(0, Ordering::Relaxed);
        } else if self.is_quick() {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[derive(Default)]
struct State {
    /// Those who stand in now.
    guests: usize,
    /// How many there ever were.
    visits: u64,
    place: Place,
    /// Who the thread is, once it runs.
    thread: Option<ThreadId>,
    errands: Vec<Errand>,
    closed: bool,
}

/// Something that only the thread may do.
type Errand = Box<dyn FnOnce() + Send>;

/// Where the thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// It drives the runtime, or is about to.
    #[default]
    Driving,
    /// It looks around again soon.
    Dozing,
    /// It waits to be woken.
    Resting,
}

/// What the thread does next.
enum Next {
    Drive,
    Run(Vec<Errand>),
    End,
}

impl Keeper {
    /// Starts the thread.
    pub(crate) fn new() -> io::Result<Self> {
        let runtime = Arc::new(Builder::new_current_thread().enable_all().build()?);
        let post = Arc::new(Post {
            handle: runtime.handle().clone(),
            runtime: Arc::downgrade(&runtime),
            state: Mutex::default(),
            changed: Condvar::new(),
            relief: Notify::new(),
            closed: watch::channel(false).0,
            shielded: PipeShield::is_needed(),
            pace: Pace::new(),
        });
        let kept = Arc::clone(&post);
        let thread = thread::Builder::new().name("mcp".to_owned()).spawn(move || keep(&kept, runtime))?;
        Ok(Self { post, thread: Some(thread) })
    }

    pub(crate) fn post(&self) -> &Arc<Post> {
        &self.post
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.post.close();
        if let Some(thread) = self.thread.take()
            && !self.post.is_here()
        {
            let _ = thread.join();
        }
    }
}

/// The life of the thread.
fn keep(post: &Post, runtime: Arc<Runtime>) {
    let _shield = PipeShield::raise();
    post.lock().thread = Some(thread::current().id());
    loop {
        match post.next() {
            Next::Drive => runtime.block_on(async {
                post.relief.notified().await;
                // What was asked for is on its way before somebody else takes over.
                yield_now().await;
            }),
            Next::Run(errands) => errands.into_iter().for_each(|errand| errand()),
            Next::End => break,
        }
    }
    if let Some(runtime) = Arc::into_inner(runtime) {
        runtime.shutdown_timeout(LAST_WAIT);
    }
}

impl Post {
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Whether the runtime runs us, so that waiting for it would be waiting for ourselves.
    pub(crate) fn is_here(&self) -> bool {
        Handle::try_current().is_ok_and(|current| current.id() == self.handle.id())
    }

    /// Has the runtime work on something.
    #[expect(clippy::async_yields_async, reason = "the task is begun there and waited for elsewhere")]
    pub(crate) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Task<T> {
        // While nobody drives there is nobody to wake, which is not for free.
        let idle = self.lock().place == Place::Dozing && Handle::try_current().is_err();
        match self.runtime.upgrade().filter(|_| idle) {
            Some(runtime) => {
                let work = Box::pin(work);
                runtime.block_on(async { tokio::spawn(work) })
            }
            None => self.handle.spawn(work),
        }
    }

    /// Waits for a task of the runtime, for a while if there is a limit.
    pub(crate) fn wait<T>(&self, task: &mut Task<T>, limit: Option<Duration>) -> Option<Result<T, JoinError>> {
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        // Who is on another runtime can drive none.
        if !task.is_finished()
            && Handle::try_current().is_err()
            && let Some(guest) = Guest::enter(self)
        {
            match guest.drive(task, end) {
                Outcome::Answer(answer) => return Some(answer),
                Outcome::Late => return None,
                Outcome::Closed => {}
            }
        }
        park(task, end)
    }

    /// Starts a program on the thread.
    pub(crate) async fn start(&self, children: &Arc<Children>, job: Job) -> Result<Resident, SpawnError> {
        if self.lock().thread != Some(thread::current().id()) {
            let (reply, started) = oneshot::channel();
            let children = Arc::clone(children);
            self.send(Box::new(move || {
                if !reply.is_closed() {
                    // Whoever is not waited for any more is ended by being dropped.
                    drop(reply.send(children.start(&job)));
                }
            }));
            return match started.await {
                Ok(started) => started,
                // The thread is gone, and we shall be at once.
                Err(_) => std::future::pending().await,
            };
        }
        children.start(&job)
    }

    /// Waits until the thread has started, or ended, all that it was asked to start before.
    pub(crate) async fn calm(&self) {
        let (reply, done) = oneshot::channel();
        self.send(Box::new(move || {
            let _ = reply.send(());
        }));
        let _ = done.await;
    }

    fn send(&self, errand: Errand) {
        self.lock().errands.push(errand);
        self.changed.notify_one();
        self.relief.notify_one();
    }

    /// What the thread does next; it rests here while others stand in.
    fn next(&self) -> Next {
        let mut state = self.lock();
        let mut seen = None;
        loop {
            if !state.errands.is_empty() {
                return Next::Run(std::mem::take(&mut state.errands));
            }
            if state.guests > 0 {
                state.place = Place::Resting;
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if state.closed {
                return Next::End;
            }
            let visits = state.visits;
            if visits == 0 || seen.replace(visits) == Some(visits) {
                state.place = Place::Driving;
                return Next::Drive;
            }
            state.place = Place::Dozing;
            state = self.changed.wait_timeout(state, LULL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn close(&self) {
        self.lock().closed = true;
        self.closed.send_replace(true);
        self.changed.notify_one();
        self.relief.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("guests", &self.guests).field("place", &self.place).finish_non_exhaustive()
    }
}

/// Somebody who stands in for the thread.
struct Guest<'a> {
    post: &'a Post,
    /// Given back before the thread may end it.
    runtime: Option<Arc<Runtime>>,
}

/// What came of waiting.
enum Outcome<T> {
    Answer(T),
    Late,
    /// The thread is about to end.
    Closed,
}

impl<'a> Guest<'a> {
    fn enter(post: &'a Post) -> Option<Self> {
        let mut state = post.lock();
        let runtime = post.runtime.upgrade().filter(|_| !state.closed)?;
        state.guests += 1;
        state.visits = state.visits.wrapping_add(1).max(1);
        let driving = state.place == Place::Driving;
        drop(state);
        if driving {
            post.relief.notify_one();
        }
        Some(Self { post, runtime: Some(runtime) })
    }

    fn drive<T>(&self, task: &mut Task<T>, end: Option<Instant>) -> Outcome<Result<T, JoinError>> {
        let Some(runtime) = &self.runtime else { return Outcome::Closed };
        let _shield = self.post.shielded.then(PipeShield::raise);
        let begun = Instant::now();
        let outcome = runtime.block_on(async {
            if self.post.pace.is_quick()
                && let Some(answer) = soon(task, begun).await
            {
                return Outcome::Answer(answer);
            }
            let mut closed = self.post.closed.subscribe();
            let late = async {
                match end {
                    Some(end) => tokio::time::sleep_until(end.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                answer = task => Outcome::Answer(answer),
                _ = closed.wait_for(|closed| *closed) => Outcome::Closed,
                () = late => Outcome::Late,
            }
        });
        self.post.pace.note(begun.elapsed());
        outcome
    }
}

/// The answer of a task, if it comes at once. The runtime goes on with everything else meanwhile.
async fn soon<T>(task: &mut Task<T>, begun: Instant) -> Option<Result<T, JoinError>> {
    loop {
        let look = poll_fn(|context| Poll::Ready(Pin::new(&mut *task).poll(context)));
        if let Poll::Ready(answer) = look.await {
            return Some(answer);
        }
        if begun.elapsed() > SOON {
            return None;
        }
        yield_now().await;
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        self.runtime = None;
        let mut state = self.post.lock();
        state.guests -= 1;
        let wake = state.guests == 0 && state.place == Place::Resting;
        drop(state);
        if wake {
            self.post.changed.notify_one();
        }
    }
}

/// Waits for what others bring about.
fn park<T>(task: &mut Task<T>, end: Option<Instant>) -> Option<Result<T, JoinError>> {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(answer) = Pin::new(&mut *task).poll(&mut Context::from_waker(&waker)) {
            return Some(answer);
        }
        match end.map(|end| end.checked_duration_since(Instant::now())) {
            None => thread::park(),
            Some(Some(left)) => thread::park_timeout(left),
            Some(None) => return None,
        }
    }
}
