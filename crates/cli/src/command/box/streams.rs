//! Passes a command's standard error on as it comes, and keeps its end for a look at the messages.
//!
//! A terminal stays the command's own, because many programs behave differently without one.

use std::io::{self, PipeReader, Read, Write};
use std::os::fd::OwnedFd;
use std::thread;

use ollm_process::Outcome;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::fstat;
use rustix::io::{Errno, dup};
use rustix::stdio::{dup2_stderr, dup2_stdout, stderr, stdout};
use rustix::termios::isatty;

/// How much of the end is kept.
const KEPT: usize = 64 << 10;

/// Runs programs on our streams; the outcome contains the end of their standard error.
pub(super) fn with_words(run: impl FnOnce() -> Outcome) -> Outcome {
    if isatty(stderr()) {
        return run();
    }
    match Passage::open() {
        Ok(passage) => passage.around(run),
        Err(_) => run(),
    }
}

/// A pipe in place of standard error. It also replaces standard output if both are one file, so that their order stays.
struct Passage {
    errors: OwnedFd,
    output: Option<OwnedFd>,
    reader: PipeReader,
    /// Closed when all programs have ended.
    open: (PipeReader, io::PipeWriter),
}

impl Passage {
    fn open() -> io::Result<Passage> {
        let (errors, output) = (stderr(), stdout());
        let file = |data: &rustix::fs::Stat| (data.st_dev, data.st_ino);
        let is_one = file(&fstat(errors)?) == file(&fstat(output)?);
        let (reader, writer) = io::pipe()?;
        let open = io::pipe()?;
        let errors = errors.try_clone_to_owned()?;
        let output = if is_one { Some(output.try_clone_to_owned()?) } else { None };
        dup2_stderr(&writer)?;
        if is_one {
            dup2_stdout(&writer)?;
        }
        Ok(Passage { errors, output, reader, open })
    }

    fn around(self, run: impl FnOnce() -> Outcome) -> Outcome {
        let Passage { errors, output, mut reader, open: (closed, open) } = self;
        let Ok(target) = dup(&errors) else { return run() };
        let passing = thread::spawn(move || pass(&mut reader, &closed, &mut target.into()));
        let mut outcome = run();
        let _ = dup2_stderr(&errors);
        if let Some(output) = &output {
            let _ = dup2_stdout(output);
        }
        drop(open);
        let words = passing.join().unwrap_or_default();
        if output.is_some() {
            outcome.stdout = words;
        } else {
            outcome.stderr = words;
        }
        outcome
    }
}

/// Passes data on until the last writer is gone, or until the programs have ended and no data is left.
fn pass(reader: &mut PipeReader, closed: &PipeReader, target: &mut std::fs::File) -> Vec<u8> {
    let (mut kept, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        let mut ready = [PollFd::new(reader, PollFlags::IN), PollFd::new(closed, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return kept,
            Ok(_) => {}
        }
        let [words, _] = ready.map(|file| file.revents());
        // The programs have ended, so everything they wrote is in the pipe.
        if words.is_empty() {
            return kept;
        }
        let read = reader.read(&mut buffer).unwrap_or(0);
        let Some(words) = buffer.get(..read).filter(|words| !words.is_empty()) else { return kept };
        if target.write_all(words).is_err() {
            return kept;
        }
        kept.extend_from_slice(words);
        if kept.len() > 2 * KEPT {
            kept.drain(..kept.len() - KEPT);
        }
    }
}
