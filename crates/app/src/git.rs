//! Runs git safely: git starts no program that a repository's own configuration names, such as a pager, a file system
//! monitor or a hook.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ollm_process::{Children, End, Job, Limits, find_program};
use ollm_protocol::Code;

use crate::app_context::AppContext;
use crate::error::AppError;

/// The limit on git's output, enough for some hundred thousand files.
const MOST_OUTPUT: usize = 32 << 20;

/// One run of git.
#[derive(Debug)]
pub(crate) struct GitJob<'a> {
    pub(crate) folder: &'a Path,
    /// Git's arguments, after the options that disable pagers, monitors and hooks.
    pub(crate) args: &'a [&'a str],
    pub(crate) stdin: Vec<u8>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) timeout: Duration,
    pub(crate) most_output: usize,
    /// The largest file that git may write.
    pub(crate) largest_file: Option<u64>,
}

impl<'a> GitJob<'a> {
    /// A short query about a repository.
    pub(crate) fn new(context: &AppContext, folder: &'a Path, args: &'a [&'a str]) -> GitJob<'a> {
        let env = context.variables.clone();
        GitJob {
            folder,
            args,
            stdin: Vec::new(),
            env,
            timeout: Duration::from_mins(1),
            most_output: MOST_OUTPUT,
            largest_file: None,
        }
    }

    /// Runs git and returns its output.
    pub(crate) fn run(self, context: &AppContext) -> Result<Vec<u8>, AppError> {
        self.run_until(context, &|| false)
    }

    /// Runs git and returns its output, unless `stop` ends it.
    pub(crate) fn run_until(self, context: &AppContext, stop: &dyn Fn() -> bool) -> Result<Vec<u8>, AppError> {
        let missing = || AppError::new(Code::GitFailed, "git is not on your PATH");
        let program = find_program("git", context.search_path().unwrap_or_default()).ok_or_else(missing)?;
        let calm = ["--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false"];
        let job = Job {
            args: calm.iter().chain(self.args).map(OsString::from).collect(),
            env: self.env,
            cwd: Some(self.folder.to_owned()),
            stdin: self.stdin,
            limits: Limits {
                timeout: self.timeout,
                output: self.most_output,
                file_size: self.largest_file,
                ..Limits::default()
            },
            ..Job::new(program)
        };
        let outcome = Children::new().run_until(job, stop);
        if matches!(outcome.end, End::Exited(0)) {
            return Ok(outcome.stdout);
        }
        let words = String::from_utf8_lossy(&outcome.stderr);
        let said = words.lines().find(|line| line.starts_with("fatal: ")).or_else(|| words.lines().next());
        let words = match (&outcome.end, said) {
            (End::Overflowed(_), _) => format!("it gives more than {} MiB", self.most_output >> 20),
            (End::Interrupted, _) => "it was interrupted".to_owned(),
            (End::TimedOut, _) => format!("it took longer than {} seconds", self.timeout.as_secs()),
            (_, line) => line.unwrap_or("it failed").trim_start_matches("fatal: ").to_owned(),
        };
        let mut args = self.args.iter().copied();
        let mut verb = args.next();
        while verb == Some("-c") {
            verb = args.nth(1);
        }
        let verb = verb.filter(|verb| !verb.starts_with('-')).unwrap_or_default();
        Err(AppError::new(Code::GitFailed, format!("git {verb}: {words}")))
    }
}

/// Runs git in a folder and returns its output.
pub(crate) fn git(context: &AppContext, folder: &Path, args: &[&str]) -> Result<Vec<u8>, AppError> {
    GitJob::new(context, folder, args).run(context)
}

/// Runs git in a folder and returns the path that it prints.
pub(crate) fn git_path(context: &AppContext, folder: &Path, args: &[&str]) -> Result<PathBuf, AppError> {
    let mut bytes = git(context, folder, args)?;
    while bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Ok(OsString::from_vec(bytes).into())
}
