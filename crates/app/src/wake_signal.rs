//! Wakes a thread that waits for one of several events.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ollm_protocol::Code;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::AppError;

/// Wakes the thread that waits for it. Clones are the same one. A wake that comes before the wait ends the wait at
/// once.
///
/// ```
/// # use ollm_app::{Wait, WakeSignal};
/// let signal = WakeSignal::new().unwrap();
/// signal.wake();
/// assert_eq!(signal.wait(None), Wait::Woken);
/// signal.end();
/// assert_eq!(signal.wait(None), Wait::Ended);
/// ```
#[derive(Clone, Debug)]
pub struct WakeSignal(Arc<WakePipe>);

#[derive(Debug)]
struct WakePipe {
    waker: UnixStream,
    sleeper: UnixStream,
    is_over: AtomicBool,
}

/// The reason why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A wake ended the wait; now and then there was no wake.
    Woken,
    /// The other descriptor can be read.
    Readable,
    /// The time is over.
    Elapsed,
    /// The signal has ended for good.
    Ended,
}

impl WakeSignal {
    /// A signal that has not been given yet.
    pub fn new() -> Result<WakeSignal, AppError> {
        let failed = |error| AppError::new(Code::Environment, format!("nothing can wake a thread that waits: {error}"));
        let (waker, sleeper) = pair().map_err(failed)?;
        Ok(WakeSignal(Arc::new(WakePipe { waker, sleeper, is_over: AtomicBool::new(false) })))
    }

    /// Wakes the waiting thread.
    pub fn wake(&self) {
        // A full pipe wakes the thread too.
        let _ = (&self.0.waker).write(&[0]);
    }

    /// Ends every wait, from now on.
    pub fn end(&self) {
        self.0.is_over.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Waits for a wake, at most this long.
    pub fn wait(&self, longest: Option<Duration>) -> Wait {
        self.wait_or_read(None, longest)
    }

    /// Waits for a wake or until another descriptor can be read, at most this long.
    pub fn wait_or_read(&self, other: Option<BorrowedFd<'_>>, longest: Option<Duration>) -> Wait {
        let longest = longest.and_then(|longest| Timespec::try_from(longest).ok());
        let own = PollFd::from_borrowed_fd(self.0.sleeper.as_fd(), PollFlags::IN);
        let mut looked: Vec<PollFd<'_>> =
            [own].into_iter().chain(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN))).collect();
        let ready = poll(&mut looked, longest.as_ref());
        let is_own = looked.first().is_some_and(|own| !own.revents().is_empty());
        let mut room = [0; 256];
        while (&self.0.sleeper).read(&mut room).is_ok_and(|count| count > 0) {}
        match ready {
            _ if self.0.is_over.load(Ordering::SeqCst) => Wait::Ended,
            Ok(0) => Wait::Elapsed,
            Ok(_) if !is_own => Wait::Readable,
            // A system signal interrupted the wait.
            Ok(_) | Err(_) => Wait::Woken,
        }
    }
}

fn pair() -> io::Result<(UnixStream, UnixStream)> {
    let (waker, sleeper) = UnixStream::pair()?;
    waker.set_nonblocking(true)?;
    sleeper.set_nonblocking(true)?;
    Ok((waker, sleeper))
}
