//! From a hook and an event to a task, or to a verdict at once.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ollm_process::{Job, Limits};
use ollm_protocol::dialect::Addressee;
use ollm_protocol::{Action, Answer, End, Event, Hook, Output, Verdict, scope};

use crate::environment::Environment;
use crate::template::TemplateWarning;
use ollm_trust::Trusted;

mod ask_agent;
mod builtin;
mod command;
#[cfg(feature = "http")]
pub(crate) mod http;
pub(crate) mod mcp;
mod run_command;
mod shell;

pub(crate) use mcp::Witness;
pub use mcp::{ToolCall, ToolCaller, ToolFailure};

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
    Job(Box<Job>),
    /// Do this on a thread of its own.
    RemoteTask(RemoteTask),
}

/// A task without a process.
#[derive(Debug)]
pub(crate) enum RemoteTask {
    /// HttpRequest the event.
    #[cfg(feature = "http")]
    HttpRequest(Box<http::HttpRequest>),
    /// Call a tool.
    Call(Box<mcp::Call>),
    /// Call a closure that may take only so long.
    Builtin(Box<builtin::TimedCall>),
}

impl RemoteTask {
    pub(crate) fn run(self) -> TaskReply {
        match self {
            #[cfg(feature = "http")]
            RemoteTask::HttpRequest(post) => post.run(),
            RemoteTask::Call(call) => call.run(),
            RemoteTask::Builtin(call) => call.run(),
        }
    }

    /// Whoever may know why it takes so long.
    pub(crate) fn witness(&self) -> Option<Witness> {
        let RemoteTask::Call(call) = self else { return None };
        Some(call.witness())
    }

    /// How long it may take.
    pub(crate) fn timeout(&self) -> Duration {
        match self {
            #[cfg(feature = "http")]
            RemoteTask::HttpRequest(post) => post.timeout,
            RemoteTask::Call(call) => call.what.timeout,
            RemoteTask::Builtin(call) => call.timeout,
        }
    }
}

/// What an remote_task brought back.
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
    pub(crate) fn read(&self, hook: &Hook, event: &Event) -> Answer {
        let read = |body: &[u8], end| hook.dialect.read_verdict(event.kind, &Output { end, stdout: body, stderr: b"" });
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

pub(crate) fn prepare(
    trusted: &Trusted<Hook>,
    event: &Event,
    environment: &Environment,
    tools: Option<&Arc<dyn ToolCaller>>,
) -> Prepared {
    let hook = trusted.hook();
    match &hook.action {
        Action::Builtin(builtin) => builtin::prepare(hook, builtin, event),
        Action::Command { program, args } | Action::RunCommand { program, args, .. } => {
            match job(trusted, event, environment) {
                Ok(job) => command::prepare(job, (program, args), trusted, || scope(event)),
                Err(why) => Prepared::Impossible(why),
            }
        }
        Action::Shell { script } => match job(trusted, event, environment) {
            Ok(job) => shell::prepare(job, &trusted.shell_line(script), || scope(event)),
            Err(why) => Prepared::Impossible(why),
        },
        Action::AskAgent { prompt } => ask_agent::render(prompt, || scope(event)),
        #[cfg(feature = "http")]
        Action::Http { endpoint, headers } => http::prepare(hook, endpoint, headers, event, environment),
        #[cfg(not(feature = "http"))]
        Action::Http { .. } => Prepared::Impossible(
            "http hooks are not supported by this build, which lacks the feature `http`".to_owned(),
        ),
        Action::Mcp { server, tool, args } => mcp::prepare(hook, (server, tool, args), tools, || scope(event)),
    }
}

/// What a process that ended means.
pub(crate) fn read(hook: &Hook, event: &Event, output: &Output<'_>) -> Answer {
    match hook.action {
        Action::RunCommand { .. } => run_command::read(output),
        _ => hook.dialect.read_verdict(event.kind, output),
    }
}

fn job(trusted: &Trusted<Hook>, event: &Event, environment: &Environment) -> Result<Job, String> {
    let hook = trusted.hook();
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
