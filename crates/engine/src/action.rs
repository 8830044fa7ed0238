//! Turns a hook and an event into a task, or into a verdict at once.
//!
//! Each thing that the engine can do has a file of its own. The descriptor of an action in `ollm_protocol::hook` says
//! which of these things the action is, and with what values.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ollm_process::{Job, Limits};
use ollm_protocol::hook::action::{Program, ProgramAnswer};
use ollm_protocol::{Action, Dialect, End, Event, EventKind, Hook, HookAnswer, Output, Verdict};
use ollm_trust::Trusted;
use serde_json::Value;

use crate::boxed_job::BoxedJob;
use crate::environment::Environment;
use crate::template::{self, TemplateWarning};

mod builtin;
mod http;
mod permissions;
mod program;
mod shell;
mod tool;
mod verdict;

pub(crate) use tool::CallTracker;
pub use tool::{ToolCall, ToolCaller, ToolFailure};

/// What to do for a hook.
pub(crate) enum PreparedAction {
    /// The hook needs this task.
    Task(Task, Vec<TemplateWarning>),
    /// The action gave its verdict without a task.
    Decided(Box<Verdict>, Vec<TemplateWarning>),
    /// The action is not possible with this event, for this reason.
    Impossible(String),
}

/// Work that takes time.
#[derive(Debug)]
pub(crate) enum Task {
    /// Start this program.
    Job(Box<BoxedJob>),
    /// Run this on a thread of its own.
    Remote(Box<dyn RemoteTask>),
}

/// A task without a process.
pub(crate) trait RemoteTask: fmt::Debug + Send {
    /// Runs the task.
    fn run(self: Box<Self>) -> TaskReply;

    /// How long it may take.
    fn timeout(&self) -> Duration;

    /// The tracker that may know why the task takes so long; only calls of servers have one.
    fn witness(&self) -> Option<CallTracker> {
        None
    }

    /// The task as a value that another process can run, under its name in [`REMOTE_TASKS`]. The error says why this
    /// task cannot be handed over.
    fn hand_over(&self) -> Result<Value, String>;

