//! Runs a line of shell. A value from an event reaches it in an environment variable and never becomes shell text.

use ollm_process::Job;
use serde_json::Value;

use super::{ActionContext, PreparedAction, Task};
use crate::template::ShellTemplate;

pub(super) fn prepare(line: &str, context: &ActionContext<'_>) -> PreparedAction {
    context.job().map_or_else(PreparedAction::Impossible, |job| with_line(job, line, context))
}

fn with_line(mut job: Job, line: &str, context: &ActionContext<'_>) -> PreparedAction {
    let template = match ShellTemplate::parse(&context.trusted.shell_line(line)) {
        Ok(template) => template,
        Err(error) => return PreparedAction::Impossible(error.to_string()),
    };
    let scope = if template.paths().next().is_some() { context.scope() } else { Value::Null };
    match template.bind(&scope) {
        Ok(bound) => {
            job.arg0 = Some("sh".into());
            job.args = vec!["-c".into(), template.script().into(), "hook".into()];
            job.env.retain(|(name, _)| !bound.env.iter().any(|(bound, _)| name == bound.as_str()));
            job.env.extend(bound.env.into_iter().map(|(name, value)| (name.into(), value.into())));
            PreparedAction::Task(Task::Job(Box::new(job.into())), bound.warnings)
        }
        Err(error) => PreparedAction::Impossible(error.to_string()),
    }
}
