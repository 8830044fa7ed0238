//! Folders that count as a whole: projects, those that become one, and those of agents.

use std::path::{Path, PathBuf};

use super::{Hit, Reach, Watch};
use crate::{
    Lock, PROTECTED,
    field::{Field, ShellPlace},
    path,
};

/// What in a `.git` says what runs in it.
const RUNS_IN_A_REPOSITORY: &[&str] = &["commondir", "config", "config.worktree", "gitdir", "hooks"];

/// The same, and what makes it one.
const MAKE_A_REPOSITORY: &[&str] = &["commondir", "config", "config.worktree", "head", "hooks", "objects", "refs"];

/// Hidden folders that belong to no agent alone.
const SHARED: &[&str] = &[".config", ".git", ".github", ".local", ".cargo", ".vscode"];

impl Watch {
    /// A `.ollm` or `.git` below the project's own: it would make a project of the folder that it is in. Or a `.git` that is
    /// a file.
    pub(super) fn inner_project(&self, path: &Path, reach: Reach) -> Option<Hit> {
        let inner = self.projects.iter().find_map(|project| path.strip_prefix(project).ok())?;
        let parts = path::folded(inner);
        let at = parts.iter().position(|part| part == ".ollm" || part == ".git")?;
        let rest = parts.get(at + 1..).unwrap_or_default();
        let git = parts.get(at).is_some_and(|part| part == ".git");
        let inner_git = git && matches!(rest.first().map(String::as_str), Some("modules" | "worktrees"));
        let decides = match rest.first() {
            // Repositories of submodules and of other working trees.
            _ if at == 0 && inner_git => {
                let parts = rest.get(2..).unwrap_or_default();
                parts.iter().any(|part| RUNS_IN_A_REPOSITORY.contains(&part.as_str()))
                    || (reach != Reach::Tree && rest.len() == 2)
            }
            // A file in place of the project's own folder leads to another one.
            _ if at == 0 => git && rest.is_empty() && reach == Reach::File,
            _ if !git => true,
            None => reach != Reach::Tree,
            Some(first) => reach != Reach::Tree && MAKE_A_REPOSITORY.contains(&first.as_str()),
        };
        decides.then(|| Hit::Perhaps(path.to_owned()))
    }

    /// A file that decides what runs in a folder of the home that is no project here: an agent may be started there later.
    pub(super) fn of_another_project(&self, path: &Path, reach: Reach) -> Option<Hit> {
        let mut roots = self.projects.iter().chain(&self.home);
        if reach == Reach::Tree || !roots.any(|root| path::is_in_folder(path, root)) {
            return None;
        }
        let parts = path::folded(path);
        let hidden = parts.iter().enumerate().filter(|(_, part)| part.starts_with('.'));
        let decides = |at: usize| {
            // What counts in the home itself has names of its own.
            let in_home = || self.home.as_deref().is_some_and(|home| path::folded(home).len() == at);
            let named = |name: &&str| {
                let rest = parts.get(at..).unwrap_or_default();
                let wanted: Vec<&str> = name.split('/').collect();
                // A folder of an agent comes with all that is in it.
                let is_whole = || rest.first().is_some_and(|first| !SHARED.contains(&first.as_str()));
                let same = wanted.iter().zip(rest).all(|(wanted, part)| wanted.eq_ignore_ascii_case(part));
                same && (wanted.len() <= rest.len() || is_whole())
            };
            let rows = PROTECTED.iter().filter(|row| row.lock == Lock::Locked).flat_map(|row| row.project);
            !in_home() && rows.copied().any(|name| named(&name))
        };
        hidden.map(|(at, _)| at).any(decides).then(|| Hit::Perhaps(path.to_owned()))
    }

