//! One running job as a state machine: its input, its output, and its current deadline.

use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, read, write};
use rustix::process::Signal;

use super::leader::Leader;
use super::pipes::Streams;
use crate::{End, Job, Limits, Outcome, ProcessBox, Stream, after};

/// How long an interrupted job may take to end by itself, if its own grace is not shorter.
const PARTING: Duration = Duration::from_millis(200);
/// How long a killed group may take to exit before the job returns without it.
const SETTLE: Duration = Duration::from_millis(100);
/// How long we first wait only for the exit of a program. Most programs end in that time, and each further awaited
/// event would wake us once more. A program that fills a pipe waits this long for us.
const QUIET: Duration = Duration::from_millis(2);
/// Buffer space for one read. A quiet job needs two pages; the buffer of a loud one grows by doubling.
const CHUNK: usize = 8 * 1024;

/// A job whose program was started.
#[derive(Debug)]
pub(super) struct Child {
    leader: Leader,
    stdin: Option<Input>,
    stdout: Output,
    stderr: Output,
    limits: Limits,
    started: Instant,
    /// Until this moment, only the exit is awaited.
    quiet: Option<Instant>,
    state: ChildState,
    /// Keeps the parts of its box outside the kernel until the program has ended.
    _process_box: Option<Arc<ProcessBox>>,
}

/// What the job waits for, and until when.
#[derive(Debug)]
enum ChildState {
    /// The program runs within its time.
    Running { deadline: Instant },
    /// Its time is over, or we were interrupted; the group was asked to end.
    Terminating { end: End, kill_at: Instant },
    /// The group was killed, but the program has not exited yet.
    Killed { end: End, until: Instant },
    /// The program has exited; its streams may still be open. An `end` replaces its exit status.
    Draining { end: Option<End>, until: Instant },
    /// The job waits for nothing more.
    Over { end: End, leaky: bool, elapsed: Duration },
}

/// A file of a child that the supervisor waits on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Stdin,
    Output(Stream),
    Exit,
}

impl Child {
    pub(super) fn new(leader: Leader, ours: Streams, job: &mut Job, started: Instant) -> Self {
        let stdin = mem::take(&mut job.stdin);
        let cap = job.limits.output;
        let mut child = Self {
            leader,
            stdin: Some(Input { pipe: ours.stdin, bytes: stdin, written: 0 }),
            stdout: Output::new(ours.stdout, cap),
            stderr: Output::new(ours.stderr, cap),
            limits: job.limits.clone(),
            started,
            quiet: None,
            state: ChildState::Running { deadline: after(started, job.limits.timeout) },
            _process_box: job.process_box.take(),
        };
        child.feed();
        if child.stdin.is_none() && child.leader.pidfd.is_some() {
            child.quiet = Some(after(Instant::now(), QUIET));
        } else {
            child.leader.separate_guard();
        }
        child
    }

    /// The file descriptors to wait on now.
    pub(super) fn sources(&self) -> impl Iterator<Item = (Source, BorrowedFd<'_>)> {
        let gone = matches!(self.state, ChildState::Draining { .. } | ChildState::Over { .. });
        let exit = self.leader.pidfd.as_ref().filter(|_| !gone);
        let stdin = self.stdin.as_ref().map(|input| &input.pipe);
        let (stdout, stderr) = match self.quiet {
            Some(_) => (None, None),
            None => (self.stdout.pipe.as_ref(), self.stderr.pipe.as_ref()),
        };
        [
            (Source::Stdin, stdin),
            (Source::Output(Stream::Stdout), stdout),
            (Source::Output(Stream::Stderr), stderr),
            (Source::Exit, exit),
        ]
        .into_iter()
        .filter_map(|(source, fd)| Some((source, fd?.as_fd())))
    }

    /// The next moment at which the state changes by itself; `None` once the job is over.
    pub(super) fn timer(&self) -> Option<Instant> {
        self.clock().map(|clock| self.quiet.map_or(clock, |quiet| quiet.min(clock)))
    }

