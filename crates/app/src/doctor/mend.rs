//! What can be mended without a person deciding anything: nothing is approved, installed or switched on by it.

use std::fs;

use ollm_protocol::Code;
use ollm_protocol::dialect::AgentDialect;

use super::Finding;
use crate::app_context::AppContext;
use crate::connect::{self, Caller, Link, Scope, ShellCalls};
use crate::error::AppError;

/// How a finding is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fix {
    /// Forget what was kept of files; the next event reads them.
    ForgetSnapshots,
    /// Write the entries of an agent that is connected already once more.
    Reconnect {
        /// The agent's name.
        agent: &'static str,
        /// Whose settings hold the entries.
        scope: Scope,
        /// Whether its shell calls go into a box.
        shell_calls: ShellCalls,
    },
}

impl Fix {
    /// The entries of an agent, as they were meant.
    pub(super) fn reconnect(agent: &AgentDialect, link: &Link) -> Fix {
        let text = fs::read_to_string(&link.file).unwrap_or_default();
        let shell_calls = if text.contains(" --box") { ShellCalls::InBox } else { ShellCalls::AsTheyAre };
        Fix::Reconnect { agent: agent.name, scope: link.scope, shell_calls }
    }
}

/// Mends a finding, and says what was done; nothing where a person has to decide.
pub fn mend(finding: &Finding, context: &AppContext) -> Result<Option<String>, AppError> {
    match finding.fix {
        None => Ok(None),
        Some(Fix::ForgetSnapshots) => {
            let folder = context.snapshots().filter(|folder| folder.is_dir());
            let Some(folder) = folder else { return Ok(None) };
            fs::remove_dir_all(&folder).map_err(|error| {
                AppError::new(Code::NotWritten, format!("{} cannot be removed: {error}", folder.display()))
            })?;
            Ok(Some(format!("removed {}; the next event makes it anew", folder.display())))
        }
        Some(Fix::Reconnect { agent, scope, shell_calls }) => {
            let agent = connect::agent(agent)?;
            let program = context.program.as_deref();
            let program = program.ok_or_else(|| AppError::new(Code::MissingProgram, "our own path is not known"))?;
            let plan = connect::plan(agent, scope, &Caller { program, shell_calls }, context)?;
            plan.carry_out(context)?;
            Ok(Some(format!("wrote the entries for {} anew", agent.title)))
        }
    }
}
