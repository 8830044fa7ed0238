//! `shell`: a command line, in a process group of its own, with a deadline and a cap.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use ollm_process::{End, Job, Limits, Outcome, Stream};
use ollm_protocol::tool::table::SHELL;
use serde_json::{Map, Value};

use super::{Bench, BuiltIn, Description, Done, ShellSettings, args, needs};

/// The most output the model is shown; the middle is left out.
const SHOWN: usize = 32 << 10;
/// How many whole outputs are kept.
const MOST_KEPT: usize = 50;

pub(crate) struct Shell;

impl BuiltIn for Shell {
    fn describe(&self) -> Description {
        const {
            Description {
                declaration: SHELL,
                text: "Run a command line with sh in the workspace. It has no terminal and no input.",
                args: &[needs("command", "string", "The command line")],
            }
        }
    }

    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<Done, String> {
        let command = args::text(args, "command")?;
        if command.contains('\0') {
            return Err("`command` must not contain a NUL character".to_owned());
        }
        let settings = bench.shell;
        let mut env: Vec<_> = settings.env.iter().filter(|(name, _)| name != "OLLM_AGENT").cloned().collect();
        env.push(("OLLM_AGENT".into(), settings.agent.clone().into()));
        let job = Job {
            args: vec!["-c".into(), command.into()],
            env,
            cwd: Some(bench.workspace.root().to_owned()),
            limits: Limits { timeout: settings.timeout, output: settings.output, ..Limits::default() },
            ..Job::new(&settings.program)
        };
        let stop = || bench.cancel.is_set();
        let (outcome, notes) = match &settings.shell_box {
            Some(shell_box) => shell_box.run(bench.children, job, &stop),
            None => (bench.children.run_until(job, &stop), Vec::new()),
        };
        let mut done = report(&outcome, settings);
        for note in &notes {
            let _ = write!(done.text, "\n[box: {note}]");
        }
        Ok(Done { notes, ..done })
    }
}

fn report(outcome: &Outcome, settings: &ShellSettings) -> Done {
    let mut text = shown(&outcome.stdout, "output", settings);
    let complaints = shown(&outcome.stderr, "errors", settings);
    if !complaints.is_empty() {
        let _ = write!(text, "{}[standard error]\n{complaints}", if text.is_empty() { "" } else { "\n" });
    }
    let end = ended(&outcome.end, settings);
    let failed = end.is_some();
    if let Some(end) = end {
        let _ = write!(text, "{}[{end}]", if text.is_empty() { "" } else { "\n" });
    }
    if outcome.leaky {
        text.push_str("\n[something it started kept running and was ended]");
    }
    if text.is_empty() {
        text.push_str("[no output]");
    }
    Done { text, failed, ..Done::default() }
}

/// What is to be said about the end of a command, if it was not a good one.
fn ended(end: &End, settings: &ShellSettings) -> Option<String> {
    match end {
        End::Exited(0) => None,
        End::Exited(code) => Some(format!("exit code {code}")),
        End::Signalled(signal) => Some(format!("ended by signal {signal}")),
        End::TimedOut => {
            Some(format!("ended after {} seconds, the most a command may take", settings.timeout.as_secs()))
        }
        End::Interrupted => Some("interrupted".to_owned()),
        End::Overflowed(stream) => {
            let stream = if *stream == Stream::Stdout { "output" } else { "standard error" };
            Some(format!("ended because its {stream} went over {} bytes", settings.output))
        }
        End::Lost => Some("its exit code got lost".to_owned()),
        End::NotStarted(error) => Some(error.to_string()),
    }
}

/// The beginning and the end of long output, and where all of it is.
fn shown(bytes: &[u8], what: &str, settings: &ShellSettings) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches('\n');
    if text.len() <= SHOWN {
        return text.to_owned();
    }
    let head = text.get(..text.floor_char_boundary(SHOWN / 2)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len() - SHOWN / 2)..).unwrap_or_default();
    let place = match spill(bytes, what, settings) {
        Ok(path) => format!("all of it is in {}", path.display()),
        Err(error) => format!("it could not be kept: {error}"),
    };
    format!("{head}\n[{} bytes left out; {place}]\n{tail}", text.len() - head.len() - tail.len())
}

fn spill(bytes: &[u8], what: &str, settings: &ShellSettings) -> Result<PathBuf, ollm_store::FileError> {
    let path = settings.spill.join(format!("{what}-{}.txt", crate::time::unique()));
    ollm_store::write_atomic(&path, bytes)?;
    forget(&settings.spill);
    Ok(path)
}

/// Removes the oldest outputs when there are many.
fn forget(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files: Vec<_> =
        entries.flatten().filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    files.sort_unstable();
    let old = files.len().saturating_sub(MOST_KEPT);
    for (_, path) in files.into_iter().take(old) {
        // What cannot be removed now may be removed next time.
        let _ = fs::remove_file(path);
    }
}
