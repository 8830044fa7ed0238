//! Runs trusted hooks: each gets the event, runs within its limits, and its answer becomes a report.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use ollm_process::{Children, Job};
use ollm_protocol::{End, Event, EventKind, Flow, Hook, HookAnswer, Output, Verdict};

use crate::action::{
    self, ActionContext, CallTracker, PreparedAction, RemoteTask, Task, TaskReply, ToolCaller, prepare,
};
use crate::background::Background;
use crate::boxed_job::RunningBox;
use crate::bus::Wire;
use crate::clear::Step;
use crate::environment::Environment;
use crate::limit::{exceeded, unbound_limit};
use crate::merge::apply_policy;
use crate::present::presentable;
use crate::report::{HookOutput, Process, Report, Status};
use crate::template::TemplateWarning;
use ollm_trust::Trusted;

/// How often `stop` is asked whether the hooks should end.
const LOOKING: Duration = Duration::from_millis(20);
/// The most bytes kept of a failed hook's standard error.
const LONGEST_STACK: usize = 8 << 10;
/// The error of a hook that was ended early, if no other is given.
const INTERRUPTED: &str = "was interrupted";

/// The values that hooks are run with.
pub(crate) struct RunContext<'a> {
    pub(crate) children: &'a Children,
    pub(crate) environment: &'a Environment,
    pub(crate) tools: Option<&'a Arc<dyn ToolCaller>>,
    pub(crate) background: &'a Background,
    /// Whether the hooks should stop.
    pub(crate) stop: Stop<'a>,
    /// The present dispatch, and its way to the bus.
    pub(crate) wire: Wire<'a>,
}

/// Says, when asked, whether the hooks should stop.
#[derive(Clone, Copy)]
pub(crate) struct Stop<'a> {
    asked: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// The error of a hook that was ended early.
    why: &'a str,
}

impl<'a> Stop<'a> {
    /// Never stops the hooks.
    pub(crate) const NEVER: Stop<'static> = Stop { asked: None, why: INTERRUPTED };

