//! What happened to each hook of an event: the ones that ran, and the ones that did not and why.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use ollm_process::WatchedAccess;
use ollm_protocol::{EventKind, Hook, Verdict};
use serde_json::{Map, Value};

/// How a hook's run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It answered and did not refuse.
    Ok,
    /// It refused.
    Blocked,
    /// It failed; what that means for the operation its failure policy decided.
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
    /// What it decided, its failure policy included.
    pub verdict: Verdict,
    /// When it began.
    pub started: Instant,
    /// How long it took.
    pub duration: Duration,
    /// What its process left behind, if it has started one.
    pub process: Option<Process>,
    /// What went wrong.
    pub error: Option<String>,
    /// What its process wrote on standard error, where it failed with more than one line.
    pub stack: Option<String>,
    /// What was odd but accepted.
    pub warnings: Vec<String>,
    /// What its program opened and reached, where that was asked for.
    pub accesses: Vec<WatchedAccess>,
    /// Whether something it started kept its output open after it ended.
    pub leaky: bool,
    /// Whether it refused in so many words, as opposed to failing.
    pub refused: bool,
    /// Whether nobody waited for it: it goes on by itself and decides nothing.
    pub detached: bool,
}

impl Report {
    /// The line about a failure, with who failed; none where nothing did.
    pub fn failure(&self) -> Option<String> {
        self.error.as_ref().map(|error| format!("{} failed: {error}", self.hook.spec.label()))
    }
}

/// What a hook's process left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Process {
    /// Its exit status, if it ended by itself.
    pub exit: Option<i32>,
    /// The signal of somebody else that ended it.
    pub signal: Option<i32>,
    /// How many bytes it was given on standard input.
    pub bytes_in: usize,
    /// How many bytes it wrote on standard output, as far as they were read.
    pub bytes_out: usize,
    /// How many bytes it wrote on standard error, as far as they were read.
    pub bytes_err: usize,
    /// What it wrote, without secrets and not too long; kept only while somebody listens to the bus.
    pub spoken: Option<Spoken>,
}

/// What a hook's process wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
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

    /// Whether a person's approval is what is missing.
    pub fn needs_approval(self) -> bool {
        matches!(self, Reason::Untrusted | Reason::Modified)
    }
}

/// A hook that did not run.
#[derive(Clone, Debug)]
pub struct Skip {
    /// The hook.
    pub hook: Arc<Hook>,
    /// Why.
    pub reason: Reason,
    /// Why in particular, and the way out.
    pub detail: String,
}

impl Skip {
    pub(crate) fn new(hook: &Arc<Hook>, reason: Reason, detail: impl Into<String>) -> Skip {
        Skip { hook: Arc::clone(hook), reason, detail: detail.into() }
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

/// Everything that came of one event.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The event.
    pub event: EventKind,
    /// What all hooks decided together.
    pub verdict: Verdict,
    /// The complete arguments, when a hook changed them.
    pub modified_args: Option<Map<String, Value>>,
    /// The hooks that ran, in plan order.
    pub reports: Vec<Report>,
    /// The hooks that fit but did not run.
    pub skipped: Vec<Skip>,
    /// A name for this dispatch, unique and ordered by time.
    pub trace_id: String,
    /// The dispatch of another process that decided this, where the same call was asked about twice.
    pub answered_by: Option<String>,
    /// Why a refusal had no effect, where whoever asked cannot be told of one.
    pub unheard: Option<String>,
    /// What a person should know that concerns no hook that ran or was skipped.
    pub notes: Vec<String>,
    /// What was to run: stages one after the other, the hooks of a stage at once.
    pub plan: Vec<Vec<Arc<Hook>>>,
    /// When the dispatch began, by the engine's clock.
    pub time: SystemTime,
    /// The same on the clock that nobody sets.
    pub started: Instant,
    /// How long all of it took.
    pub duration: Duration,
}

impl Outcome {
    /// A verdict that no hook had a part in.
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

    /// Whether the operation goes on without asking anybody.
    pub fn continues(&self) -> bool {
        self.verdict.flow.continues()
    }
}

/// Many runs in numbers.
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
