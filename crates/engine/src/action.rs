//! From a hook and an event to a task, or to a verdict at once.
//!
//! The few things that an engine can do are a file each; which of them an action is, and with what, is said by its descriptor
//! in `ollm_protocol::hook`.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ollm_process::{Job, Limits};
use ollm_protocol::dialect::Addressee;
use ollm_protocol::hook::action::{Program, ProgramAnswer};
use ollm_protocol::{Action, Answer, Dialect, End, Event, EventKind, Hook, Output, Verdict};
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

pub(crate) use tool::Witness;
pub use tool::{ToolCall, ToolCaller, ToolFailure};

/// Keeps Python from writing its caches into the copy of what was approved, which would no longer be that.
const NO_BYTECODE: &str = "PYTHONDONTWRITEBYTECODE";

/// What to do for a hook.
pub(crate) enum Prepared {
    /// Do this.
    Task(Task, Vec<TemplateWarning>),
    /// Nothing: it has decided already.
    Decided(Box<Verdict>, Vec<TemplateWarning>),
    /// Nothing: it cannot be done with this event.
    Impossible(String),
}

/// Something that takes time.
#[derive(Debug)]
pub(crate) enum Task {
    /// Start this program.
    Job(Box<BoxedJob>),
    /// Do this on a thread of its own.
    Remote(Box<dyn RemoteTask>),
}

/// A task without a process.
pub(crate) trait RemoteTask: fmt::Debug + Send {
    /// Does it.
    fn run(self: Box<Self>) -> TaskReply;

    /// How long it may take.
    fn timeout(&self) -> Duration;

    /// Whoever may know why it takes so long.
    fn witness(&self) -> Option<Witness> {
        None
    }

    /// The task for another process, by its name in [`REMOTE_TASKS`]; why that cannot be done otherwise.
    fn hand_over(&self) -> Result<Value, String>;

