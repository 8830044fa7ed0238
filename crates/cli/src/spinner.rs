//! A sign on the terminal that something goes on, for what takes longer than half a second.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// What is shorter needs no sign.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the sign turns.
const TURN: Duration = Duration::from_millis(100);

/// Turns until it is dropped, which leaves the terminal as it was.
#[derive(Debug)]
pub(crate) struct Spinner {
    /// Closed by the drop, which ends the thread.
    end: Option<Sender<()>>,
    turning: Option<JoinHandle<()>>,
}

impl Spinner {
    pub(crate) fn start(what: &str) -> Spinner {
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
        Spinner { end: Some(end), turning }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.end = None;
        // The line is gone before anything else is printed.
        if let Some(turning) = self.turning.take() {
            let _ = turning.join();
        }
    }
}
