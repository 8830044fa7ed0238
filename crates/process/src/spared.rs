//! Children that the program started outside all `Children`, and wants to keep: they survive the end of adopted
//! descendants.

use std::io;
use std::process::{Child, ChildStdin, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The process ids of the spared children. The list is one per process, because a process has one set of children.
static SPARED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// A child that is neither a job nor an adopted descendant, such as an editor, a browser, or another process of the
/// program itself.
///
/// [`Children::kill_adopted`](crate::Children::kill_adopted) and the end of a [`ProcessSetup`](crate::ProcessSetup)
/// spare it. Dropped before `wait`, it continues to run, and counts as adopted.
#[derive(Debug)]
pub struct SparedChild {
    child: Child,
}

impl SparedChild {
    /// Starts it.
    pub fn spawn(command: &mut Command) -> io::Result<SparedChild> {
        // The lock is held during the start, so that the child is not taken for an adopted one before its id is known.
        let mut spared = lock();
        let child = command.spawn()?;
        spared.push(child.id());
        Ok(SparedChild { child })
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// How it ended, if it has.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Its standard input, if that is a pipe.
    pub fn stdin(&mut self) -> Option<&mut ChildStdin> {
        self.child.stdin.as_mut()
    }
}

impl Drop for SparedChild {
    fn drop(&mut self) {
        let mut spared = lock();
        if let Some(at) = spared.iter().position(|id| *id == self.child.id()) {
            spared.swap_remove(at);
        }
    }
}

/// Whether a child is spared. If a start is under way, this waits for its end.
#[cfg(unix)]
pub(crate) fn is_spared(id: u32) -> bool {
    lock().contains(&id)
}

fn lock() -> MutexGuard<'static, Vec<u32>> {
    SPARED.lock().unwrap_or_else(PoisonError::into_inner)
}
