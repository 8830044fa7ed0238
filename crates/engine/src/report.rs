//! Reports on each hook of an event: the hooks that ran, and the hooks that did not, with the reason.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use ollm_process::WatchedAccess;
use ollm_protocol::{EventKind, Hook, Verdict};
use serde_json::{Map, Value};

/// How a hook's run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// It answered and did not refuse.
    Ok,
    /// It refused.
    Blocked,
    /// It failed; its failure policy decided what that means for the operation.
    Failed,
    /// It did not answer in time.
    Timeout,
}

impl Status {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Blocked => "blocked",
            Status::Failed => "failed",
            Status::Timeout => "timeout",
        }
    }
}

/// One hook's run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The hook.
    pub hook: Arc<Hook>,
    /// How it went.
    pub status: Status,
    /// Its decision, after its failure policy was applied.
    pub verdict: Verdict,
    /// When it began.
    pub started: Instant,
    /// How long it took.
    pub duration: Duration,
    /// The data of its process, if it started one.
    pub process: Option<Process>,
    /// What went wrong.
    pub error: Option<String>,
    /// The standard error of its process, if it failed with more than one line.
    pub stack: Option<String>,
    /// Oddities that were accepted.
    pub warnings: Vec<String>,
    /// The files and addresses that its program accessed, if the box notes everything.
    pub accesses: Vec<WatchedAccess>,
    /// Whether a process it started kept its output open after it ended.
    pub leaky: bool,
    /// Whether it refused in its answer, as opposed to failing.
    pub refused: bool,
    /// Whether it runs in the background: the event does not wait for it, and it decides nothing.
    pub detached: bool,
}

impl Report {
    /// A line with the failure and the hook that failed; `None` if it did not fail.
    pub fn failure(&self) -> Option<String> {
        self.error.as_ref().map(|error| format!("{} failed: {error}", self.hook.spec.label()))
    }
}

/// Data of a hook's process after its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Process {
    /// Its exit status, if it ended by itself.
    pub exit: Option<i32>,
    /// The signal that ended it, if another process sent one.
    pub signal: Option<i32>,
    /// How many bytes it got on standard input.
    pub bytes_in: usize,
    /// How many bytes of its standard output were read.
    pub bytes_out: usize,
    /// How many bytes of its standard error were read.
    pub bytes_err: usize,
    /// Its output, cut and without secrets; kept only while the bus has a listener.
    pub spoken: Option<HookOutput>,
}

/// The output of a hook's process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookOutput {
    /// On standard output.
    pub stdout: String,
    /// On standard error.
    pub stderr: String,
}

/// Why a hook did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the documented words")]
#[non_exhaustive]
pub enum Reason {
    Disabled,
    Untrusted,
    Modified,
    Unsafe,
    Missing,
    Matcher,
    Pattern,
    Condition,
    RateLimited,
    Requires,
    Scope,
    Duplicate,
    AfterBlock,
}

impl Reason {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Disabled => "disabled",
            Reason::Untrusted => "untrusted",
            Reason::Modified => "modified",
            Reason::Unsafe => "unsafe",
            Reason::Missing => "missing",
            Reason::Matcher => "matcher",
            Reason::Pattern => "pattern",
            Reason::Condition => "condition",
            Reason::RateLimited => "rate_limited",
            Reason::Requires => "requires",
            Reason::Scope => "scope",
            Reason::Duplicate => "duplicate",
            Reason::AfterBlock => "after_block",
        }
    }

    /// Whether the hook lacks a person's approval.
    pub fn needs_approval(self) -> bool {
        matches!(self, Reason::Untrusted | Reason::Modified)
    }
}

/// A hook that did not run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Skip {
    /// The hook.
    pub hook: Arc<Hook>,
    /// Why.
    pub reason: Reason,
    /// The details, with the remedy.
    pub detail: String,
}

impl Skip {
    /// A hook that does not run, with the reason and the details.
    pub fn new(hook: &Arc<Hook>, reason: Reason, detail: impl Into<String>) -> Skip {
        Skip { hook: Arc::clone(hook), reason, detail: detail.into() }
    }

    /// If the hook is a gate, the details become its failure. Any other hook is skipped.
    pub(crate) fn failure_of_gate(self) -> Result<String, Skip> {
        if self.hook.is_gate() { Ok(self.detail) } else { Err(self) }
    }
}

/// Where a hook was declared, for people.
pub(crate) fn declared(hook: &Hook) -> String {
    let origin = &hook.spec.origin;
    match (origin.file.as_os_str().is_empty(), origin.line) {
        (true, _) => format!("a {} hook", hook.spec.source.name()),
        (false, 0) => origin.file.display().to_string(),
        (false, line) => format!("{}:{line}:{}", origin.file.display(), origin.column),
    }
}

/// The result of one event.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The event.
    pub event: EventKind,
    /// The merged verdict of all hooks.
    pub verdict: Verdict,
    /// The complete arguments, if a hook changed them.
    pub modified_args: Option<Map<String, Value>>,
    /// The hooks that ran, in plan order.
    pub reports: Vec<Report>,
    /// The hooks that fit but did not run.
    pub skipped: Vec<Skip>,
    /// The id of this dispatch, unique and ordered by time.
    pub trace_id: String,
    /// The dispatch in another process that made this decision, if the same call was asked about twice.
    pub answered_by: Option<String>,
    /// Why a refusal had no effect: the calling program cannot receive one.
    pub unheard: Option<String>,
    /// Notes for a person that concern no hook that ran or was skipped.
    pub notes: Vec<String>,
    /// The planned hooks: stages run one after the other, the hooks of a stage at once.
    pub plan: Vec<Vec<Arc<Hook>>>,
    /// When the dispatch began, by the engine's clock.
    pub time: SystemTime,
    /// The same by the monotonic clock.
    pub started: Instant,
    /// How long the dispatch took.
    pub duration: Duration,
}

impl Outcome {
    /// An outcome whose verdict comes from no hook.
    pub fn of(event: EventKind, verdict: Verdict) -> Outcome {
        Outcome {
            event,
            verdict,
            modified_args: None,
            reports: Vec::new(),
            skipped: Vec::new(),
            trace_id: String::new(),
            answered_by: None,
            unheard: None,
            notes: Vec::new(),
            plan: Vec::new(),
            time: SystemTime::now(),
            started: Instant::now(),
            duration: Duration::ZERO,
        }
    }

    /// Whether the operation goes on without asking a person.
    pub fn continues(&self) -> bool {
        self.verdict.flow.continues()
    }
}

/// Counts over many runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Summary {
    pub total: usize,
    pub ok: usize,
    pub blocked: usize,
    pub failed: usize,
    pub timed_out: usize,
    pub duration: Duration,
}

/// Counts runs by how they went.
pub fn summarise(reports: &[Report]) -> Summary {
    reports.iter().fold(Summary::default(), |mut summary, report| {
        summary.total += 1;
        summary.duration += report.duration;
        match report.status {
            Status::Ok => summary.ok += 1,
            Status::Blocked => summary.blocked += 1,
            Status::Failed => summary.failed += 1,
            Status::Timeout => summary.timed_out += 1,
        }
        summary
    })
}
