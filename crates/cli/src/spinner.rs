//! Something that moves on the terminal while a command, a model, a hook or a tool works for longer than half a second.
//!
//! It has the last line of the screen to itself. Whoever prints hides it meanwhile ([`Spinner::hidden`]); whoever asks, or leaves a
//! line open, stops it first.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What is shorter needs no spinner.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often it moves.
const TICK: Duration = Duration::from_millis(120);
/// What it looks like, one after the other.
pub(crate) const PICTURES: [&str; 4] = ["◐", "◓", "◑", "◒"];

/// A spinner on standard error; where that is no terminal, nothing is drawn. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spinner(Arc<Mutex<Option<Turning>>>);

impl Spinner {
    /// Says what works now, and moves.
    pub(crate) fn start(&self, what: &str) {
        match &mut *self.turning() {
            Some(turning) => turning.bar.set_message(what.to_owned()),
            nothing => *nothing = Some(Turning::start(what)),
        }
    }

    /// Says what works now, where something moves.
    pub(crate) fn say(&self, what: &str) {
        if let Some(turning) = &*self.turning() {
            turning.bar.set_message(what.to_owned());
        }
    }

    /// Leaves the line to somebody else.
    pub(crate) fn stop(&self) {
        let turning = self.turning().take();
        drop(turning);
    }

    /// Does something that prints whole lines, while nothing moves.
    pub(crate) fn hidden<T>(&self, prints: impl FnOnce() -> T) -> T {
        let bar = self.turning().as_ref().map(|turning| turning.bar.clone());
        match bar {
            Some(bar) => bar.suspend(prints),
            None => prints(),
        }
    }

    fn turning(&self) -> MutexGuard<'_, Option<Turning>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Turns until it is dropped, which leaves the terminal as it was.
#[derive(Debug)]
struct Turning {
    bar: ProgressBar,
    /// Closed by the drop, which ends the thread.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Turning {
    fn start(what: &str) -> Turning {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} · {elapsed} · Ctrl-C interrupts") {
            let pictures: Vec<&str> = PICTURES.into_iter().chain([" "]).collect();
            bar.set_style(style.tick_strings(&pictures));
        }
        // Nothing is drawn before its first tick.
        bar.finish_and_clear();
        bar.set_message(what.to_owned());
        let (end, ended) = mpsc::channel::<()>();
        let turned = bar.clone();
        let turn = move || {
            if ended.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            turned.reset();
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                turned.tick();
            }
            turned.finish_and_clear();
        };
        // Without a thread nothing moves, and nothing else is missing.
        let thread = thread::Builder::new().name("spinner".to_owned()).spawn(turn).ok();
        Turning { bar, end: Some(end), thread }
    }
}

impl Drop for Turning {
    fn drop(&mut self) {
        self.end = None;
        // The line is gone before anything else is printed.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
