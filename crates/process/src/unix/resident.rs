//! A program that runs until it is told to end. Its owner feeds and reads it; the clock is the owner's too.
//!
//! The steps of the ladder are apart, so that an owner with many residents can wait for all of them at once;
//! [`Resident::stop`] is the whole ladder for one that can wait here.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::leader::Leader;
use super::pipes::Ends;
use crate::End;

/// How often a program whose exit no file tells is asked for it.
const ASKING: Duration = Duration::from_millis(5);

/// A running program and its group. Dropped, the group is killed. Descendants that left the group are looked for and killed
/// soon after the program has ended; nobody waits for that.
///
/// ```
/// # use std::io::{Read, Write};
/// # use std::fs::File;
/// # use std::time::Duration;
/// # use ollm_process::{Children, End, Job};
/// let mut cat = Children::new().start(&Job::new("/bin/cat"))?;
/// let streams = cat.streams().unwrap();
/// File::from(streams.stdin).write_all(b"hello")?; // and closed, so `cat` ends
/// assert!(matches!(cat.stop(Duration::from_secs(60)), End::Exited(0)));
/// let mut text = String::new();
/// File::from(streams.stdout).read_to_string(&mut text)?;
/// assert_eq!(text, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Resident {
    leader: Leader,
    streams: Option<Ends>,
    grace: Duration,
}

impl Resident {
    pub(super) fn new(leader: Leader, streams: Ends, grace: Duration) -> Self {
        Self { leader, streams: Some(streams), grace }
    }

    /// The number of the process, which is that of its group too.
    pub fn id(&self) -> u32 {
        self.leader.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Our ends of its streams, which do not block; only once.
    pub fn streams(&mut self) -> Option<Ends> {
        self.streams.take()
    }

    /// A file that is readable once the program has exited; absent on old kernels and on other systems than Linux.
    pub fn exit_file(&self) -> Option<BorrowedFd<'_>> {
        self.leader.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Asks the whole group to end.
    pub fn ask(&self) {
        // A stopped process takes no signal but this pair.
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Ends the whole group.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// How the program ended, if it has: what is left of its group is killed, and the program reaped. Known only once;
    /// later it is [`End::Lost`].
    pub fn reap(&mut self) -> Option<End> {
        if self.leader.slot.is_none() {
            return Some(End::Lost);
        }
        if !self.leader.exited() {
            return None;
        }
        self.signal(Signal::KILL);
        self.leader.reap()
    }

    /// Waits for the end of a program that was told to end; closes its input, if that is still ours.
    ///
    /// After `patience` the group is asked to end, and after the job's grace it is killed.
    pub fn stop(mut self, patience: Duration) -> End {
        self.streams = None;
        if let Some(end) = self.wait(patience) {
            return end;
        }
        self.ask();
        if let Some(end) = self.wait(self.grace) {
            return end;
        }
        self.kill();
        self.wait(self.grace).unwrap_or(End::Lost)
    }

    fn wait(&mut self, patience: Duration) -> Option<End> {
        let started = Instant::now();
        loop {
            if let Some(end) = self.reap() {
                return Some(end);
            }
            let left = patience.checked_sub(started.elapsed())?;
            self.leader.await_exit(if self.leader.pidfd.is_some() { left } else { left.min(ASKING) });
        }
    }

    /// Once the program is reaped, its number may name a stranger's group.
    fn signal(&self, signal: Signal) {
        if self.leader.slot.is_some() {
            self.leader.signal_group(signal);
        }
    }
}
