//! What came of one program, and outlives it: descendants that left its group.

use std::mem;
use std::thread;
use std::time::Duration;

use super::signals::Blocked;
use super::strays::reap_adopted;
use super::sweep::{THOROUGH, sweep};

/// Room for the thread that looks for them.
const STACK: usize = 128 * 1024;
/// Before anybody is looked for. A command that is about to end has nobody looked for twice: it does that itself, or its
/// guard.
const PAUSE: Duration = Duration::from_millis(10);

/// The descendants of a program that is about to end. Dropped, they are looked for and killed, by a thread of their own:
/// nobody waits for that, and a look at all processes there are may take its time.
#[derive(Debug)]
pub(in crate::unix) struct Kin(Vec<u8>);

impl Kin {
    pub(super) fn new(entry: Vec<u8>) -> Self {
        Self(entry)
    }
}

impl Drop for Kin {
    fn drop(&mut self) {
        let entry = mem::take(&mut self.0);
        // Signals are for the threads that there were before.
        let _blocked = Blocked::all();
        // Where there is no thread to be had, they live until we end: the guard knows them as well.
        let _ = thread::Builder::new().name("kin".to_owned()).stack_size(STACK).spawn(move || end(&entry));
    }
}

/// Kills them, and reaps those who came to us by that.
fn end(entry: &[u8]) {
    thread::sleep(PAUSE);
    sweep(entry, THOROUGH);
    reap_adopted();
}
