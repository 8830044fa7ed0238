//! A request to stop, shared between the party that makes it and the running work.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ollm_process::after;

/// A token that ends running work. The first interruption ends the turn, a second one the session.
///
/// ```
/// let cancel = ollm_agent::Cancel::default();
/// cancel.interrupt();
/// assert!(cancel.is_set() && !cancel.is_final());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    times: Mutex<u32>,
    changed: Condvar,
}

impl Cancel {
    /// Interrupts the turn; a second call interrupts the session.
    pub fn interrupt(&self) {
        let mut times = self.0.times.lock().unwrap_or_else(PoisonError::into_inner);
        *times = times.saturating_add(1);
        self.0.changed.notify_all();
    }

    /// Interrupts the session at once.
    pub fn end(&self) {
        let mut times = self.0.times.lock().unwrap_or_else(PoisonError::into_inner);
        *times = times.saturating_add(2);
        self.0.changed.notify_all();
    }

    /// Whether the turn should end.
    pub fn is_set(&self) -> bool {
        self.times() > 0
    }

    /// Whether the session should end.
    pub fn is_final(&self) -> bool {
        self.times() > 1
    }

    /// Forgets an interruption, for the next turn; an interruption of the session stays.
    pub fn rearm(&self) {
        let mut times = self.0.times.lock().unwrap_or_else(PoisonError::into_inner);
        if *times == 1 {
            *times = 0;
        }
    }

    /// Waits, but at most until an interruption; returns whether one came.
    pub fn wait(&self, pause: Duration) -> bool {
        let end = after(Instant::now(), pause);
        let mut times = self.0.times.lock().unwrap_or_else(PoisonError::into_inner);
        while *times == 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            times = self.0.changed.wait_timeout(times, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn times(&self) -> u32 {
        *self.0.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_with_the_interruption() {
        let cancel = Cancel::default();
        let other = cancel.clone();
        let waiting = std::thread::spawn(move || other.wait(Duration::from_mins(10)));
        cancel.interrupt();
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn an_interruption_that_ends_the_session_is_not_forgotten() {
        let cancel = Cancel::default();
        cancel.interrupt();
        cancel.rearm();
        assert!(!cancel.is_set());
        cancel.interrupt();
        cancel.interrupt();
        cancel.rearm();
        assert!(cancel.is_final());
    }
}
