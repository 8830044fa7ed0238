//! The bus: its listeners, and how messages reach them.
//!
//! The engine sends every event it dispatches and every hook run to the bus. An embedding program may send more
//! messages. There are three ways to listen:
//!
//! - A **subscriber** ([`Bus::subscribe`]) is called at once, on the thread of the event, in order of priority. It must
//!   be quick, because the event waits for it.
//! - An **observer** ([`Bus::observe`]) has a thread and a queue of its own. No event waits for it. When its queue is
//!   full, the oldest message is dropped and counted.
//! - A **watch** ([`Bus::watch`], [`Bus::wait_for`]) has the queue but no thread: its holder fetches the messages.
//!
//! A listener that panics loses that one message; the bus calls it again for the next. While the bus has no listener
//! and keeps no history, it builds, allocates and starts nothing.
//!
//! ```
//! use std::sync::mpsc;
//! use std::time::{Duration, SystemTime};
//! use ollm_engine::bus::Filter;
//! use ollm_engine::{Engine, Environment};
//! use ollm_trust::Trust;
//! use ollm_protocol::{Event, EventKind};
//!
//! let engine = Engine::new(Trust::new("trusted-hooks.json".into(), SystemTime::now), Environment::default());
//! let (seen, events) = mpsc::channel();
//! let tools = Filter::named(["before_tool", "PostToolUse"])?;
//! let observer = engine.bus.observe(tools, 100, move |message| drop(seen.send(message.event_type().to_owned())))?;
//!
//! engine.dispatch(&Event::unchecked(EventKind::SessionStart, []));
//! engine.dispatch(&Event::unchecked(EventKind::BeforeTool, [("tool_name", "shell".into())]));
//! assert_eq!(events.recv_timeout(Duration::from_secs(10))?, "before_tool");
//! assert!(engine.bus.unsubscribe(observer));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ollm_process::after;
use ollm_protocol::Event;

mod filter;
mod message;
mod queue;
mod wire;

pub use filter::Filter;
pub use message::{Message, MessageBody};
use queue::Queue;
pub(crate) use wire::Wire;

/// Sends messages to listeners.
#[derive(Default)]
pub struct Bus {
    /// Whether there is a listener or a history. Callers check this before they build a message.
    listened: AtomicBool,
    state: Mutex<BusState>,
}

/// The handle of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subscription(u64);

/// How many messages a listener missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that its queue could not hold.
    pub dropped: u64,
    /// Messages at which it panicked.
    pub panicked: u64,
}

#[derive(Default)]
struct BusState {
    last_id: u64,
    last_sequence: u64,
    /// By priority, the highest first, then in order of registration.
    listeners: Vec<Arc<Listener>>,
    history: VecDeque<Arc<Message>>,
    kept: usize,
}

struct Listener {
    id: Subscription,
    filter: Filter,
    priority: i32,
    panicked: Arc<AtomicU64>,
    told: Delivery,
}

enum Delivery {
    AtOnce(Box<dyn Fn(&Message) + Send + Sync>),
    ByQueue(Arc<Queue>),
}

impl Bus {
    /// A bus without listeners.
    pub fn new() -> Bus {
        Bus::default()
    }

    /// Numbers the message and sends it to every listener that wants it.
    ///
    /// If a subscriber emits a message that it wants itself, the bus calls it again within its own call.
    pub fn emit(&self, message: Message) {
        if self.is_listened() {
            self.tell(message);
        }
    }

    /// Whether anything would receive a message: a listener, or the history.
    pub fn is_listened(&self) -> bool {
        self.listened.load(Ordering::Acquire)
    }

    /// Whether a listener or the history would receive the message about an event.
    fn wants(&self, event: &Event) -> bool {
        self.is_listened() && {
            let state = self.state();
            state.kept > 0 || state.listeners.iter().any(|listener| listener.filter.wants(event))
        }
    }

    /// Calls a closure for every fitting message, on the thread that emits the message. Closures run by priority, the
    /// highest first, then in order of registration.
    pub fn subscribe(
        &self,
        filter: Filter,
        priority: i32,
        closure: impl Fn(&Message) + Send + Sync + 'static,
    ) -> Subscription {
        self.add(filter, priority, Arc::default(), Delivery::AtOnce(Box::new(closure)))
    }

    /// Calls a closure for every fitting message on a thread of its own. At most `capacity` messages wait for it.
    ///
    /// The thread ends when the observer is unsubscribed; waiting messages are then dropped. It also ends when the bus
    /// is dropped, after the waiting messages are delivered. Fails only if no thread can be started.
    pub fn observe(
        &self,
        filter: Filter,
        capacity: usize,
        mut closure: impl FnMut(&Message) + Send + 'static,
    ) -> io::Result<Subscription> {
        let queue = Arc::new(Queue::new(capacity));
        let panicked = Arc::<AtomicU64>::default();
        let (own, counter) = (Arc::clone(&queue), Arc::clone(&panicked));
        thread::Builder::new().name("ollm-observer".to_owned()).spawn(move || {
            while let Some(message) = own.pop(None) {
                guarded(&counter, || closure(&message));
            }
        })?;
        Ok(self.add(filter, 0, panicked, Delivery::ByQueue(queue)))
    }

