//! `ollm trust …`: manages the key that signs approvals, and shows the machine's policy.

use ollm_app::{AppContext, AppError};
use ollm_catalog::{Config, Severity, configuration};
use ollm_trust::Trust;

use crate::arguments::trust::TrustCommand;
use crate::error::Failure;
use crate::output::Output;

mod init;
mod status;

pub(super) fn run_command(command: &TrustCommand, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    context.tell_notices(output);
    match command {
        TrustCommand::Init => init::run(context, output),
        TrustCommand::Status { json } => status::run(context, *json, output),
    }
}

/// The configuration with the place of every value; fails if it cannot be relied on.
fn config(context: &AppContext, output: &mut Output) -> Result<Config, Failure> {
    let variable = |name: &str| context.variable(name);
    let (config, problems) = configuration(&context.places, &variable, &context.overrides);
    if let Some(fatal) = problems.iter().find(|problem| problem.severity == Severity::Fatal) {
        return Err(AppError::from(fatal).into());
    }
    let told = problems.iter().filter(|problem| problem.field.starts_with("hooks."));
    told.for_each(|problem| output.tell(&problem.to_string()));
    Ok(config)
}

/// The line of the policy, below `hooks:`, that forbids older lists.
pub(crate) fn floor_line(serial: u64) -> String {
    format!("approvalSerial: {serial}")
}

/// After a withdrawal, says how the machine's policy can refuse the earlier list, if it contains the key.
pub(crate) fn tell_floor(trust: &Trust, context: &AppContext, output: &mut Output) {
    let policy = context.places.policy.as_ref().filter(|_| trust.key().is_some_and(|key| key.by_policy));
    if let Some(policy) = policy {
        let (line, file) = (floor_line(trust.counting().serial()), policy.path.display());
        output.tell(&format!("`{line}` below `hooks:` in {file} keeps the list from before out for good"));
    }
}
