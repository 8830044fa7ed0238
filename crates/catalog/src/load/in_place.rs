//! Hooks of other agents, read where they are.

use std::path::{Path, PathBuf};

use ollm_protocol::dialect::{AgentDialect, agent_named};

use ollm_protocol::Code;

use super::{FileForm, Incoming, Loading, Owner};
use crate::config::HookSettings;
use crate::connection::{WrittenFile, written_by_user, written_in_project};
use crate::file::{Syntax, whole_file};
use crate::place::Places;
use crate::problem::Severity;

/// The agents whose hooks are read where they are.
pub(super) fn agents(settings: &HookSettings) -> impl Iterator<Item = &'static AgentDialect> {
    settings.read.iter().filter_map(|name| agent_named(name))
}

/// The files with hooks of other agents that are read where they are: a change of one changes the hooks.
pub fn files_in_place(settings: &HookSettings, places: &Places, env: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let files = agents(settings).flat_map(|agent| {
        let of_projects = places.projects().flat_map(|project| written_in_project(agent, project));
        written_by_user(agent, places.user_home.as_deref(), env).into_iter().chain(of_projects).collect::<Vec<_>>()
    });
    files.map(|file| file.path).collect()
}

impl Loading {
    /// The hooks in a person's home that were written for an agent.
    pub(super) fn of_user(
        &mut self,
        agent: &'static AgentDialect,
        places: &Places,
        env: &dyn Fn(&str) -> Option<String>,
        owner: &Owner<'_>,
    ) {
        let moved = agent.home.variable.and_then(|name| Some((name, env(name)?)));
        let inside = |folder: &str| places.projects().any(|project| lies_in(Path::new(folder), project));
        if let Some((name, folder)) = moved.filter(|(_, folder)| inside(folder)) {
            // A project that could name that folder could have its hooks taken for the user's.
            let message = format!("{name} leads into the project; the hooks there are not taken for yours");
            return self.problems.push(whole_file(Code::Ignored, Severity::Warning, Path::new(&folder), message));
        }
        self.in_place(written_by_user(agent, places.user_home.as_deref(), env), agent, owner);
    }

    /// The hooks in a project that were written for an agent.
    pub(super) fn of_project(&mut self, agent: &'static AgentDialect, project: &Path, owner: &Owner<'_>) {
        self.in_place(written_in_project(agent, project), agent, owner);
    }

    fn in_place(&mut self, files: Vec<WrittenFile>, agent: &'static AgentDialect, owner: &Owner<'_>) {
        for WrittenFile { path, label, .. } in files {
            let folder = path.parent().unwrap_or(&path);
            let syntax = Syntax::of_agent(&path);
            self.file(
                &Incoming { path: &path, label: &label, folder, group: None, syntax, form: FileForm::Agent(agent) },
                owner,
            );
        }
    }
}

fn lies_in(path: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(path).starts_with(real(folder))
}