    fn clock(&self) -> Option<Instant> {
        match self.state {
            ChildState::Running { deadline } => Some(deadline),
            ChildState::Terminating { kill_at, .. } => Some(kill_at),
            ChildState::Killed { until, .. } | ChildState::Draining { until, .. } => Some(until),
            ChildState::Over { .. } => None,
        }
    }

    /// Whether the exit must be polled, because no file descriptor signals it.
    pub(super) fn needs_asking(&self) -> bool {
        let alive = !matches!(self.state, ChildState::Draining { .. } | ChildState::Over { .. });
        alive && self.leader.pidfd.is_none()
    }

    /// Handles a file descriptor that is ready.
    pub(super) fn ready(&mut self, source: Source) {
        match source {
            Source::Stdin => self.feed(),
            Source::Output(stream) => {
                if self.output(stream).read() {
                    self.overflow(stream);
                }
            }
            Source::Exit => {
                self.leader.gone = true;
                self.check_exit();
            }
        }
    }

    /// Advances the state as far as time and streams allow.
    pub(super) fn tick(&mut self) {
        if self.needs_asking() {
            self.check_exit();
        }
        let now = Instant::now();
        self.quiet = self.quiet.filter(|quiet| *quiet > now);
        if matches!(self.state, ChildState::Draining { .. }) && self.closed() {
            self.finish(now);
        } else if self.clock().is_some_and(|clock| clock <= now) {
            self.expire(now);
        }
        if self.quiet.is_none() && self.clock().is_some() {
            self.leader.separate_guard();
        }
    }

    /// Ends the job before its deadline: politely first, and with a kill the second time.
    pub(super) fn interrupt(&mut self) {
        let now = Instant::now();
        self.quiet = None;
        match self.state {
            ChildState::Running { .. } => self.terminate(End::Interrupted, after(now, PARTING.min(self.limits.grace))),
            ChildState::Terminating { .. } => self.kill(now),
            ChildState::Draining { .. } => self.finish(now),
            ChildState::Killed { .. } | ChildState::Over { .. } => {}
        }
    }

    /// The outcome, and the process if it is not reaped yet.
    pub(super) fn close(self) -> (Outcome, Option<Leader>) {
        let (end, leaky, elapsed) = match self.state {
            ChildState::Over { end, leaky, elapsed } => (end, leaky, elapsed),
            _ => (End::Lost, true, self.started.elapsed()),
        };
        let (stdout, stderr) = (self.stdout.bytes, self.stderr.bytes);
        let outcome = Outcome { end, stdout, stderr, leaky, started: self.started, elapsed };
        (outcome, self.leader.slot.is_some().then_some(self.leader))
    }

    fn feed(&mut self) {
        if self.stdin.as_mut().is_some_and(Input::write) {
            self.stdin = None;
        }
    }

    fn output(&mut self, stream: Stream) -> &mut Output {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    fn closed(&self) -> bool {
        self.stdout.pipe.is_none() && self.stderr.pipe.is_none()
    }

    fn check_exit(&mut self) {
        if !self.leader.exited() {
            return;
        }
        let now = Instant::now();
        let drained = after(now, self.limits.drain);
        let (end, until) = match mem::replace(&mut self.state, ChildState::Running { deadline: now }) {
            ChildState::Running { deadline } => (None, drained.min(after(deadline, self.limits.grace))),
            ChildState::Terminating { end, kill_at } => (Some(end), drained.min(kill_at)),
            ChildState::Killed { end, until } => (Some(end), until),
            other => {
                self.state = other;
                return;
            }
        };
        self.stdin = None;
        self.state = ChildState::Draining { end, until };
        if self.quiet.take().is_some() {
            self.drain();
        }
    }

    /// Reads the output that came while only the exit was awaited; usually that is all of it.
    fn drain(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if self.output(stream).read_rest() {
                self.overflow(stream);
            }
        }
    }

