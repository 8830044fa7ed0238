//! Fixes that need no decision by a person: they approve, install and switch on nothing.

use std::fs;

use ollm_protocol::Code;
use ollm_protocol::dialect::AgentDialect;

use super::Finding;
use crate::app_context::AppContext;
use crate::connect::{self, Caller, Link, Scope, ShellCalls};
use crate::error::AppError;

/// A way to fix a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fix {
    /// Delete the stored snapshot of files; the next event reads them.
    ForgetSnapshots,
    /// Write the entries of a connected agent again.
    Reconnect {
        /// The agent's name.
        agent: &'static str,
        /// The settings that hold the entries.
        scope: Scope,
        /// Whether its shell calls go into a box.
        shell_calls: ShellCalls,
    },
}

impl Fix {
    /// The fix that writes the entries of an agent again, with their present options.
    pub(super) fn reconnect(agent: &AgentDialect, link: &Link, context: &AppContext) -> Fix {
        let shell_calls = connect::shell_calls(agent, link.scope, context);
        Fix::Reconnect { agent: agent.name, scope: link.scope, shell_calls }
    }
}

/// Applies the fix of a finding and says what was done; `None` if a person has to decide.
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
