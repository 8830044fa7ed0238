//! Runs trusted hooks: the event goes in, the process runs within its limits, the answer comes out as a report.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ollm_process::{Children, Job};
use ollm_protocol::template::TemplateWarning;
use ollm_protocol::{Answer, End, Event, Flow, Hook, Output, Verdict};

use crate::action::{Prepared, prepare};
use crate::bus::Wire;
use crate::environment::Environment;
use crate::merge::apply_policy;
use crate::present::presentable;
use crate::report::{Process, Report, Spoken, Status};
use crate::trust::{Step, Trusted};

/// Runs the hooks of one stage at once; the reports are in plan order.
pub(crate) fn stage(
    steps: &[Step],
    event: &Event,
    children: &Children,
    environment: &Environment,
    wire: &Wire<'_>,
) -> Vec<Report> {
    let mut starts: Vec<Instant> = Vec::with_capacity(steps.len());
    let mut reports: Vec<Option<Report>> = Vec::with_capacity(steps.len());
    let mut jobs: Vec<Job> = Vec::with_capacity(steps.len());
    let mut waiting: Vec<(usize, &Trusted, Vec<TemplateWarning>, usize)> = Vec::with_capacity(steps.len());
    for step in steps {
        starts.push(Instant::now());
        wire.starts(step.hook(), event);
        let report = match step {
            Step::Fail(hook, why) => Some(failed(hook, why.clone(), Duration::ZERO)),
            Step::Run(trusted) => {
                let started = Instant::now();
                match prepare(trusted, event, environment) {
                    Prepared::Job(job, warnings) => {
                        waiting.push((reports.len(), trusted, warnings, job.stdin.len()));
                        jobs.push(*job);
                        None
                    }
                    Prepared::Decided(verdict) => Some(decided(trusted.hook(), *verdict, started.elapsed())),
                    Prepared::Impossible(why) => Some(failed(trusted.hook(), why, started.elapsed())),
                }
            }
        };
        reports.push(report);
    }
    let outcomes = if jobs.is_empty() { Vec::new() } else { children.run_all(jobs) };
    for ((at, trusted, warnings, bytes_in), outcome) in waiting.into_iter().zip(outcomes) {
        if let Some(place) = reports.get_mut(at) {
            let report = with_hint(answered(trusted.hook(), event, &outcome, &warnings), trusted, &outcome.stderr);
            *place = Some(Report { process: remains(&outcome, bytes_in, wire), ..report });
        }
    }
    let reports = reports.into_iter().zip(starts).filter_map(|(report, started)| Some(Report { started, ..report? }));
    let reports = reports.map(|report| apply_policy(presentable(report, environment)));
    reports.inspect(|report| wire.ends(report, event)).collect()
}

/// What remains of a process; nothing if it never was one.
fn remains(outcome: &ollm_process::Outcome, bytes_in: usize, wire: &Wire<'_>) -> Option<Process> {
    let (exit, signal) = match &outcome.end {
        ollm_process::End::NotStarted(_) => return None,
        ollm_process::End::Exited(status) => (Some(*status), None),
        ollm_process::End::Signalled(signal) => (None, Some(*signal)),
        _ => (None, None),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let spoken = || Spoken { stdout: text(&outcome.stdout), stderr: text(&outcome.stderr) };
    Some(Process {
        exit,
        signal,
        bytes_in,
        bytes_out: outcome.stdout.len(),
        bytes_err: outcome.stderr.len(),
        spoken: wire.listened().then(spoken),
    })
}

fn decided(hook: &Arc<Hook>, verdict: Verdict, duration: Duration) -> Report {
    let refused = verdict.flow.refuses();
    Report {
        hook: Arc::clone(hook),
        status: if refused { Status::Blocked } else { Status::Ok },
        verdict,
        started: Instant::now(),
        duration,
        process: None,
        error: None,
        warnings: Vec::new(),
        leaky: false,
        refused,
    }
}

fn failed(hook: &Arc<Hook>, why: String, duration: Duration) -> Report {
    Report { error: Some(why), status: Status::Failed, ..decided(hook, Verdict::default(), duration) }
}

/// What a process that ended means, in the words of its hook's dialect.
fn answered(
    hook: &Arc<Hook>,
    event: &Event,
    outcome: &ollm_process::Outcome,
    template_warnings: &[TemplateWarning],
) -> Report {
    let end = match &outcome.end {
        ollm_process::End::Exited(status) => End::Exited(*status),
        ollm_process::End::Signalled(signal) => End::Signalled(*signal),
        ollm_process::End::TimedOut => End::TimedOut(hook.timeout.value),
        ollm_process::End::Overflowed(_) => End::Overflowed(crate::action::limits(hook).output),
        ollm_process::End::Interrupted => return failed(hook, "was stopped with us".to_owned(), outcome.elapsed),
        ollm_process::End::Lost => return failed(hook, "its end could not be observed".to_owned(), outcome.elapsed),
        ollm_process::End::NotStarted(error) => return failed(hook, error.to_string(), outcome.elapsed),
    };
    let output = Output { end, stdout: &outcome.stdout, stderr: &outcome.stderr };
    let Answer { verdict, failure, warnings } = hook.dialect.read_verdict(event.kind, &output);
    let status = status(end, verdict.flow, failure.is_some());
    let odd = template_warnings.iter().map(ToString::to_string);
    Report {
        status,
        error: failure,
        warnings: odd.chain(warnings).collect(),
        leaky: outcome.leaky,
        ..decided(hook, verdict, outcome.elapsed)
    }
}

/// A readable refusal with a bad exit status is a refusal; what its own answer calls an error is a failure.
fn status(end: End, flow: Flow, failure: bool) -> Status {
    match end {
        End::TimedOut(_) => Status::Timeout,
        End::Exited(0) if failure => Status::Failed,
        _ if flow.refuses() => Status::Blocked,
        _ if failure => Status::Failed,
        _ => Status::Ok,
    }
}

/// A hook that runs from a copy finds only what it declared; where that seems to be why it failed, the way out is said.
fn with_hint(mut report: Report, trusted: &Trusted, stderr: &[u8]) -> Report {
    if let Some(error) = report.error.as_mut().filter(|_| trusted.runs_from_copy())
        && let Some(sibling) = undeclared(&report.hook, &String::from_utf8_lossy(stderr))
    {
        let _ =
            write!(error, "; it runs from a copy of what was approved: add \"inputs\": [\"{sibling}\"] to the hook");
    }
    report
}

/// A file beside the script that was not declared and that the hook's last words name.
fn undeclared(hook: &Hook, words: &str) -> Option<String> {
    let script = hook.spec.script()?;
    let files = std::fs::read_dir(script.parent()?).ok()?.filter_map(Result::ok).take(1000).map(|file| file.path());
    let known = |path: &PathBuf| path == script || *path == hook.spec.origin.file || hook.spec.inputs.contains(path);
    let others: Vec<PathBuf> = files.filter(|path| !known(path) && path.file_stem() != script.file_stem()).collect();
    let named = |part: fn(&Path) -> Option<&OsStr>| {
        let mut others = others.iter();
        others
            .find(|path| part(path).and_then(OsStr::to_str).is_some_and(|text| text.len() > 2 && words.contains(text)))
    };
    let file = named(Path::file_name).or_else(|| named(Path::file_stem))?;
    Some(file.file_name()?.to_str()?.to_owned())
}