    /// Collects fitting messages from now on, at most `capacity` at a time, for the holder of the watch.
    pub fn watch(&self, filter: Filter, capacity: usize) -> Watch<'_> {
        let queue = Arc::new(Queue::new(capacity));
        let subscription = self.add(filter, 0, Arc::default(), Delivery::ByQueue(Arc::clone(&queue)));
        Watch { bus: self, subscription, queue }
    }

    /// Waits at most `patience` for a fitting message for which the predicate is true.
    ///
    /// Only messages after the call count; to begin earlier, hold a [`Watch`].
    pub fn wait_for(
        &self,
        filter: Filter,
        patience: Duration,
        predicate: impl FnMut(&Message) -> bool,
    ) -> Option<Arc<Message>> {
        const WAITING: usize = 1024;
        self.watch(filter, WAITING).wait_for(patience, predicate)
    }

    /// Removes a listener; `false` if it was already removed. It may still be handling a message.
    pub fn unsubscribe(&self, subscription: Subscription) -> bool {
        let mut state = self.state();
        let Some(at) = state.listeners.iter().position(|listener| listener.id == subscription) else { return false };
        let listener = state.listeners.remove(at);
        self.refresh(&state);
        drop(state);
        if let Delivery::ByQueue(queue) = &listener.told {
            queue.clear();
            queue.close();
        }
        true
    }

    /// How many messages a listener missed; `None` if there is no such listener.
    pub fn counts(&self, subscription: Subscription) -> Option<Counts> {
        let state = self.state();
        let listener = state.listeners.iter().find(|listener| listener.id == subscription)?;
        let dropped = match &listener.told {
            Delivery::AtOnce(_) => 0,
            Delivery::ByQueue(queue) => queue.dropped(),
        };
        Some(Counts { dropped, panicked: listener.panicked.load(Ordering::Relaxed) })
    }

    /// Keeps the last `messages` messages from now on. A new bus keeps none.
    pub fn keep(&self, messages: usize) {
        let mut state = self.state();
        state.kept = messages;
        state.trim();
        self.refresh(&state);
    }

    /// The kept messages, oldest first.
    pub fn history(&self) -> Vec<Arc<Message>> {
        self.state().history.iter().cloned().collect()
    }

    /// Deletes the messages kept so far.
    pub fn forget(&self) {
        self.state().history.clear();
    }

    fn tell(&self, mut message: Message) {
        let mut state = self.state();
        state.last_sequence += 1;
        message.sequence = state.last_sequence;
        let message = Arc::new(message);
        state.history.push_back(Arc::clone(&message));
        state.trim();
        let fitting = state.listeners.iter().filter(|listener| listener.filter.fits(&message));
        let mut at_once: Vec<Arc<Listener>> = Vec::new();
        for listener in fitting {
            match &listener.told {
                // Queues are filled under the lock, so that every observer sees the messages in the order of the
                // history.
                Delivery::ByQueue(queue) => queue.push(Arc::clone(&message)),
                Delivery::AtOnce(_) => at_once.push(Arc::clone(listener)),
            }
        }
        drop(state);
        // The lock is released here, because a subscriber may use the bus.
        for listener in at_once {
            if let Delivery::AtOnce(closure) = &listener.told {
                guarded(&listener.panicked, || closure(&message));
            }
        }
    }

    fn add(&self, filter: Filter, priority: i32, panicked: Arc<AtomicU64>, told: Delivery) -> Subscription {
        let mut state = self.state();
        state.last_id += 1;
        let id = Subscription(state.last_id);
        let at = state.listeners.partition_point(|listener| listener.priority >= priority);
        state.listeners.insert(at, Arc::new(Listener { id, filter, priority, panicked, told }));
        self.refresh(&state);
        id
    }

    fn refresh(&self, state: &BusState) {
        self.listened.store(state.kept > 0 || !state.listeners.is_empty(), Ordering::Release);
    }

    fn state(&self) -> MutexGuard<'_, BusState> {
        // Code under the lock cannot panic, so a poisoned state is still consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BusState {
    fn trim(&mut self) {
        while self.history.len() > self.kept {
            self.history.pop_front();
        }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        for listener in &self.state().listeners {
            if let Delivery::ByQueue(queue) = &listener.told {
                queue.close();
            }
        }
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let (listeners, history) = (state.listeners.len(), state.history.len());
        formatter.debug_struct("Bus").field("listeners", &listeners).field("history", &history).finish_non_exhaustive()
    }
}

/// Messages collected for the watch's holder. Dropping the watch unsubscribes it.
#[derive(Debug)]
pub struct Watch<'a> {
    bus: &'a Bus,
    subscription: Subscription,
    queue: Arc<Queue>,
}

impl Watch<'_> {
    /// The next message, if one comes within `patience`.
    pub fn next(&self, patience: Duration) -> Option<Arc<Message>> {
        self.queue.pop(Some(after(Instant::now(), patience)))
    }

    /// The next message for which the predicate is true, if one comes within `patience`.
    pub fn wait_for(&self, patience: Duration, mut predicate: impl FnMut(&Message) -> bool) -> Option<Arc<Message>> {
        let deadline = Some(after(Instant::now(), patience));
        loop {
            let message = self.queue.pop(deadline)?;
            if predicate(&message) {
                return Some(message);
            }
        }
    }

    /// How many messages the queue could not hold.
    pub fn dropped(&self) -> u64 {
        self.queue.dropped()
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.bus.unsubscribe(self.subscription);
    }
}

/// A panic may leave a listener's own state half changed; the listener's owner has to guard that state.
fn guarded(panicked: &AtomicU64, call: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(call)).is_err() {
        panicked.fetch_add(1, Ordering::Relaxed);
    }
}