    /// Handles a stream that exceeded its cap: closes it, and kills the group.
    fn overflow(&mut self, stream: Stream) {
        let now = Instant::now();
        self.leader.signal_group(Signal::KILL);
        self.output(stream).pipe = None;
        let until = after(now, SETTLE);
        self.state = match mem::replace(&mut self.state, ChildState::Running { deadline: now }) {
            ChildState::Running { .. } => ChildState::Killed { end: End::Overflowed(stream), until },
            ChildState::Terminating { end, .. } => ChildState::Killed { end, until },
            ChildState::Draining { end, until } => {
                ChildState::Draining { end: Some(end.unwrap_or(End::Overflowed(stream))), until }
            }
            other => other,
        };
    }

    /// Handles the end of the state's timer.
    fn expire(&mut self, now: Instant) {
        match self.state {
            ChildState::Running { deadline } => self.terminate(End::TimedOut, after(deadline, self.limits.grace)),
            ChildState::Terminating { .. } => self.kill(now),
            ChildState::Killed { .. } | ChildState::Draining { .. } => self.finish(now),
            ChildState::Over { .. } => {}
        }
    }

    /// Asks the group to end.
    fn terminate(&mut self, end: End, kill_at: Instant) {
        // A stopped process reacts only to both signals together.
        self.leader.signal_group(Signal::TERM);
        self.leader.signal_group(Signal::CONT);
        self.state = ChildState::Terminating { end, kill_at };
    }

    /// Kills a group that was asked to end.
    fn kill(&mut self, now: Instant) {
        self.leader.signal_group(Signal::KILL);
        self.state = match mem::replace(&mut self.state, ChildState::Running { deadline: now }) {
            ChildState::Terminating { end, .. } => ChildState::Killed { end, until: after(now, SETTLE) },
            other => other,
        };
    }

    /// Reads the rest of the pipes, kills the rest of the group, and reaps.
    fn finish(&mut self, now: Instant) {
        let overflow = [Stream::Stdout, Stream::Stderr].into_iter().find(|stream| self.output(*stream).read_rest());
        let leaky = !self.closed();
        self.leader.signal_group(Signal::KILL);
        let reaped = self.leader.reap();
        let end = match mem::replace(&mut self.state, ChildState::Running { deadline: now }) {
            ChildState::Killed { end, .. } | ChildState::Draining { end: Some(end), .. } => end,
            _ => overflow.map(End::Overflowed).or(reaped).unwrap_or(End::Lost),
        };
        self.stdin = None;
        self.stdout.pipe = None;
        self.stderr.pipe = None;
        self.state = ChildState::Over { end, leaky, elapsed: now.duration_since(self.started) };
    }
}

/// The input that is not yet written to the child.
#[derive(Debug)]
struct Input {
    pipe: OwnedFd,
    bytes: Vec<u8>,
    written: usize,
}

impl Input {
    /// Writes as much as the pipe takes; true when everything is written, or the reader has closed the pipe.
    fn write(&mut self) -> bool {
        while let Some(rest) = self.bytes.get(self.written..).filter(|rest| !rest.is_empty()) {
            match write(&self.pipe, rest) {
                Ok(count) => self.written += count,
                Err(Errno::AGAIN) => return false,
                Err(Errno::INTR) => {}
                Err(_) => return true,
            }
        }
        true
    }
}

/// The output read from the child, and the pipe until it ends.
#[derive(Debug)]
struct Output {
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
    cap: usize,
}

impl Output {
    fn new(pipe: OwnedFd, cap: usize) -> Self {
        Self { pipe: Some(pipe), bytes: Vec::new(), cap }
    }

    /// Reads once; true when the cap was exceeded.
    fn read(&mut self) -> bool {
        self.try_read().is_err_and(|error| error == ReadEnd::Cap)
    }

