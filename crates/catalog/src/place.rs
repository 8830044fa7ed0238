//! The folders of our files: the user's folder, the user's home, the project.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use crate::load::PROJECT_SETTINGS;

/// The folders to look into; all absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The user's own folder, by default `~/.ollm`.
    pub home: PathBuf,
    /// The user's home, where other tools keep their settings.
    pub user_home: Option<PathBuf>,
    /// The root of the project.
    pub project: Option<PathBuf>,
    /// The projects around that one, outermost first. A folder inside a project keeps the project's hooks.
    pub enclosing: Vec<PathBuf>,
    /// The machine's policy, which no user can loosen.
    pub policy: Option<PolicyFile>,
}

/// Where the machine's policy is, and whose it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    /// The file.
    pub path: PathBuf,
    /// The only user who may own and write it and its folder, beside root.
    pub owner: u32,
}

impl PolicyFile {
    /// The policy of the system, which is root's.
    pub fn of_system() -> PolicyFile {
        PolicyFile { path: PathBuf::from("/etc/ollm/policy.yaml"), owner: 0 }
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }
}

impl Places {
    /// Every project we are in, outermost first.
    pub fn projects(&self) -> impl Iterator<Item = &Path> {
        self.enclosing.iter().chain(&self.project).map(PathBuf::as_path)
    }

    /// The same for a process in this folder, with the projects it is in.
    #[must_use]
    pub fn standing_in(&self, folder: &Path) -> Places {
        let mut found = find_projects(folder, &self.home).into_iter();
        let project = found.next();
        let enclosing = found.rev().collect();
        Places { project, enclosing, ..self.clone() }
    }

    /// The same with the projects that another folder is in: approved hooks of those run as well.
    ///
    /// A project in which our own folder lies is left out: it could approve itself.
    #[must_use]
    pub fn also_in(&self, folder: &Path) -> Places {
        let is_new = |project: &PathBuf| {
            let holds_us = self.home.starts_with(project) && self.user_home.as_deref() != Some(project);
            !holds_us && !self.projects().any(|known| same_place(known, project))
        };
        // What is around a project of ours was looked at with it.
        let others = folder.ancestors().take_while(|folder| !self.projects().any(|known| known == *folder));
        let mut found: Vec<PathBuf> = projects_among(others, &self.home).into_iter().filter(is_new).rev().collect();
        let mut places = self.clone();
        if places.project.is_none() {
            places.project = found.pop();
        }
        places.enclosing.extend(found);
        places
    }

    /// The same without any project.
    #[must_use]
    pub fn users_own(&self) -> Places {
        Places { project: None, enclosing: Vec::new(), ..self.clone() }
    }

    /// The user's configuration.
    pub fn config(&self) -> PathBuf {
        self.home.join("config.yaml")
    }

    /// What the user entrusted to us.
    pub fn secrets(&self) -> PathBuf {
        self.home.join("state/secrets.json")
    }

    /// The project's configuration; none where the project's folder is the user's own.
    pub fn project_config(&self) -> Option<PathBuf> {
        let own = self.project.as_ref()?.join(".ollm");
        (!same_place(&own, &self.home)).then(|| own.join("config.yaml"))
    }

    /// Whether a project has a folder or a settings file of its own, in which it may say anything.
    pub fn project_speaks(&self) -> bool {
        let speaks = |project: &Path| {
            project.join(".ollm").is_dir() || PROJECT_SETTINGS.iter().any(|name| project.join(name).exists())
        };
        self.projects().any(speaks)
    }

    /// The folder from which on no other user may write to the user's files.
    pub(crate) fn top(&self) -> &Path {
        self.user_home.as_deref().filter(|home| self.home.starts_with(home)).unwrap_or(&self.home)
    }

    /// A folder from a configuration: absolute, below `~`, or relative to the project.
    pub(crate) fn folder(&self, written: &str) -> Option<PathBuf> {
        if let Some(own) = written.strip_prefix("~/.ollm/") {
            return Some(self.home.join(own));
        }
        if written == "~" || written.starts_with("~/") {
            return Some(self.user_home.as_ref()?.join(written.trim_start_matches('~').trim_start_matches('/')));
        }
        let path = Path::new(written);
        if path.is_absolute() { Some(path.to_owned()) } else { Some(self.project.as_ref()?.join(path)) }
    }

    /// The same in every project we are in, outermost first, where it is relative.
    pub(crate) fn folders(&self, written: &str) -> Vec<PathBuf> {
        if written.starts_with('~') || Path::new(written).is_absolute() {
            return self.folder(written).into_iter().collect();
        }
        self.projects().map(|project| project.join(written)).collect()
    }

    /// The project around ours that a folder lies in, if it is not in ours.
    pub(crate) fn enclosing_of(&self, folder: &Path) -> Option<&Path> {
        let within = |project: &&Path| folder.starts_with(project);
        self.projects().filter(within).last().filter(|project| self.project.as_deref() != Some(*project))
    }
}

/// The most nested projects. Deeper nesting is not real work; it is meant to delay us.
pub(crate) const MOST_PROJECTS: usize = 32;

/// The ancestors of `cwd` with a `.ollm` or `.git` in them, the nearest first; the user's own `.ollm` does not make a
/// project. Where there are too many, nothing is loaded, so the rest is not looked for.
pub fn find_projects(cwd: &Path, home: &Path) -> Vec<PathBuf> {
    projects_among(cwd.ancestors(), home)
}

fn projects_among<'a>(folders: impl Iterator<Item = &'a Path>, home: &Path) -> Vec<PathBuf> {
    folders.filter(|folder| is_project(folder, home)).take(MOST_PROJECTS + 1).map(Path::to_owned).collect()
}

/// Whether a folder is the root of a project: of a repository, or with a folder of ours that is not `home`.
pub(crate) fn is_project(folder: &Path, home: &Path) -> bool {
    let is_own = |found: &Metadata| home.metadata().is_ok_and(|home| same(&home, found));
    let declares = folder.join(".ollm").metadata().is_ok_and(|found| found.is_dir() && !is_own(&found));
    declares || folder.join(".git").symlink_metadata().is_ok()
}

/// The projects found within another one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NestedProjects {
    /// Their folders.
    pub folders: Vec<PathBuf>,
    /// Whether all folders were looked at.
    pub is_complete: bool,
}

/// The folders below a project that have a `.ollm` of their own, in the order of their names. Neither links nor the insides of
/// `.git` are followed.
pub fn nested_projects(project: &Path) -> NestedProjects {
    /// More folders are not looked at.
    const MOST: usize = 20_000;
    let mut found = NestedProjects { folders: Vec::new(), is_complete: true };
    let (mut open, mut seen) = (vec![project.to_owned()], 0_usize);
    while let Some(folder) = open.pop() {
        seen += 1;
        if seen > MOST {
            found.is_complete = false;
            break;
        }
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if name == ".ollm" && folder != project {
                found.folders.push(folder.clone());
            } else if is_folder && name != ".git" && name != ".ollm" {
                open.push(entry.path());
            }
        }
    }
    found.folders.sort_unstable();
    found
}

/// Whether both paths lead to the same thing, by device and inode.
pub(crate) fn same_place(one: &Path, other: &Path) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => same(&one, &other),
        _ => false,
    }
}

#[cfg(unix)]
fn same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    one.dev() == other.dev() && one.ino() == other.ino()
}
