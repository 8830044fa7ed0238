//! Imports the hooks that people wrote for another agent.

use std::path::PathBuf;

use ollm_catalog::connection::{ImportedHooks, written_by_user, written_in_project};
use ollm_protocol::Code;
use ollm_protocol::dialect::AgentDialect;
use ollm_protocol::dialect::agents::home::WrittenForm;
use ollm_store::write_atomic;

use super::{Scope, broken, homeless, project, read};
use crate::app_context::AppContext;
use crate::error::AppError;

/// A plan to import hooks of another agent.
#[derive(Debug)]
pub struct ImportPlan {
    /// The agent's files that exist.
    pub from: Vec<PathBuf>,
    /// The hook file to write.
    pub to: PathBuf,
    /// The imported hooks, and the parts that were left out.
    pub imported: ImportedHooks,
    before: Option<String>,
}

/// Plans the import of the hooks that people wrote for an agent.
pub fn plan_import(agent: &'static AgentDialect, scope: Scope, context: &AppContext) -> Result<ImportPlan, AppError> {
    let (files, folder) = match scope {
        Scope::User => {
            let home = context.places.user_home.as_deref().ok_or_else(homeless)?;
            let files = written_by_user(agent, Some(home), &|name| context.variable(name));
            (files, context.places.home.join("hooks"))
        }
        Scope::Project => (written_in_project(agent, project(context)?), project(context)?.join(".ollm/hooks")),
    };
    let mut imported = ImportedHooks::default();
    for file in &files {
        let path = &context.cwd.join(&file.path);
        // A hook that is a program is read only to see whether it asks us, so an unreadable one counts as empty.
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
    /// The content of the hook file.
    pub fn text(&self) -> String {
        format!("{:#}\n", self.imported.file())
    }

    /// Writes the hook file, unless another file has its name. False if it already has this content.
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
