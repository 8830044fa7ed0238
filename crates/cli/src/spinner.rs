//! A spinner on the terminal while a command, a model, a hook or a tool works for longer than half a second.
//!
//! It uses the last line of the screen alone. Code that prints hides it meanwhile ([`Spinner::hidden`]). Code that asks
//! a question or leaves a line unfinished stops it first.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work needs no spinner.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often it moves.
const TICK: Duration = Duration::from_millis(120);
/// Its pictures, in order.
pub(crate) const PICTURES: [&str; 4] = ["◐", "◓", "◑", "◒"];

/// A spinner on standard error; nothing is drawn if that is no terminal. Clones are the same spinner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spinner(Arc<Mutex<Option<Turning>>>);

impl Spinner {
    /// Starts the spinner with a text about the running work.
    pub(crate) fn start(&self, what: &str) {
        match &mut *self.turning() {
            Some(turning) => turning.bar.set_message(what.to_owned()),
            nothing => *nothing = Some(Turning::start(what)),
        }
    }

    /// Changes the text, if the spinner is running.
    pub(crate) fn say(&self, what: &str) {
        if let Some(turning) = &*self.turning() {
            turning.bar.set_message(what.to_owned());
        }
    }

    /// Stops the spinner and frees the line.
    pub(crate) fn stop(&self) {
        let turning = self.turning().take();
        drop(turning);
    }

    /// Prints whole lines while the spinner is hidden.
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

/// A running spinner; dropping it restores the terminal.
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
        // Nothing is drawn before the first tick.
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
        // Without a thread there is no spinner, and everything else works.
        let thread = thread::Builder::new().name("spinner".to_owned()).spawn(turn).ok();
        Turning { bar, end: Some(end), thread }
    }
}

impl Drop for Turning {
    fn drop(&mut self) {
        self.end = None;
        // Waits until the line is gone, before anything else is printed.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
