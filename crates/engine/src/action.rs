//! From a hook and an event to a process, or to a verdict at once.

use ollm_process::{Job, Limits};
use ollm_protocol::template::TemplateWarning;
use ollm_protocol::{Action, Event, Hook, Verdict, scope};

use crate::environment::Environment;
use crate::trust::Trusted;

mod ask_agent;
mod builtin;
mod command;
mod shell;

/// Keeps Python from writing its caches into the copy of what was approved, which would no longer be that.
const NO_BYTECODE: &str = "PYTHONDONTWRITEBYTECODE";

/// What to do for a hook.
pub(crate) enum Prepared {
    /// Start this.
    Job(Box<Job>, Vec<TemplateWarning>),
    /// Nothing: it has decided already.
    Decided(Box<Verdict>),
    /// Nothing: it cannot be started with this event.
    Impossible(String),
}

pub(crate) fn prepare(trusted: &Trusted, event: &Event, environment: &Environment) -> Prepared {
    let hook = trusted.hook();
    match &hook.action {
        Action::Builtin(builtin) => builtin::call(builtin, event),
        Action::Command { args, .. } => {
            let job = job(trusted, event, environment);
            command::prepare(job, args, trusted, || scope(event))
        }
        Action::Shell(template) => shell::prepare(job(trusted, event, environment), template, || scope(event)),
        Action::AskAgent(prompt) => ask_agent::render(prompt, || scope(event)),
        Action::RunCommand { .. } => Prepared::Impossible("runCommand is not supported by this version".to_owned()),
        Action::Http { .. } => Prepared::Impossible("http is not supported by this version".to_owned()),
        Action::Mcp { .. } => Prepared::Impossible("mcp is not supported by this version".to_owned()),
    }
}

fn job(trusted: &Trusted, event: &Event, environment: &Environment) -> Job {
    let hook = trusted.hook();
    let addressee = ollm_protocol::dialect::Addressee { name: &hook.spec.name, version: &hook.spec.version };
    let mut job = Job::new(trusted.program());
    job.env = environment.for_hook(hook, event);
    if trusted.runs_from_copy() && !hook.spec.env.iter().any(|(name, _)| name == NO_BYTECODE) {
        job.env.push((NO_BYTECODE.into(), "1".into()));
    }
    job.cwd = Some(environment.folder(hook, event)).filter(|folder| !folder.as_os_str().is_empty());
    job.stdin = hook.dialect.write_event(event, &addressee);
    job.limits = limits(hook);
    job
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
