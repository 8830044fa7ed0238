//! One `poll` loop over all children of a call.

use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::child::{Child, Source};
use crate::Outcome;

/// How often a child whose exit no file tells is asked for it.
const ASKING: Duration = Duration::from_millis(2);

/// A job on its way.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "most are live, and few exist")]
pub(super) enum Run {
    Live(Child),
    Done(Outcome),
}

/// Returns when no child has anything left to wait for.
pub(super) fn supervise(runs: &mut [Run]) {
    while let Some(pause) = pause(runs) {
        for (index, source) in wait(runs, pause) {
            if let Some(Run::Live(child)) = runs.get_mut(index) {
                child.ready(source);
            }
        }
        for run in runs.iter_mut() {
            if let Run::Live(child) = run {
                child.tick();
            }
        }
    }
}

/// The time until the next timer; none when all is over.
fn pause(runs: &[Run]) -> Option<Duration> {
    let next = live(runs).filter_map(|(_, child)| child.timer()).min()?;
    let pause = next.saturating_duration_since(Instant::now());
    let asking = live(runs).any(|(_, child)| child.needs_asking());
    Some(if asking { pause.min(ASKING) } else { pause })
}

/// The files that are ready, of the children they belong to.
fn wait(runs: &[Run], pause: Duration) -> Vec<(usize, Source)> {
    let watched: Vec<_> =
        live(runs).flat_map(|(index, child)| child.sources().map(move |(source, fd)| (index, source, fd))).collect();
    let mut fds: Vec<_> =
        watched.iter().map(|(_, source, fd)| PollFd::from_borrowed_fd(*fd, interest(*source))).collect();
    match poll(&mut fds, Timespec::try_from(pause).ok().as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Vec::new(),
        Err(_) => {
            // The kernel is short of memory: the clocks go on, without a busy loop.
            thread::sleep(pause.min(ASKING));
            return Vec::new();
        }
    }
    watched
        .iter()
        .zip(&fds)
        .filter(|(_, fd)| !fd.revents().is_empty())
        .map(|((index, source, _), _)| (*index, *source))
        .collect()
}

fn interest(source: Source) -> PollFlags {
    match source {
        Source::Stdin => PollFlags::OUT,
        Source::Output(_) | Source::Exit => PollFlags::IN,
    }
}

fn live(runs: &[Run]) -> impl Iterator<Item = (usize, &Child)> {
    runs.iter().enumerate().filter_map(|(index, run)| match run {
        Run::Live(child) => Some((index, child)),
        Run::Done(_) => None,
    })
}