    /// What is protected where commands run: the folder itself, or what is in that of an agent.
    pub(in crate::tampering) fn works_inside(&self, place: &ShellPlace) -> Option<PathBuf> {
        let known = place.folders.iter().filter(|folder| self.may_be_inside(folder)).find_map(|folder| {
            let place = ShellPlace::new(vec![folder.clone()], self.home.as_deref());
            self.check(&Field::literal("."), &place, Reach::File).or_else(|| self.in_agents_folder(folder))
        });
        let unwritten = || {
            place.unwritten.iter().find_map(|folder| {
                // A pattern for hidden names may fit the folder of an agent.
                let hidden = folder.glob && folder.text.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
                self.check(folder, &place.written_out(), if hidden { Reach::Tree } else { Reach::File })
            })
        };
        known.or_else(unwritten).map(|(Hit::Sure(path) | Hit::Perhaps(path))| path)
    }

    /// Most folders are not hidden, and nearly all that is protected is.
    fn may_be_inside(&self, folder: &Path) -> bool {
        let visible = self.visible.get_or_init(|| {
            let names = PROTECTED.iter().flat_map(|row| row.home).filter(|name| !name.starts_with('.'));
            let below_home = names.filter_map(|name| self.home.as_ref().map(|home| home.join(name)));
            self.single.iter().filter(|path| !path::has_hidden_part(path)).cloned().chain(below_home).collect()
        });
        let real = self.resolver.borrow_mut().look(folder).0;
        path::has_hidden_part(folder)
            || path::has_hidden_part(&real)
            || visible.iter().any(|path| path::is_in_folder(&real, path))
    }

    /// Whether commands run in the root of a project and nowhere else.
    pub(in crate::tampering) fn is_project(&self, place: &ShellPlace) -> bool {
        place.folders.iter().all(|folder| self.projects.contains(folder)) && !place.lost
    }

    /// Whether it is a folder of an agent, with protected files in it: not one that others use, too.
    pub(in crate::tampering) fn agents_folder(&self, field: &Field, place: &ShellPlace) -> Option<Hit> {
        let holds = |folder: &PathBuf| {
            let path = path::join(folder, &field.text);
            self.in_agents_folder(&path).filter(|_| !self.projects.contains(&path))
        };
        if field.open() { None } else { place.folders.iter().find_map(holds) }
    }

    /// What is protected in a folder, if that is an agent's.
    fn in_agents_folder(&self, path: &Path) -> Option<Hit> {
        let name = path.file_name()?.to_str().filter(|name| name.starts_with('.') && !SHARED.contains(name))?;
        let key = path::key(path);
        let own = self.home.as_deref() != Some(path) && !name.trim_matches('.').is_empty();
        // What is protected in every project is none of its agent's.
        let common = |name: &str| PROTECTED.iter().any(|row| row.project.contains(&name.trim_end_matches('/')));
        let inside = |known: &String| known.strip_prefix(&key).is_some_and(|rest| !common(rest));
        let hit = self.guarded().iter().filter(|_| own).find(|guarded| guarded.keys.iter().any(inside));
        hit.map(|guarded| Hit::Perhaps(guarded.path.clone()))
    }

    /// A path in a folder that a container is lent.
    pub(super) fn lent(&self, field: &Field, place: &ShellPlace, reach: Reach) -> Option<Hit> {
        if place.mounts.is_empty() {
            return None;
        }
        let mut here = place.clone();
        here.mounts.clear();
        place.mounts.iter().find_map(|(there, folder)| {
            let rest = Path::new(&field.text).strip_prefix(there).ok()?;
            let text = Path::new(folder).join(rest).to_string_lossy().into_owned();
            self.check(&Field { text, ..field.clone() }, &here, reach)
        })
    }

    /// Whether a folder below the project becomes a project.
    pub(in crate::tampering) fn new_project(&self, field: &Field, place: &ShellPlace) -> bool {
        let inner = |path: &Path| self.projects.iter().any(|project| path != project && path.starts_with(project));
        let made = |field: &Field| place.folders.iter().any(|folder| inner(&path::join(folder, &field.text)));
        field.open() || made(field) || place.unwritten_paths(field).any(|path| made(&path))
    }
}
