//! Gives the terminal back where we cannot: after `kill -9`.
//!
//! A second process of ours waits on a pipe. It is told when the panels take the terminal and when they leave it. Where the
//! pipe ends while they have it, we were killed, and it leaves the terminal as it was.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::termios::Termios;

use super::terminal::{mode_bits, restore};
use crate::error::OK;
use crate::open;

/// What it is told.
const TAKEN: u8 = b'+';
const LEFT: u8 = b'-';
const OVER: u8 = b'.';

/// The other process. Dropped, it ends.
pub(super) struct Restorer {
    child: Child,
}

impl Restorer {
    /// Starts it while the panels have the terminal; `modes` are those of the terminal as it was. Without it, only `kill -9` leaves the terminal to `reset`.
    pub(super) fn start(program: &Path, modes: &Termios) -> Option<Restorer> {
        let bits = mode_bits(modes);
        let mut command = open::ourselves(program, &["tui", "restore"]);
        command.args(bits.map(|bits| bits.to_string())).stdin(Stdio::piped()).stderr(Stdio::null());
        Some(Restorer { child: command.spawn().ok()? })
    }

    pub(super) fn taken(&mut self) {
        self.tell(TAKEN);
    }

    pub(super) fn left(&mut self) {
        self.tell(LEFT);
    }

    fn tell(&mut self, word: u8) {
        // One that is gone restores nothing.
        let _ = self.child.stdin.as_mut().map(|pipe| pipe.write_all(&[word]));
    }
}

impl Drop for Restorer {
    fn drop(&mut self) {
        self.left();
        // The pipe alone would not end while a process that began as a copy of ours has it.
        self.tell(OVER);
        let _ = self.child.wait();
    }
}

/// The life of the other process.
pub(crate) fn run(words: &[OsString]) -> u8 {
    // Neither a signal for our group nor the end of the terminal is meant for it.
    let _ = rustix::process::setsid();
    let last = io::stdin().lock().bytes().map_while(Result::ok).take_while(|word| *word != OVER).last();
    // They have the terminal when it is started.
    if last.is_none_or(|last| last == TAKEN) {
        let bits = words.iter().filter_map(|word| word.to_str()?.parse().ok()).collect::<Vec<u64>>();
        // A terminal that is gone needs nothing.
        let _ = restore(&bits);
    }
    OK
}
