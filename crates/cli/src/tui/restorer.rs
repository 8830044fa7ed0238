//! Restores the terminal after `kill -9`, when we cannot do it.
//!
//! A second process of ours waits on a pipe. We tell it when the panels take the terminal and when they leave it. If
//! the pipe closes while they have it, we were killed, and it restores the terminal.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;

use ollm_process::SparedChild;
use rustix::termios::Termios;

use super::terminal::{mode_bits, restore};
use crate::error::OK;
use crate::open;

/// The messages to the process.
const TAKEN: u8 = b'+';
const LEFT: u8 = b'-';
const OVER: u8 = b'.';

/// The second process; dropping this ends it.
pub(super) struct Restorer {
    child: SparedChild,
}

impl Restorer {
    /// Starts it while the panels have the terminal; `modes` are the terminal's earlier modes. If it cannot start, a
    /// terminal after `kill -9` needs `reset`.
    pub(super) fn start(program: &Path, modes: &Termios) -> Option<Restorer> {
        let bits = mode_bits(modes);
        let mut command = open::ourselves(program, &["tui", "restore"]);
        command.args(bits.map(|bits| bits.to_string())).stdin(Stdio::piped()).stderr(Stdio::null());
        Some(Restorer { child: SparedChild::spawn(&mut command).ok()? })
    }

    pub(super) fn taken(&mut self) {
        self.tell(TAKEN);
    }

    pub(super) fn left(&mut self) {
        self.tell(LEFT);
    }

    fn tell(&mut self, word: u8) {
        // One that is gone restores nothing.
        let _ = self.child.stdin().map(|pipe| pipe.write_all(&[word]));
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

/// Runs the second process.
pub(crate) fn run(words: &[OsString]) -> u8 {
    // Signals to our group, and the end of the terminal, must not end it.
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