    /// Names and values that must not be shown.
    fn secrets(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Reads a task that was handed over.
type ReadTask = fn(&Value) -> Option<Box<dyn RemoteTask>>;

/// The tasks that another process can do, each by its name on the way and with its reader.
pub(crate) const REMOTE_TASKS: &[(&str, ReadTask)] = &[
    #[cfg(feature = "http")]
    (http::TASK, http::read_task),
];

/// What a remote task brought back.
#[derive(Debug)]
pub(crate) enum TaskReply {
    /// Something to read, and how it ended, as if it had been a process.
    Something(Vec<u8>, End),
    /// That there is nothing to say.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only a server has a word for nothing"))]
    Nothing,
    /// A verdict that needs no reading.
    Decided(Box<Verdict>),
    /// A failure, whatever else was said; a refusal in that counts all the same.
    Failure(String, Vec<u8>),
    /// Nothing in time, and what is known of why.
    Overdue(Duration, String),
}

impl TaskReply {
    pub(crate) fn failed(why: impl Into<String>) -> TaskReply {
        TaskReply::Failure(why.into(), Vec::new())
    }

    pub(crate) fn late(timeout: Duration) -> TaskReply {
        TaskReply::Something(Vec::new(), End::TimedOut(timeout))
    }

    /// What was said, in the words of the hook's dialect.
    pub(crate) fn read(&self, dialect: &dyn Dialect, kind: EventKind) -> Answer {
        let read = |body: &[u8], end| dialect.read_verdict(kind, &Output { end, stdout: body, stderr: b"" });
        match self {
            TaskReply::Nothing => Answer::default(),
            TaskReply::Decided(verdict) => Answer { verdict: Verdict::clone(verdict), ..Answer::default() },
            TaskReply::Something(body, end) => read(body, *end),
            TaskReply::Failure(why, body) => {
                let verdict = read(body, End::Exited(0)).verdict;
                let refusal = Some(verdict).filter(|verdict| verdict.flow.refuses());
                Answer { verdict: refusal.unwrap_or_default(), failure: Some(why.clone()), warnings: Vec::new() }
            }
            TaskReply::Overdue(after, why) => {
                let answer = read(b"", End::TimedOut(*after));
                Answer { failure: answer.failure.map(|text| format!("{text}; {why}")), ..answer }
            }
        }
    }

    /// How it ended, as if it had been a process.
    pub(crate) fn end(&self) -> End {
        match self {
            TaskReply::Something(_, end) => *end,
            TaskReply::Nothing | TaskReply::Decided(_) => End::Exited(0),
            TaskReply::Failure(..) => End::Exited(1),
            TaskReply::Overdue(after, _) => End::TimedOut(*after),
        }
    }
}

/// What an action is run with.
pub(crate) struct ActionContext<'a> {
    pub(crate) trusted: &'a Trusted<Hook>,
    pub(crate) event: &'a Event,
    pub(crate) environment: &'a Environment,
    pub(crate) tools: Option<&'a Arc<dyn ToolCaller>>,
}

/// Makes a task of what a hook does, or a verdict at once.
pub(crate) fn prepare(context: &ActionContext<'_>) -> Prepared {
    let prepared = match &context.hook().action {
        Action::Program(program) => program::prepare(program, context),
        Action::Shell(line) => shell::prepare(line, context),
        Action::Verdict(declared) => verdict::prepare(declared, context),
        Action::Post(target) => http::prepare(target, context),
        Action::Tool(call) => tool::prepare(call, context),
        Action::Builtin(builtin) => builtin::prepare(builtin, context),
    };
    match prepared {
        Prepared::Task(Task::Job(mut boxed), warnings) => {
            boxed.program_box = permissions::program_box(context, &boxed.job);
            Prepared::Task(Task::Job(boxed), warnings)
        }
        prepared => prepared,
    }
}

/// Whether how its process ends is the whole answer of a hook.
pub(crate) fn answers_by_status(hook: &Hook) -> bool {
    matches!(&hook.action, Action::Program(Program { answer: ProgramAnswer::Status, .. }))
}

/// What a process that ended means.
pub(crate) fn read(hook: &Hook, event: &Event, output: &Output<'_>) -> Answer {
    if answers_by_status(hook) { program::read_status(output) } else { hook.dialect.read_verdict(event.kind, output) }
}

impl ActionContext<'_> {
    fn hook(&self) -> &Hook {
        self.trusted.hook()
    }

    /// What templates can name; it copies the event.
    fn scope(&self) -> Value {
        template::scope(self.event)
    }

    /// A process for the program of the hook, yet without arguments; why it cannot be started otherwise.
    fn job(&self) -> Result<Job, String> {
        let ActionContext { trusted, event, environment, .. } = self;
        let hook = self.hook();
        if let Some(why) = trusted.unready() {
            return Err(why);
        }
        let mut job = Job::new(trusted.program());
        job.env = environment.for_hook(hook, event)?;
        if trusted.runs_from_copy() && !hook.spec.env.iter().any(|(name, _)| name == NO_BYTECODE) {
            job.env.push((NO_BYTECODE.into(), "1".into()));
        }
        for (name, value) in &hook.spec.env {
            if let Some(value) = trusted.code_variable(name, value) {
                set_variable(&mut job.env, name, value);
            }
        }
        for (name, mut value) in trusted.variables() {
            if let Some((_, more)) = job.env.iter().find(|(known, _)| name == "PYTHONPATH" && known == name) {
                value.push(":");
                value.push(more);
            }
            set_variable(&mut job.env, name, value);
        }
        let folder = trusted.runs_in().map_or_else(|| environment.folder(hook, event), Path::to_owned);
        job.cwd = Some(folder).filter(|folder| !folder.as_os_str().is_empty());
        job.stdin = written(hook, event);
        job.limits = limits(hook);
        Ok(job)
    }
}

fn set_variable(env: &mut Vec<(OsString, OsString)>, name: &str, value: OsString) {
    env.retain(|(known, _)| known != name);
    env.push((name.into(), value));
}

/// The event in the words of the hook's dialect.
fn written(hook: &Hook, event: &Event) -> Vec<u8> {
    hook.dialect.write_event(event, &Addressee { name: &hook.spec.name, version: &hook.spec.version })
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
