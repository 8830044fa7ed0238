//! One `poll` loop over all children of a call.

use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::child::{Child, Source};
use super::platform::HeldSignals;
use crate::Outcome;

/// How often a child is polled whose exit no file descriptor signals.
const ASKING: Duration = Duration::from_millis(2);

/// How often `stop` is called.
const LOOKING: Duration = Duration::from_millis(20);

/// A job under way.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "most are live, and few exist")]
pub(super) enum JobRun {
    Live(Child),
    Done(Outcome),
}

/// Something that is ready.
#[derive(Clone, Copy, Debug)]
enum ReadySource {
    File(usize, Source),
    Signal,
}

/// Returns true once the jobs are no longer wanted.
pub(super) type Stop<'a> = &'a dyn Fn() -> bool;

/// Returns when no child has anything left to wait for. A held-back signal interrupts all of them, and so does `stop`
/// once it returns true.
pub(super) fn supervise(runs: &mut [JobRun], held: Option<&HeldSignals>, stop: Option<Stop<'_>>) {
    let mut stop = stop;
    while let Some(pause) = pause(runs) {
        let pause = if stop.is_some() { pause.min(LOOKING) } else { pause };
        for ready in wait(runs, held, pause) {
            match ready {
                ReadySource::File(index, source) => {
                    if let Some(JobRun::Live(child)) = runs.get_mut(index) {
                        child.ready(source);
                    }
                }
                ReadySource::Signal => {
                    held.inspect(|held| held.take());
                    each_live(runs, Child::interrupt);
                }
            }
        }
        // A second interruption would end the grace, so `stop` is not called again after it returned true.
        if stop.is_some_and(|stop| stop()) {
            stop = None;
            each_live(runs, Child::interrupt);
        }
        each_live(runs, Child::tick);
    }
}

/// The time until the next timer; `None` once all jobs are over.
fn pause(runs: &[JobRun]) -> Option<Duration> {
    let next = live(runs).filter_map(|(_, child)| child.timer()).min()?;
    let pause = next.saturating_duration_since(Instant::now());
    let asking = live(runs).any(|(_, child)| child.needs_asking());
    Some(if asking { pause.min(ASKING) } else { pause })
}

/// Waits for files of the children and for signals.
fn wait(runs: &[JobRun], held: Option<&HeldSignals>, pause: Duration) -> Vec<ReadySource> {
    let files = live(runs)
        .flat_map(|(index, child)| child.sources().map(move |(source, fd)| (ReadySource::File(index, source), fd)));
    let watched: Vec<_> = files.chain(held.map(|held| (ReadySource::Signal, held.file()))).collect();
    let mut fds: Vec<_> = watched.iter().map(|(ready, fd)| PollFd::from_borrowed_fd(*fd, interest(*ready))).collect();
    match poll(&mut fds, Timespec::try_from(pause).ok().as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Vec::new(),
        Err(_) => {
            // The kernel is short of memory: deadlines continue, without a busy loop.
            thread::sleep(pause.min(ASKING));
            return Vec::new();
        }
    }
    watched.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()).map(|((ready, _), _)| *ready).collect()
}

fn interest(ready: ReadySource) -> PollFlags {
    match ready {
        ReadySource::File(_, Source::Stdin) => PollFlags::OUT,
        ReadySource::File(_, Source::Output(_) | Source::Exit) | ReadySource::Signal => PollFlags::IN,
    }
}

fn each_live(runs: &mut [JobRun], act: impl Fn(&mut Child)) {
    for run in runs {
        if let JobRun::Live(child) = run {
            act(child);
        }
    }
}

fn live(runs: &[JobRun]) -> impl Iterator<Item = (usize, &Child)> {
    runs.iter().enumerate().filter_map(|(index, run)| match run {
        JobRun::Live(child) => Some((index, child)),
        JobRun::Done(_) => None,
    })
}
