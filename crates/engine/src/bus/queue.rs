//! A bounded queue that never makes its writer wait. When it is full, it drops the oldest message and counts it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::Message;

#[derive(Debug)]
pub(super) struct Queue {
    capacity: usize,
    state: Mutex<QueueState>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    messages: VecDeque<Arc<Message>>,
    dropped: u64,
    closed: bool,
}

impl Queue {
    /// A queue for at least one message.
    pub(super) fn new(capacity: usize) -> Queue {
        Queue { capacity: capacity.max(1), state: Mutex::default(), arrived: Condvar::new() }
    }

    pub(super) fn push(&self, message: Arc<Message>) {
        let mut state = self.state();
        if state.messages.len() >= self.capacity {
            state.messages.pop_front();
            state.dropped += 1;
        }
        state.messages.push_back(message);
        drop(state);
        self.arrived.notify_one();
    }

    /// The oldest message; waits for one until the deadline, or until the queue is closed.
    pub(super) fn pop(&self, deadline: Option<Instant>) -> Option<Arc<Message>> {
        let mut state = self.state();
        loop {
            if let Some(message) = state.messages.pop_front() {
                return Some(message);
            }
            if state.closed {
                return None;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            state = match left {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => return None,
                Some(left) => self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    /// Closes the queue: no message can be added, and waiting messages can still be fetched.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.arrived.notify_all();
    }

    pub(super) fn clear(&self) {
        self.state().messages.clear();
    }

    pub(super) fn dropped(&self) -> u64 {
        self.state().dropped
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        // Code under the lock cannot panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