    /// Names and values that must not be shown.
    fn secrets(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Reads a task that another process handed over.
type ReadTask = fn(&Value) -> Option<Box<dyn RemoteTask>>;

/// The tasks that another process can run. Each row has the task's name in the payload and its reader.
pub(crate) const REMOTE_TASKS: &[(&str, ReadTask)] = &[
    #[cfg(feature = "http")]
    (http::TASK, http::read_task),
];

/// The result of a remote task.
#[derive(Debug)]
pub(crate) enum TaskReply {
    /// Bytes to read as an answer, and how the task ended, in terms of a process.
    Something(Vec<u8>, End),
    /// The task succeeded and has no answer.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only a server has a word for nothing"))]
    Nothing,
    /// A verdict that needs no reading.
    Decided(Box<Verdict>),
    /// A failure, with the bytes that arrived before it. A refusal in these bytes still counts.
    Failure(String, Vec<u8>),
    /// No result in time, and what is known about the cause.
    Overdue(Duration, String),
}

impl TaskReply {
    pub(crate) fn failed(why: impl Into<String>) -> TaskReply {
        TaskReply::Failure(why.into(), Vec::new())
    }

    pub(crate) fn late(timeout: Duration) -> TaskReply {
        TaskReply::Something(Vec::new(), End::TimedOut(timeout))
    }

    /// Reads the answer in the hook's dialect.
    pub(crate) fn read(&self, dialect: &dyn Dialect, kind: EventKind) -> HookAnswer {
        let read = |body: &[u8], end| dialect.read_verdict(kind, &Output { end, stdout: body, stderr: b"" });
        match self {
            TaskReply::Nothing => HookAnswer::default(),
            TaskReply::Decided(verdict) => HookAnswer { verdict: Verdict::clone(verdict), ..HookAnswer::default() },
            TaskReply::Something(body, end) => read(body, *end),
            TaskReply::Failure(why, body) => {
                let verdict = read(body, End::Exited(0)).verdict;
                let refusal = Some(verdict).filter(|verdict| verdict.flow.refuses());
                HookAnswer { verdict: refusal.unwrap_or_default(), failure: Some(why.clone()), warnings: Vec::new() }
            }
            TaskReply::Overdue(after, why) => {
                let answer = read(b"", End::TimedOut(*after));
                HookAnswer { failure: answer.failure.map(|text| format!("{text}; {why}")), ..answer }
            }
        }
    }

    /// How the task ended, in terms of a process.
    pub(crate) fn end(&self) -> End {
        match self {
            TaskReply::Something(_, end) => *end,
            TaskReply::Nothing | TaskReply::Decided(_) => End::Exited(0),
            TaskReply::Failure(..) => End::Exited(1),
            TaskReply::Overdue(after, _) => End::TimedOut(*after),
        }
    }
}

/// The values that an action is run with.
pub(crate) struct ActionContext<'a> {
    pub(crate) trusted: &'a Trusted<Hook>,
    pub(crate) event: &'a Event,
    pub(crate) environment: &'a Environment,
    pub(crate) tools: Option<&'a Arc<dyn ToolCaller>>,
}

/// Makes a task from a hook's action, or gives a verdict at once.
pub(crate) fn prepare(context: &ActionContext<'_>) -> PreparedAction {
    let prepared = match &context.hook().action {
        Action::Program(program) => program::prepare(program, context),
        Action::Shell(line) => shell::prepare(line, context),
        Action::Verdict(declared) => verdict::prepare(declared, context),
        Action::Post(target) => http::prepare(target, context),
        Action::Tool(call) => tool::prepare(call, context),
        Action::Builtin(builtin) => builtin::prepare(builtin, context),
    };
    match prepared {
        PreparedAction::Task(Task::Job(mut boxed), warnings) => {
            boxed.program_box = permissions::program_box(context, &boxed.job);
            PreparedAction::Task(Task::Job(boxed), warnings)
        }
        prepared => prepared,
    }
}

/// Whether the exit status of the hook's process is its whole answer.
pub(crate) fn answers_by_status(hook: &Hook) -> bool {
    matches!(&hook.action, Action::Program(Program { answer: ProgramAnswer::Status, .. }))
}

/// Reads the answer of a process that ended.
pub(crate) fn read(hook: &Hook, event: &Event, output: &Output<'_>) -> HookAnswer {
    if answers_by_status(hook) { program::read_status(output) } else { hook.heard(event.kind, output) }
}

impl ActionContext<'_> {
    fn hook(&self) -> &Hook {
        self.trusted.hook()
    }

    /// The variables that templates can name; the values are copies from the event.
    fn scope(&self) -> Value {
        template::scope(self.event)
    }

    /// A process for the hook's program, without arguments yet. The error says why it cannot start.
    fn job(&self) -> Result<Job, String> {
        let ActionContext { trusted, event, environment, .. } = self;
        let hook = self.hook();
        if let Some(why) = trusted.unready() {
            return Err(why);
        }
        let mut job = Job::new(trusted.program());
        job.env = environment.for_hook(hook, event)?;
        trusted.lead_to_copy(&hook.spec.env, &mut job.env);
        let folder = trusted.runs_in().map_or_else(|| environment.folder(hook, event), Path::to_owned);
        job.cwd = Some(folder).filter(|folder| !folder.as_os_str().is_empty());
        job.stdin = written(hook, event);
        job.limits = limits(hook);
        Ok(job)
    }
}

/// The event as JSON of the hook's dialect.
fn written(hook: &Hook, event: &Event) -> Vec<u8> {
    hook.written(event)
}

pub(crate) fn limits(hook: &Hook) -> Limits {
    let declared = &hook.spec.limits;
    let defaults = Limits::default();
    Limits {
        timeout: hook.timeout.value,
        output: declared.output.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(defaults.output),
        cpu: declared.cpu,
        memory: declared.memory,
        processes: declared.processes,
        files: declared.files,
        file_size: declared.file_size,
        ..defaults
    }
}
