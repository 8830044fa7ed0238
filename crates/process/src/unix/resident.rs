//! A program that runs until its owner ends it. The owner reads and writes its streams, and decides about deadlines.
//!
//! The steps to end it are separate, so that an owner with many residents can wait for all of them at once.
//! [`Resident::stop`] does all steps for an owner that can wait.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pipes::Streams;
use super::platform::Reaper;
use crate::{End, Job, ProcessBox};

/// How often the exit is polled if no file descriptor signals it.
const ASKING: Duration = Duration::from_millis(5);
/// How long a killed program and its descendants may take to end.
const SETTLE: Duration = Duration::from_secs(1);

/// A running program and its descendants. All of them are killed when this is dropped and when the program ends. On
/// Linux this includes descendants that left its group and session and cleared their environment.
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
    reaper: Reaper,
    streams: Option<Streams>,
    grace: Duration,
    /// Keeps the parts of its box outside the kernel until the program has ended.
    _process_box: Option<Arc<ProcessBox>>,
}

impl Resident {
    pub(super) fn new(reaper: Reaper, streams: Streams, job: &Job) -> Self {
        Self { reaper, streams: Some(streams), grace: job.limits.grace, _process_box: job.process_box.clone() }
    }

    /// Its process id, which is also its group's id.
    pub fn id(&self) -> u32 {
        self.reaper.id().as_raw_nonzero().get().unsigned_abs()
    }

    /// Our ends of its streams, which do not block; returned only once.
    pub fn streams(&mut self) -> Option<Streams> {
        self.streams.take()
    }

    /// A file descriptor that is readable once the program has ended, and usually also its descendants. Absent on
    /// systems other than Linux, and after the end is known.
    pub fn exit_file(&self) -> Option<BorrowedFd<'_>> {
        self.reaper.exit_file()
    }

    /// Asks the whole group to end.
    pub fn ask(&self) {
        self.reaper.ask();
    }

    /// Kills the whole group.
    pub fn kill(&self) {
        self.reaper.kill();
    }

    /// How the program ended, if it has; the rest of its group is killed. Returned only once; later it is
    /// [`End::Lost`].
    pub fn reap(&mut self) -> Option<End> {
        self.reaper.reap()
    }

    /// Waits for the end of a program that was asked to end; closes its input, if we still have it.
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
        self.wait(SETTLE).unwrap_or(End::Lost)
    }

    fn wait(&mut self, patience: Duration) -> Option<End> {
        let started = Instant::now();
        loop {
            if let Some(end) = self.reap() {
                return Some(end);
            }
            let left = patience.checked_sub(started.elapsed())?;
            self.reaper.await_exit(if self.exit_file().is_some() { left } else { left.min(ASKING) });
        }
    }
}
