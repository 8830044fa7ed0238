//! A program that runs until it is told to end. Its owner feeds and reads it; the clock is the owner's too.
//!
//! The steps of the ladder are apart, so that an owner with many residents can wait for all of them at once;
//! [`Resident::stop`] is the whole ladder for one that can wait here.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pipes::Streams;
use super::platform::Reaper;
use crate::{End, Job, ProcessBox};

/// How often a program whose exit no file tells is asked for it.
const ASKING: Duration = Duration::from_millis(5);
/// How long a killed program and its descendants may take to end.
const SETTLE: Duration = Duration::from_secs(1);

/// A running program and its descendants. All of them are killed when this is dropped and when the program ends: on Linux
/// also those who left its group and session and cleared their environment.
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
    /// What its box has outside of the kernel lasts as long as the program does.
    _process_box: Option<Arc<ProcessBox>>,
}

impl Resident {
    pub(super) fn new(reaper: Reaper, streams: Streams, job: &Job) -> Self {
        Self { reaper, streams: Some(streams), grace: job.limits.grace, _process_box: job.process_box.clone() }
    }

    /// The number of the process, which is that of its group too.
    pub fn id(&self) -> u32 {
        self.reaper.id().as_raw_nonzero().get().unsigned_abs()
    }

    /// Our ends of its streams, which do not block; only once.
    pub fn streams(&mut self) -> Option<Streams> {
        self.streams.take()
    }

    /// A file that is readable once the program has ended, and mostly not before its descendants have; absent on other
    /// systems than Linux, and after the end is known.
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

    /// How the program ended, if it has; what is left of its group is killed. Known only once; later it is [`End::Lost`].
    pub fn reap(&mut self) -> Option<End> {
        self.reaper.reap()
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
