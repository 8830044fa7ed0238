//! What works just now, on the plain terminal: a sign that turns while a model, a hook or a tool works.
//!
//! It has the last line of the screen to itself. Whoever prints hides it meanwhile ([`Activity::hidden`]); whoever asks, or leaves
//! a line open, stops it first.

use std::sync::Arc;

use ollm_app::Shared;

use crate::output::is_terminal;
use crate::spinner::Spinner;

/// The sign that turns and what it says, or none; shared by whoever prints and whoever asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activity(Option<Arc<Shared<Option<Sign>>>>);

#[derive(Debug)]
struct Sign {
    what: String,
    /// Dropped, it leaves the line.
    _spinner: Spinner,
}

impl Activity {
    /// For a terminal; elsewhere nothing is drawn.
    pub(crate) fn new() -> Activity {
        Activity(is_terminal().then(Arc::default))
    }

    /// Says what works now.
    pub(crate) fn start(&self, what: &str) {
        let Some(shown) = &self.0 else { return };
        // The one before leaves the line first.
        *shown.lock() = None;
        *shown.lock() = Some(Sign { what: what.to_owned(), _spinner: Spinner::start(what) });
    }

    /// Leaves the line to somebody else.
    pub(crate) fn stop(&self) {
        if let Some(shown) = &self.0 {
            *shown.lock() = None;
        }
    }

    /// Does something that prints whole lines, while nothing turns.
    pub(crate) fn hidden<T>(&self, prints: impl FnOnce() -> T) -> T {
        let what = self.0.as_ref().and_then(|shown| shown.lock().take()).map(|sign| sign.what);
        let printed = prints();
        if let Some(what) = what {
            self.start(&what);
        }
        printed
    }
}
