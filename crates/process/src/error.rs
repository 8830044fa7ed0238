//! Why a program did not start. Messages name the missing part.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::Job;

/// A program that did not start.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct SpawnError {
    /// The step that failed.
    pub stage: Stage,
    /// The program that was to run.
    pub program: PathBuf,
    /// The system's error.
    #[source]
    pub source: io::Error,
    reason: String,
}

impl SpawnError {
    pub(crate) fn new(job: &Job, stage: Stage, source: io::Error) -> Self {
        Self { stage, program: job.program.clone(), reason: explain(job, stage, &source), source }
    }
}

/// The step of a spawn that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Arguments or environment that the system cannot pass to a program.
    Arguments,
    /// Pipes for the standard streams.
    Pipe,
    /// The guard, which outlives this process and cleans up after it.
    Guard,
    /// The new process.
    Clone,
    /// The working directory.
    Chdir,
    /// The resource limits.
    Limits,
    /// The box.
    Box,
    /// The program itself.
    Exec,
}

fn explain(job: &Job, stage: Stage, error: &io::Error) -> String {
    let program = job.program.display();
    match stage {
        Stage::Arguments => format!("cannot run `{program}`: {error}"),
        Stage::Pipe => format!("cannot run `{program}`: no pipes for its streams: {error}"),
        Stage::Guard => format!("cannot run `{program}`: no guard for it: {error}"),
        Stage::Clone => format!("cannot run `{program}`: no new process: {error}"),
        Stage::Limits => format!("cannot run `{program}`: its resource limits cannot be set: {error}"),
        Stage::Box => format!("cannot run `{program}`: its box cannot be entered: {error}"),
        Stage::Chdir => {
            let cwd = job.cwd.as_deref().unwrap_or(Path::new(".")).display();
            if error.kind() == io::ErrorKind::NotFound {
                format!("cannot run `{program}`: its working directory `{cwd}` does not exist")
            } else {
                format!("cannot run `{program}`: cannot enter its working directory `{cwd}`: {error}")
            }
        }
        Stage::Exec => explain_exec(&job.program, error),
    }
}

fn explain_exec(path: &Path, error: &io::Error) -> String {
    let program = path.display();
    match error.kind() {
        io::ErrorKind::NotFound if !path.exists() => format!("`{program}` does not exist"),
        io::ErrorKind::NotFound => explain_interpreter(path),
        io::ErrorKind::PermissionDenied if path.is_dir() => {
            format!("`{program}` is a directory, not a program")
        }
        io::ErrorKind::PermissionDenied if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) => {
            format!("`{program}` is not a file, and so no program")
        }
        io::ErrorKind::PermissionDenied if !executable(path) => {
            let quoted = program.to_string().replace('\'', r"'\''");
            format!("`{program}` is not executable; run `chmod +x '{quoted}'`")
        }
        io::ErrorKind::PermissionDenied => match interpreter(path) {
            Some(interpreter) => format!(
                "`{program}` may not be run; check its interpreter `{}` and the mount option `noexec`",
                interpreter.display()
            ),
            None => format!("`{program}` may not be run; check the mount option `noexec`"),
        },
        io::ErrorKind::ArgumentListTooLong => format!(
            "`{program}` cannot be given so much: arguments and environment are too large; pass the data on standard input"
        ),
        io::ErrorKind::ExecutableFileBusy => {
            format!("`{program}` is still open for writing; close it first")
        }
        _ if no_format(error) => format!(
            "`{program}` is neither a binary for this machine nor a script with an interpreter; \
             start its first line with `#!`, such as `#!/bin/sh`"
        ),
        _ => format!("cannot run `{program}`: {error}"),
    }
}

fn explain_interpreter(path: &Path) -> String {
    let program = path.display();
    match interpreter(path) {
        Some(interpreter) => format!(
            "`{program}` asks for the interpreter `{}`, which does not exist; install it or correct the first line",
            interpreter.display()
        ),
        None => format!("`{program}` exists, but the loader or interpreter it asks for does not"),
    }
}

/// The program that the kernel starts for a script, by the script's first line; the rest of that line is ignored. Only
/// regular files are opened, because opening a pipe could block.
fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    File::open(path).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    // For the kernel a carriage return is part of the name, so the message shows it.
    let line = String::from_utf8_lossy(line).replace('\r', "\\r");
    line.split([' ', '\t']).find(|word| !word.is_empty()).map(PathBuf::from)
}

#[cfg(unix)]
fn executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn executable(path: &Path) -> bool {
    fs::metadata(path).is_ok()
}

#[cfg(unix)]
fn no_format(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOEXEC)
}

#[cfg(not(unix))]
fn no_format(_: &io::Error) -> bool {
    false
}
