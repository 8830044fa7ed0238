//! Waits for a key, a signal, a message of another thread, or a given moment.

use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::SigId;
use signal_hook::consts::{
    SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH,
    SIGXCPU,
};

/// The signals that would end us without a crash.
pub(crate) const ENDING: [i32; 11] =
    [SIGHUP, SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGXCPU];
/// Other signals that matter here. They come last, because they may need a terminal that is closed.
const OTHERS: [i32; 3] = [SIGTSTP, SIGCONT, SIGWINCH];

/// Everything that can wake the loop.
pub(crate) struct Wakeup {
    stream: UnixStream,
    /// Whether the keyboard is watched.
    has_keyboard: bool,
    signals: Vec<Signal>,
}

struct Signal {
    number: i32,
    came: Arc<AtomicBool>,
    ids: Vec<SigId>,
}

/// The reason why the loop is awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Awake {
    /// Keys can be read.
    pub(crate) has_keys: bool,
    /// The terminal is closed.
    pub(crate) is_hung_up: bool,
}

impl Wakeup {
    /// Listens for signals; writing to the returned stream also wakes the loop.
    pub(crate) fn new() -> io::Result<(Wakeup, UnixStream)> {
        let (stream, waker) = UnixStream::pair()?;
        stream.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let mut wakeup = Wakeup { stream, has_keyboard: true, signals: Vec::new() };
        for number in ENDING.into_iter().chain(OTHERS) {
            let came = Arc::new(AtomicBool::new(false));
            // The mark is set before the stream wakes.
            let ids = vec![
                signal_hook::flag::register(number, Arc::clone(&came))?,
                signal_hook::low_level::pipe::register(number, waker.try_clone()?)?,
            ];
            wakeup.signals.push(Signal { number, came, ids });
        }
        Ok((wakeup, waker))
    }

    /// Sleeps until anything but a key comes.
    pub(crate) fn wait_for_others(&mut self) -> io::Result<()> {
        let has_keyboard = std::mem::replace(&mut self.has_keyboard, false);
        let waited = self.wait(None);
        self.has_keyboard = has_keyboard;
        waited.map(drop)
    }

    /// Sleeps until something comes, or until the time is over.
    pub(crate) fn wait(&mut self, moment: Option<Duration>) -> io::Result<Awake> {
        let stdin = io::stdin();
        let moment = moment.and_then(|moment| Timespec::try_from(moment).ok());
        let mut looked = vec![PollFd::from_borrowed_fd(self.stream.as_fd(), PollFlags::IN)];
        if self.has_keyboard {
            looked.push(PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN));
        }
        match poll(&mut looked, moment.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let seen = looked.get(1).map_or(PollFlags::empty(), PollFd::revents);
        let awake = Awake {
            has_keys: seen.contains(PollFlags::IN),
            is_hung_up: seen.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL),
        };
        let mut room = [0; 256];
        while (&self.stream).read(&mut room).is_ok_and(|count| count > 0) {}
        Ok(awake)
    }

    /// Stops watching a closed terminal, which would wake us for ever.
    pub(crate) fn forget_keyboard(&mut self) {
        self.has_keyboard = false;
    }

    /// The next signal since the last call.
    pub(crate) fn signal(&self) -> Option<i32> {
        let came = |signal: &&Signal| signal.came.swap(false, Ordering::SeqCst);
        self.signals.iter().find(came).map(|signal| signal.number)
    }

    /// Forgets a signal that we caused.
    pub(crate) fn forget_signal(&self, number: i32) {
        let same = self.signals.iter().filter(|signal| signal.number == number);
        same.for_each(|signal| signal.came.store(false, Ordering::SeqCst));
    }
}

impl Drop for Wakeup {
    fn drop(&mut self) {
        for id in self.signals.iter().flat_map(|signal| &signal.ids) {
            signal_hook::low_level::unregister(*id);
        }
    }
}
