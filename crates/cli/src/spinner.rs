//! Something that moves on the plain terminal: while a model, a hook or a tool of a chat works, and where a command takes longer
//! than half a second.
//!
//! That of a chat has the last line of the screen to itself. Whoever prints hides it meanwhile ([`Spinner::hidden`]); whoever asks, or leaves
//! a line open, stops it first.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often it moves.
const TICK: Duration = Duration::from_millis(120);

/// A spinner, which may be none at all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spinner(Option<ProgressBar>);

impl Spinner {
    /// A spinner on standard error; where that is no terminal, nothing is drawn.
    pub(crate) fn new() -> Spinner {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} · {elapsed} · Ctrl-C interrupts") {
            bar.set_style(style.tick_strings(&["◐", "◓", "◑", "◒", " "]));
        }
        bar.finish_and_clear();
        Spinner(Some(bar))
    }

    /// Says what works now, and moves.
    pub(crate) fn start(&self, what: &str) {
        let Some(bar) = &self.0 else { return };
        bar.set_message(what.to_owned());
        if bar.is_finished() {
            bar.reset();
            bar.enable_steady_tick(TICK);
        }
    }

    /// Leaves the line to somebody else.
    pub(crate) fn stop(&self) {
        if let Some(bar) = self.0.as_ref().filter(|bar| !bar.is_finished()) {
            bar.disable_steady_tick();
            bar.finish_and_clear();
        }
    }

    /// Does something that prints whole lines, while nothing moves.
    pub(crate) fn hidden<T>(&self, prints: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(bar) => bar.suspend(prints),
            None => prints(),
        }
    }
}

/// What is shorter needs no sign.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the sign turns.
const TURN: Duration = Duration::from_millis(100);

/// Turns until it is dropped, which leaves the terminal as it was.
#[derive(Debug)]
pub(crate) struct WaitingSign {
    /// Closed by the drop, which ends the thread.
    end: Option<Sender<()>>,
    turning: Option<JoinHandle<()>>,
}

impl WaitingSign {
    pub(crate) fn start(what: &str) -> WaitingSign {
        let (end, ended) = mpsc::channel::<()>();
        let what = what.to_owned();
        let turn = move || {
            if ended.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
                bar.set_style(style);
            }
            bar.set_message(what);
            while ended.recv_timeout(TURN) == Err(RecvTimeoutError::Timeout) {
                bar.tick();
            }
            bar.finish_and_clear();
        };
        // Without a thread there is no sign, and nothing else is missing.
        let turning = thread::Builder::new().name("spinner".to_owned()).spawn(turn).ok();
        WaitingSign { end: Some(end), turning }
    }
}

impl Drop for WaitingSign {
    fn drop(&mut self) {
        self.end = None;
        // The line is gone before anything else is printed.
        if let Some(turning) = self.turning.take() {
            let _ = turning.join();
        }
    }
}
