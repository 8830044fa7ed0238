//! The three pipes between us and a child.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::fcntl_dupfd_cloexec;

/// Both sides of the three pipes. Our ends do not block; no end is inherited by accident.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) ours: Streams,
    pub(super) theirs: Streams,
}

/// One side of the three pipes. Our ends do not block.
#[derive(Debug)]
pub struct Streams {
    /// Its standard input.
    pub stdin: OwnedFd,
    /// Its standard output.
    pub stdout: OwnedFd,
    /// Its standard error.
    pub stderr: OwnedFd,
}

impl Pipes {
    pub(super) fn open() -> io::Result<Self> {
        let (their_stdin, our_stdin) = pipe()?;
        let (our_stdout, their_stdout) = pipe()?;
        let (our_stderr, their_stderr) = pipe()?;
        for end in [&our_stdin, &our_stdout, &our_stderr] {
            fcntl_setfl(end, OFlags::NONBLOCK)?;
        }
        Ok(Self {
            ours: Streams { stdin: our_stdin, stdout: our_stdout, stderr: our_stderr },
            theirs: Streams {
                stdin: clear_of_stdio(their_stdin)?,
                stdout: clear_of_stdio(their_stdout)?,
                stderr: clear_of_stdio(their_stderr)?,
            },
        })
    }
}

/// A reading and a writing end, both closed on exec.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), writer.into()))
}

/// Moves a file descriptor above the standard streams. If this process was started without standard streams, new files
/// get the numbers 0 to 2. The child's ends must lie above them, so that placing one overwrites no other.
pub(super) fn clear_of_stdio(end: OwnedFd) -> io::Result<OwnedFd> {
    if end.as_raw_fd() > 2 {
        return Ok(end);
    }
    Ok(fcntl_dupfd_cloexec(&end, 3)?)
}
