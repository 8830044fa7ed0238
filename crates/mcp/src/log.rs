//! The last words of a server: lines of its standard error and of its log messages, bounded, secrets hidden.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use ollm_store::{Redactor, cut, escape_for_people};

/// Bytes kept of one line, more than are shown: half a secret would not be recognised.
const KEPT: usize = 4096;
/// Bytes shown of one line.
const SHOWN: usize = 2048;
/// Bytes shown of the last lines in a message.
const TAIL: usize = 2048;

/// Lines that a server wrote, the oldest dropped when there are too many.
#[derive(Debug)]
pub(crate) struct Log {
    redactor: Redactor,
    bound: usize,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    /// The number of the next line, counted from the first one ever.
    next: u64,
    kept: VecDeque<String>,
}

impl Log {
    pub(crate) fn new(redactor: Redactor, bound: usize) -> Self {
        Self { redactor, bound: bound.max(1), lines: Mutex::default() }
    }

    /// The same text without secrets, fit for eyes.
    pub(crate) fn clean(&self, text: &str) -> String {
        escape_for_people(&self.redactor.redact_str(text)).into_owned()
    }

    /// Adds a line. It is cleaned when it is looked at, so that a flood of lines costs little.
    pub(crate) fn add(&self, line: &str) {
        let kept = line.get(..line.floor_char_boundary(KEPT)).unwrap_or_default().to_owned();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.next += 1;
        lines.kept.push_back(kept);
        while lines.kept.len() > self.bound {
            lines.kept.pop_front();
        }
    }

    /// The kept lines from a number on, and the number of the next line.
    pub(crate) fn since(&self, number: u64) -> (Vec<String>, u64) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let first = lines.next.saturating_sub(lines.kept.len() as u64);
        let skipped = usize::try_from(number.saturating_sub(first)).unwrap_or(usize::MAX);
        let shown = lines.kept.iter().skip(skipped).map(|line| cut(&self.clean(line), SHOWN).into_owned());
        (shown.collect(), lines.next)
    }

    /// The number of the next line.
    pub(crate) fn mark(&self) -> u64 {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).next
    }

    /// The last lines from a number on, as much as fits into a message.
    pub(crate) fn tail(&self, number: u64) -> String {
        let (lines, _) = self.since(number);
        let mut room = TAIL;
        let fits = |line: &&String| {
            let fits = line.len() < room;
            room = room.saturating_sub(line.len() + 1);
            fits
        };
        let mut last: Vec<_> = lines.iter().rev().take_while(fits).map(String::as_str).collect();
        last.reverse();
        last.join("\n")
    }
}
