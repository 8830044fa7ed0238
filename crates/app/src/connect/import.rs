//! Taking over the hooks that people wrote for another agent.

use std::path::PathBuf;

use ollm_catalog::connection::{Imported, written_by_user, written_in_project};
use ollm_protocol::Code;
use ollm_protocol::dialect::AgentDialect;
use ollm_protocol::dialect::agents::home::WrittenForm;
use ollm_store::write_atomic;

use super::{Scope, broken, homeless, project, read};
use crate::app_context::AppContext;
use crate::error::AppError;

/// Hooks of another agent that are to become ours.
#[derive(Debug)]
pub struct ImportPlan {
    /// The agent's files that there are.
    pub from: Vec<PathBuf>,
    /// The hook file that they go to.
    pub to: PathBuf,
    /// The hooks, and what was left out.
    pub imported: Imported,
    before: Option<String>,
}

/// The hooks that people wrote for an agent.
pub fn plan_import(agent: &'static AgentDialect, scope: Scope, context: &AppContext) -> Result<ImportPlan, AppError> {
    let (files, folder) = match scope {
        Scope::User => {
            let home = context.places.user_home.as_deref().ok_or_else(homeless)?;
            let files = written_by_user(agent, Some(home), &|name| context.variable(name));
            (files, context.places.home.join("hooks"))
        }
        Scope::Project => (written_in_project(agent, project(context)?), project(context)?.join(".ollm/hooks")),
    };
    let mut imported = Imported::default();
    for file in &files {
        let path = &context.cwd.join(&file.path);
        // A program is not looked into, but for whether it asks us.
        let text = match read(path) {
            Err(_) if agent.home.written.form == WrittenForm::Programs => String::new(),
            read => read?.unwrap_or_default(),
        };
        imported.add(file, &text, agent).map_err(|why| broken(path, &why))?;
    }
    let to = folder.join(format!("{}.json", agent.name));
    let before = read(&to)?;
    let from = files.into_iter().map(|file| context.cwd.join(file.path)).collect();
    Ok(ImportPlan { from, to, imported, before })
}

impl ImportPlan {
    /// The text of the hook file.
    pub fn text(&self) -> String {
        format!("{:#}\n", self.imported.file())
    }

    /// Writes the hook file, unless another one stands in its place; false when it is there already as it should be.
    pub fn carry_out(&self) -> Result<bool, AppError> {
        match &self.before {
            Some(before) if *before == self.text() => Ok(false),
            Some(_) => Err(AppError::new(
                Code::AlreadyThere,
                format!("{} is there already, with other hooks", self.to.display()),
            )
            .hint("move it away, or take over by hand what is new")),
            None => write_atomic(&self.to, self.text().as_bytes())
                .map(|()| true)
                .map_err(|error| AppError::new(Code::NotWritten, error.to_string())),
        }
    }
}
