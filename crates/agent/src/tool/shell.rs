//! `shell`: runs a command line in a separate process group, with a deadline and a limit on output.

use std::fmt::Write as _;

use ollm_process::{End, Job, Limits, Outcome, Stream};
use ollm_protocol::tool::table::SHELL;
use serde_json::{Map, Value};

use crate::port::Failure;

use super::{Bench, BuiltIn, Description, ShellSettings, ToolOutcome, args, needs, spill};

/// The most output that the model is shown; the middle is omitted.
const SHOWN: usize = 32 << 10;
/// The most of standard error that hooks for failures get.
const LONGEST_STACK: usize = 8 << 10;

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

    fn run(&self, args: &Map<String, Value>, bench: &mut Bench<'_>) -> Result<ToolOutcome, String> {
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
        let mut done = report(&outcome, settings, bench.most);
        for note in &notes {
            let _ = write!(done.text, "\n[box: {note}]");
        }
        Ok(ToolOutcome { notes, ..done })
    }
}

fn report(outcome: &Outcome, settings: &ShellSettings, most: usize) -> ToolOutcome {
    let shown = |bytes: &[u8], what: &str| {
        let text = String::from_utf8_lossy(bytes);
        spill::fit(text.trim_end_matches('\n'), SHOWN.min(most / 2), what, &settings.spill)
    };
    let mut text = shown(&outcome.stdout, "output");
    let complaints = shown(&outcome.stderr, "errors");
    if !complaints.is_empty() {
        let _ = write!(text, "{}[standard error]\n{complaints}", if text.is_empty() { "" } else { "\n" });
    }
    let end = ended(&outcome.end, settings);
    let failed = end.is_some();
    let failure = end.as_ref().and_then(|end| failure(end, &outcome.stderr));
    if let Some(end) = end {
        let _ = write!(text, "{}[{end}]", if text.is_empty() { "" } else { "\n" });
    }
    if outcome.leaky {
        text.push_str("\n[something it started kept running and was ended]");
    }
    if text.is_empty() {
        text.push_str("[no output]");
    }
    ToolOutcome { text, failed, failure, ..ToolOutcome::default() }
}

/// Why a command failed, with its standard error if that is more than one line.
fn failure(end: &str, stderr: &[u8]) -> Option<Failure> {
    let tail = stderr.get(stderr.len().saturating_sub(LONGEST_STACK)..).unwrap_or(stderr);
    let text = String::from_utf8_lossy(tail).trim().to_owned();
    let (_, last) = text.rsplit_once('\n')?;
    Some(Failure { message: format!("{end}: {last}"), stack: Some(text) })
}

/// A note on the end of a command, if it did not succeed.
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