    /// Reads everything that is available; true when the cap was exceeded.
    fn read_rest(&mut self) -> bool {
        loop {
            match self.try_read() {
                Ok(()) => {}
                Err(passed) => return passed == ReadEnd::Cap,
            }
        }
    }

    fn try_read(&mut self) -> Result<(), ReadEnd> {
        let Some(pipe) = &self.pipe else {
            return Err(ReadEnd::End);
        };
        self.bytes.reserve(CHUNK);
        match read(pipe, spare_capacity(&mut self.bytes)) {
            Ok(count) if count > 0 => {}
            Err(Errno::INTR) => return Ok(()),
            Err(Errno::AGAIN) => return Err(ReadEnd::End),
            Ok(_) | Err(_) => {
                self.pipe = None;
                return Err(ReadEnd::End);
            }
        }
        if self.bytes.len() > self.cap {
            self.bytes.truncate(self.cap);
            return Err(ReadEnd::Cap);
        }
        Ok(())
    }
}

/// Why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadEnd {
    End,
    Cap,
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Children;
    use crate::unix::platform::Launcher;
    use crate::unix::supervise::{JobRun, supervise};

    fn start(children: &Children, script: &str) -> Child {
        let job = Job { args: vec!["-c".into(), script.into()], ..Job::new("/bin/sh") };
        match children.begin(&Launcher::new(), job) {
            JobRun::Live(child) => child,
            JobRun::Done(outcome) => panic!("{outcome:?}"),
        }
    }

    #[test]
    fn a_child_whose_exit_no_file_tells_is_asked_for_it() {
        let children = Children::new();
        let mut child = start(&children, "echo out; exec >&- 2>&-; sleep 0.1; exit 3");
        child.leader.pidfd = None;
        let mut runs = [JobRun::Live(child)];
        supervise(&mut runs, None, None);
        let outcome = children.close(runs.into_iter().next().unwrap());
        assert!(matches!(outcome.end, End::Exited(3)), "{outcome:?}");
        assert_eq!(outcome.stdout, b"out\n");
    }

    #[test]
    fn an_interrupted_child_is_asked_to_end_and_then_made_to() {
        let mut child = start(&Children::new(), "trap '' TERM; while :; do sleep 300; done");
        child.interrupt();
        assert!(matches!(child.state, ChildState::Terminating { end: End::Interrupted, .. }), "{child:?}");
        child.interrupt();
        assert!(matches!(child.state, ChildState::Killed { end: End::Interrupted, .. }), "{child:?}");
        child.interrupt();
        assert!(matches!(child.state, ChildState::Killed { end: End::Interrupted, .. }), "{child:?}");
    }

    #[test]
    fn an_interruption_waits_for_no_stream_of_a_program_that_has_exited() {
        let mut child = start(&Children::new(), "sleep 300 & exit 3");
        child.limits.drain = Duration::MAX;
        while !child.leader.exited() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.check_exit();
        child.interrupt();
        assert!(matches!(child.state, ChildState::Over { end: End::Exited(3), leaky: true, .. }), "{child:?}");
    }

    #[test]
    fn a_dropped_child_is_killed_and_reaped() {
        let child = start(&Children::new(), "sleep 300");
        let pid = child.leader.pid.as_raw_nonzero().to_string();
        drop(child);
        assert!(!Path::new("/proc").join(pid).exists());
    }

    #[test]
    fn a_killed_program_that_does_not_go_is_answered_for_and_reaped_later() {
        let children = Children::new();
        let mut child = start(&children, "exec sleep 300");
        child.state = ChildState::Killed { end: End::TimedOut, until: Instant::now() };
        child.leader.pidfd = None;
        let pid = Path::new("/proc").join(child.leader.pid.as_raw_nonzero().to_string());
        child.tick();
        let outcome = children.close(JobRun::Live(child));
        assert!(matches!(outcome.end, End::TimedOut), "{outcome:?}");
        for _ in 0..10_000 {
            children.reap_dying();
            if !pid.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("it was never reaped");
    }
}
