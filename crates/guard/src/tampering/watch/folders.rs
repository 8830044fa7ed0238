//! Folders that count as a whole: projects, those that become one, and those of agents.

use std::path::{Path, PathBuf};

use super::{Hit, Reach, Watch};
use crate::{
    field::{Field, Place},
    path,
};

/// What in a `.git` makes it a repository, or says what runs in it.
const MAKE_A_REPOSITORY: &[&str] = &["commondir", "config", "config.worktree", "head", "hooks", "objects", "refs"];

impl Watch {
    /// A `.ollm` or `.git` below the project's own: it would make a project of the folder that it is in. Or a `.git` that is
    /// a file.
    pub(super) fn inner_project(&self, path: &Path, reach: Reach) -> Option<Hit> {
        let inner = self.projects.iter().find_map(|project| path.strip_prefix(project).ok())?;
        let parts = path::folded(inner);
        let at = parts.iter().position(|part| part == ".ollm" || part == ".git")?;
        let rest = parts.get(at + 1..).unwrap_or_default();
        let git = parts.get(at).is_some_and(|part| part == ".git");
        let decides = match rest.first() {
            // A file in place of the project's own folder leads to another one.
            _ if at == 0 => git && rest.is_empty() && reach == Reach::File,
            _ if !git => true,
            None => reach != Reach::Tree,
            Some(first) => reach != Reach::Tree && MAKE_A_REPOSITORY.contains(&first.as_str()),
        };
        decides.then(|| Hit::Perhaps(path.to_owned()))
    }

    /// Whether commands run in the root of a project and nowhere else.
    pub(in crate::tampering) fn is_project(&self, place: &Place) -> bool {
        place.folders.iter().all(|folder| self.projects.contains(folder)) && !place.lost
    }

    /// Whether it is a folder of an agent, with protected files in it: not one that others use, too.
    pub(in crate::tampering) fn agents_folder(&self, field: &Field, place: &Place) -> Option<Hit> {
        const SHARED: &[&str] = &[".config", ".git", ".github", ".local", ".cargo", ".vscode"];
        let holds = |folder: &PathBuf| {
            let path = path::tidy(&folder.join(&field.text));
            let name = path.file_name()?.to_str().filter(|name| name.starts_with('.') && !SHARED.contains(name))?;
            let own = !self.projects.contains(&path)
                && self.home.as_ref() != Some(&path)
                && !name.trim_matches('.').is_empty();
            let key = path::key(&path);
            let hit = self.guarded().iter().find(|guarded| guarded.keys.iter().any(|known| known.starts_with(&key)));
            hit.filter(|_| own).map(|guarded| Hit::Perhaps(guarded.path.clone()))
        };
        if field.open() { None } else { place.folders.iter().find_map(holds) }
    }

    /// Whether a folder below the project becomes a project.
    pub(in crate::tampering) fn new_project(&self, field: &Field, place: &Place) -> bool {
        let inner = |path: &Path| self.projects.iter().any(|project| path != project && path.starts_with(project));
        field.open() || place.folders.iter().any(|folder| inner(&path::join(folder, &field.text)))
    }
}