    /// Stops the hooks once this function returns true.
    pub(crate) fn when(asked: &'a (dyn Fn() -> bool + Sync)) -> Stop<'a> {
        Stop { asked: Some(asked), why: INTERRUPTED }
    }

    /// The same, with this error for hooks that were not done.
    pub(crate) fn because(self, why: &'a str) -> Stop<'a> {
        Stop { why, ..self }
    }

    fn is_set(self) -> bool {
        self.asked.is_some_and(|asked| asked())
    }

    /// Why a hook was ended. If `stop` is not set, a signal interrupted the hook first.
    fn reason(self) -> String {
        if self.is_set() { self.why } else { INTERRUPTED }.to_owned()
    }
}

/// Runs the hooks of one stage at the same time; the reports are in plan order.
pub(crate) fn stage(steps: &[Step], event: &Event, means: &RunContext<'_>) -> Vec<Report> {
    let mut reports: Vec<Option<Report>> = Vec::with_capacity(steps.len());
    let mut jobs: Vec<Job> = Vec::with_capacity(steps.len());
    let mut waiting: Vec<(usize, &Trusted<Hook>, SentTask, RunningBox)> = Vec::with_capacity(steps.len());
    let mut remote_tasks: Vec<(usize, &Trusted<Hook>, SentTask, PendingTask)> = Vec::new();
    for step in steps {
        means.wire.starts(step.hook(), event);
        let mut sent = SentTask::now();
        let report = match step {
            Step::Fail(hook, why) => Some(failed(hook, why.clone(), &sent)),
            Step::Run(trusted) => {
                let hook = trusted.hook();
                let context = ActionContext { trusted, event, environment: means.environment, tools: means.tools };
                match prepare(&context) {
                    PreparedAction::Task(task, warnings) if hook.detached(event.kind) => {
                        sent.warnings = warnings;
                        Some(left(hook, means.background.start(hook, event, task, means), &sent))
                    }
                    PreparedAction::Task(Task::Job(job), warnings) => match job.held() {
                        Ok((job, running)) => {
                            (sent.bytes, sent.warnings) = (job.stdin.len(), warnings);
                            waiting.push((reports.len(), trusted, sent, running));
                            jobs.push(job);
                            None
                        }
                        Err(why) => Some(failed(hook, why, &sent)),
                    },
                    PreparedAction::Task(Task::Remote(remote_task), warnings) => {
                        sent.warnings = warnings;
                        let away = PendingTask::send(remote_task, sent.started);
                        remote_tasks.push((reports.len(), trusted, sent, away));
                        None
                    }
                    PreparedAction::Decided(verdict, warnings) => {
                        sent.warnings = warnings;
                        Some(decided(hook, *verdict, &sent))
                    }
                    PreparedAction::Impossible(why) => Some(failed(hook, why, &sent)),
                }
            }
        };
        reports.push(report.map(|report| undecided(report, event.kind)));
    }
    let outcomes = match means.stop.asked {
        _ if jobs.is_empty() => Vec::new(),
        Some(stop) => means.children.run_all_until(jobs, stop),
        None => means.children.run_all(jobs),
    };
    let mut put = |at: usize, report| {
        if let Some(place) = reports.get_mut(at) {
            *place = Some(report);
        }
    };
    for ((at, trusted, sent, running), outcome) in waiting.into_iter().zip(outcomes) {
        let hook = trusted.hook();
        let report = match outcome.end {
            ollm_process::End::Interrupted => failed(hook, means.stop.reason(), &sent),
            _ => answered(hook, event, &outcome, &sent),
        };
        let report = with_hint(report, trusted, &outcome.stderr);
        let mut report = running.told(report, &outcome.stderr);
        report.process = remains(&outcome, sent.bytes);
        if let Some(process) = report.process.as_mut().filter(|_| means.wire.listened()) {
            process.spoken = Some(spoken(&outcome));
        }
        put(at, report);
    }
    for (at, trusted, sent, away) in remote_tasks {
        let (reply, duration) = away.wait(means.stop);
        put(at, Report { duration, ..returned(trusted.hook(), event, &reply, &sent) });
    }
    let reports = reports.into_iter().flatten();
    let reports = reports.map(|report| apply_policy(presentable(report, means.environment)));
    reports.inspect(|report| means.wire.ends(report, event)).collect()
}

/// What is known of a task before it runs.
pub(crate) struct SentTask {
    started: Instant,
    bytes: usize,
    warnings: Vec<TemplateWarning>,
}

impl SentTask {
    pub(crate) fn now() -> SentTask {
        SentTask { started: Instant::now(), bytes: 0, warnings: Vec::new() }
    }
}

/// A background hook decides nothing; its messages to the agent and to a person still count.
fn undecided(mut report: Report, kind: EventKind) -> Report {
    if report.hook.detached(kind) {
        let Verdict { system_messages, messages, prompts, metadata, .. } = report.verdict;
        report.verdict = Verdict { system_messages, messages, prompts, metadata, ..Verdict::default() };
        report.detached = true;
        report.refused = false;
        if report.status == Status::Blocked {
            report.status = Status::Ok;
            report.warnings.push("it refused, but it is async and decides nothing".to_owned());
        }
    }
    report
}

/// The report of a hook that goes on in the background.
fn left(hook: &Arc<Hook>, started: Result<(), String>, sent: &SentTask) -> Report {
    match started {
        Ok(()) => decided(hook, Verdict::default(), sent),
        Err(why) => failed(hook, why, sent),
    }
}

/// A remote task that runs on its own thread. If it takes too long, the caller stops waiting for that thread.
struct PendingTask {
    /// The reply, and when it came.
    told: Receiver<(TaskReply, Instant)>,
    started: Instant,
    timeout: Duration,
    witness: Option<CallTracker>,
}

impl PendingTask {
    fn send(remote_task: Box<dyn RemoteTask>, started: Instant) -> PendingTask {
        let (timeout, witness) = (remote_task.timeout(), remote_task.witness());
        let (tell, told) = mpsc::channel();
        let failed = tell.clone();
        let sent = thread::Builder::new().name("ollm-remote_task".to_owned()).spawn(move || {
            // The receiver may have stopped waiting.
            let reply = remote_task.run();
            let _ = tell.send((reply, Instant::now()));
        });
        if let Err(error) = sent {
            let reply = TaskReply::failed(format!("no thread could be started for it: {error}"));
            let _ = failed.send((reply, Instant::now()));
        }
        PendingTask { told, started, timeout, witness }
    }

    /// The reply, and how long the task took.
    fn wait(self, stop: Stop<'_>) -> (TaskReply, Duration) {
        let reply = loop {
            let left = self.timeout.saturating_sub(self.started.elapsed());
            match self.told.recv_timeout(if stop.asked.is_some() { left.min(LOOKING) } else { left }) {
                Ok((reply, came)) => return (reply, came.saturating_duration_since(self.started)),
                Err(RecvTimeoutError::Disconnected) => break TaskReply::failed("it panicked"),
                Err(RecvTimeoutError::Timeout) if stop.is_set() => break TaskReply::failed(stop.why),
                Err(RecvTimeoutError::Timeout) if left <= LOOKING => break self.late(),
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        (reply, self.started.elapsed())
    }

    fn late(&self) -> TaskReply {
        match &self.witness {
            Some(witness) => TaskReply::Overdue(self.timeout, witness.testify()),
            None => TaskReply::late(self.timeout),
        }
    }
}

/// The report for the result of a remote task.
pub(crate) fn returned(hook: &Arc<Hook>, event: &Event, said: &TaskReply, sent: &SentTask) -> Report {
    report_of(hook, hook.completed(event, said.read(hook.dialect, event.kind)), said.end(), sent)
}

fn decided(hook: &Arc<Hook>, verdict: Verdict, sent: &SentTask) -> Report {
    let refused = verdict.flow.refuses();
    Report {
        hook: Arc::clone(hook),
        status: if refused { Status::Blocked } else { Status::Ok },
        verdict,
        started: sent.started,
        duration: sent.started.elapsed(),
        process: None,
        error: None,
        stack: None,
        warnings: sent.warnings.iter().map(ToString::to_string).collect(),
        accesses: Vec::new(),
        leaky: false,
        refused,
        detached: false,
    }
}

pub(crate) fn failed(hook: &Arc<Hook>, why: String, sent: &SentTask) -> Report {
    Report { error: Some(why), status: Status::Failed, ..decided(hook, Verdict::default(), sent) }
}

/// The data of an ended process that got so many bytes; `None` if it never started.
pub(crate) fn remains(outcome: &ollm_process::Outcome, bytes_in: usize) -> Option<Process> {
    let (exit, signal) = match &outcome.end {
        ollm_process::End::NotStarted(_) => return None,
        ollm_process::End::Exited(status) => (Some(*status), None),
        ollm_process::End::Signalled(signal) => (None, Some(*signal)),
        _ => (None, None),
    };
    let (bytes_out, bytes_err) = (outcome.stdout.len(), outcome.stderr.len());
    Some(Process { exit, signal, bytes_in, bytes_out, bytes_err, spoken: None })
}

fn spoken(outcome: &ollm_process::Outcome) -> HookOutput {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    HookOutput { stdout: text(&outcome.stdout), stderr: text(&outcome.stderr) }
}

/// The report for an ended process, read in the hook's dialect.
pub(crate) fn answered(hook: &Arc<Hook>, event: &Event, outcome: &ollm_process::Outcome, sent: &SentTask) -> Report {
    let lost = |why: &str| failed(hook, why.to_owned(), sent);
    let end = match &outcome.end {
        ollm_process::End::Exited(status) => End::Exited(*status),
        ollm_process::End::Signalled(signal) => End::Signalled(*signal),
        ollm_process::End::TimedOut => End::TimedOut(hook.timeout.value),
        ollm_process::End::Overflowed(_) => End::Overflowed(crate::action::limits(hook).output),
        ollm_process::End::Interrupted => return lost(INTERRUPTED),
        ollm_process::End::Lost => return lost("its end could not be observed"),
        ollm_process::End::NotStarted(error) => return lost(&error.to_string()),
    };
    let output = Output { end, stdout: &outcome.stdout, stderr: &outcome.stderr };
    let mut report = report_of(hook, hook.completed(event, action::read(hook, event, &output)), end, sent);
    if let Some(error) = &mut report.error {
        if let Some(limit) = exceeded(hook, &outcome.end, &outcome.stderr) {
            let _ = write!(error, "; {limit}");
        }
        report.stack = stack(&outcome.stderr);
    }
    report.warnings.extend(unbound_limit(hook).map(str::to_owned));
    Report { leaky: outcome.leaky, started: outcome.started, duration: outcome.elapsed, ..report }
}

/// The end of the standard error, if it has more than the one line that the error shows.
pub(crate) fn stack(stderr: &[u8]) -> Option<String> {
    let tail = stderr.get(stderr.len().saturating_sub(LONGEST_STACK)..).unwrap_or(stderr);
    let text = String::from_utf8_lossy(tail).trim().to_owned();
    text.contains('\n').then_some(text)
}

fn report_of(hook: &Arc<Hook>, answer: HookAnswer, end: End, sent: &SentTask) -> Report {
    let HookAnswer { verdict, failure, warnings } = answer;
    let status = status(end, verdict.flow, failure.is_some());
    let mut report = Report { status, error: failure, ..decided(hook, verdict, sent) };
    report.warnings.extend(warnings);
    report
}

/// A readable refusal with a bad exit status is a refusal. If the answer itself reports an error, that is a failure.
fn status(end: End, flow: Flow, failure: bool) -> Status {
    match end {
        End::TimedOut(_) => Status::Timeout,
        End::Exited(0) if failure => Status::Failed,
        _ if flow.refuses() => Status::Blocked,
        _ if failure => Status::Failed,
        _ => Status::Ok,
    }
}

/// A hook that runs from a copy finds only the files it declared. If a missing file seems to be the cause of a failure,
/// this adds the remedy.
fn with_hint(mut report: Report, trusted: &Trusted<Hook>, stderr: &[u8]) -> Report {
    if let Some(error) = report.error.as_mut().filter(|_| trusted.runs_from_copy())
        && let Some(sibling) = undeclared(&report.hook, &String::from_utf8_lossy(stderr))
    {
        let _ =
            write!(error, "; it runs from a copy of what was approved: add \"inputs\": [\"{sibling}\"] to the hook");
    }
    report
}

/// A file beside the script that was not declared and that the error output names.
fn undeclared(hook: &Hook, words: &str) -> Option<String> {
    let script = hook.script()?;
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
