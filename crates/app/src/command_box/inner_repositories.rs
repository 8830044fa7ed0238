//! Protects the repositories inside a repository: of submodules (`modules`), of other working trees (`worktrees`), and those
//! that its index has as folders, which `git status` enters.
//!
//! Ordinary work makes, moves and removes them, so none of them is mounted. A comparison covers everything that decides
//! which programs `git` runs: hooks, settings, the file that leads to the repository with the hooks, and the files that
//! lead to the inner repository itself.

use std::collections::BTreeMap;
use std::fs::{self, ReadDir};
use std::path::{Path, PathBuf};

use ollm_guard::harmful_git_settings;

use super::content::{Content, KnownContents, MOST, content, make_writable};
use super::gitlinks::gitlinks;
use super::path_tree::file_state;
use super::places::worktree;
use super::undone::{Undone, UndoneChanges};

/// The files of a repository that decide which programs git runs in it.
const DECIDE: [&str; 4] = ["commondir", "config", "config.worktree", "hooks"];
/// How many folders are looked at beside the repositories that are known, and how deep names with slashes and submodules of
/// submodules go. `git status` itself starts a process for each repository in an index.
const MOST_FOLDERS: usize = if cfg!(test) { 100 } else { 10_000 };
const DEEPEST: usize = 8;

/// The deciding files of each repository.
type Repositories = BTreeMap<PathBuf, BTreeMap<&'static str, Content>>;

/// Where inner repositories are.
#[derive(Clone, Debug, Default)]
pub(super) struct RepositoryPlaces {
    /// The folders of repositories that hold others.
    pub(super) folders: Vec<PathBuf>,
    /// The working trees, whose indexes name others.
    pub(super) trees: Vec<PathBuf>,
}

/// The inner repositories before a command.
#[derive(Debug)]
pub(super) struct InnerRepositories {
    before: FoundRepositories,
}

/// What is in some folders of inner repositories.
#[derive(Debug, Default)]
struct FoundRepositories {
    repositories: Repositories,
    /// Links in the place of folders: `git` makes none.
    links: BTreeMap<PathBuf, Content>,
    /// The files `.git` of working trees, each of which names its repository.
    leads: BTreeMap<PathBuf, Content>,
    /// Those of the folders in which not everything was looked at.
    unseen: Vec<PathBuf>,
}

impl InnerRepositories {
    /// Saves the deciding files of the repositories in these existing places.
    pub(super) fn take(places: &RepositoryPlaces, known: &mut KnownContents) -> InnerRepositories {
        let open = |folder: &Path| fs::read_dir(folder).ok();
        InnerRepositories { before: Search::new(&open, known).found(places, None) }
    }

    /// Restores every change that makes `git` run something, and reports it. Removed files stay removed.
    pub(super) fn restore(
        &self,
        places: &RepositoryPlaces,
        known: &mut KnownContents,
        undone: &UndoneChanges,
    ) -> Vec<String> {
        let now = Search::new(&open, known).found(places, Some(&self.before.repositories));
        let (empty, mut changes) = (BTreeMap::new(), Vec::new());
        // Links come first: a link that was changed leads to files of others.
        let is_other = |link: &(&PathBuf, &Content)| self.before.links.get(link.0) != Some(link.1);
        for (link, target) in now.links.iter().filter(is_other) {
            changes.push((link.clone(), undone.undo(link, self.before.links.get(link), Some(target))));
        }
        let moved: Vec<PathBuf> = changes.iter().map(|(link, _)| link.clone()).collect();
        let is_here = |path: &Path| !moved.iter().any(|link| path.starts_with(link));
        for (repository, now) in now.repositories.iter().filter(|(repository, _)| is_here(repository)) {
            let is_new = !self.before.repositories.contains_key(repository);
            let before = self.before.repositories.get(repository).unwrap_or(&empty);
            for name in DECIDE {
                let (before, now) = (before.get(name), now.get(name));
                if before != now && !is_harmless(repository, name, before, now, is_new) {
                    let path = repository.join(name);
                    let done = undone.undo(&path, before, now);
                    changes.push((path, done));
                }
            }
        }
        let real = |path: &Path| path.canonicalize().ok();
        let looked_at: Vec<PathBuf> =
            now.repositories.keys().filter(|path| is_here(path)).filter_map(|path| real(path)).collect();
        let leads_on = |lead: &Path, content: &Content| {
            named_repository(lead, content).is_some_and(|repository| looked_at.contains(&repository))
        };
        let before = self.before.leads.keys().filter(|lead| !now.leads.contains_key(*lead));
        for lead in now.leads.keys().chain(before) {
            let (before, now) = (self.before.leads.get(lead), lead_content(lead, known));
            let Some(now) = now.filter(|now| before != Some(now) && !leads_on(lead, now)) else { continue };
            // A repository that was there before is the person's, or made by a command that was looked at.
            if before.is_some() || !matches!(now, Content::Opaque(_)) {
                changes.push((lead.clone(), undone.undo(lead, before, Some(&now))));
            }
        }
        let notes = changes.into_iter().filter_map(|(path, done)| {
            let done = match done {
                Ok(Undone::Restored(_)) => "it is restored".to_owned(),
                Ok(Undone::Aside(_)) => "it is moved aside, where nothing reads it".to_owned(),
                Ok(Undone::Already) => return None,
                Err(error) => format!("that cannot be undone: {error}"),
            };
            Some(format!("`{}` decides what `git` runs since this command; {done}", path.display()))
        });
        // What was not looked at may have changed in each command.
        let unseen = now.unseen.iter().map(|folder| {
            let folder = folder.display();
            format!("`{folder}` holds more than is compared; look at the hooks and settings of repositories in it")
        });
        notes.chain(unseen).collect()
    }
}

/// Whether `git` runs nothing new after such a change.
fn is_harmless(repository: &Path, name: &str, before: Option<&Content>, now: Option<&Content>, is_new: bool) -> bool {
    let text = |content: Option<&Content>| match content {
        None => Some(String::new()),
        Some(Content::File { bytes, .. }) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Some(_) => None,
    };
    match (name, now) {
        ("hooks", Some(now)) => before.is_none_or(Content::has_examples_only) && now.has_examples_only(),
        // Without its hooks or its path to them `git` runs less, unless these hooks could refuse something.
        ("hooks", None) => before.is_none_or(Content::has_examples_only),
        ("commondir", now) => {
            let leads_out = text(now).is_some_and(|text| text.trim() == "../..");
            is_new
                && (now.is_none()
                    || (leads_out && repository.parent().is_some_and(|around| around.ends_with("worktrees"))))
        }
        // The settings of a submodule name the folder of its files.
        _ => text(before)
            .zip(text(now))
            .is_some_and(|(before, now)| harmful_git_settings(&before, &now).iter().all(|key| key == "core.worktree")),
    }
}

/// The names in a folder; a command may have closed the folder.
fn open(folder: &Path) -> Option<ReadDir> {
    fs::read_dir(folder).ok().or_else(|| make_writable(folder).then(|| fs::read_dir(folder).ok())?)
}

/// The file `.git` of the working tree of a repository, by what the repository says of it.
fn lead(repository: &Path, decides: &BTreeMap<&'static str, Content>, known: &mut KnownContents) -> Option<PathBuf> {
    if repository.parent().is_some_and(|around| around.ends_with("worktrees")) {
        // A command could have put a pipe here, or a link to a file without an end.
        let Content::File { bytes, .. } = lead_content(&repository.join("gitdir"), known)? else { return None };
        return Some(repository.join(String::from_utf8_lossy(&bytes).trim_end_matches('\n')));
    }
    let Some(Content::File { bytes, .. }) = decides.get("config") else { return None };
    Some(repository.join(worktree(&String::from_utf8_lossy(bytes))?).join(".git"))
}

/// What is in the place of such a file; a repository in its place is not looked into.
fn lead_content(lead: &Path, known: &mut KnownContents) -> Option<Content> {
    let data = lead.symlink_metadata().ok()?;
    Some(if data.is_dir() {
        Content::Opaque(file_state(&data))
    } else {
        content(lead, &data, &mut MOST.clone(), known)
    })
}

/// The repository of a working tree.
fn repository_of(tree: &Path, known: &mut KnownContents) -> Option<PathBuf> {
    let path = tree.join(".git");
    if path.is_dir() { Some(path) } else { named_repository(&path, &lead_content(&path, known)?) }
}

/// The repository that such a file names.
fn named_repository(lead: &Path, content: &Content) -> Option<PathBuf> {
    let Content::File { bytes, .. } = content else { return None };
    let text = String::from_utf8_lossy(bytes);
    let named = text.strip_prefix("gitdir:")?.trim();
    lead.parent()?.join(named).canonicalize().ok()
}

/// Looks for what decides in repositories; `open` gives the names in a folder.
struct Search<'a> {
    open: &'a dyn Fn(&Path) -> Option<ReadDir>,
    known: &'a mut KnownContents,
    found: FoundRepositories,
    /// So many folders may still be looked at.
    left: usize,
    is_whole: bool,
}

impl<'a> Search<'a> {
    fn new(open: &'a dyn Fn(&Path) -> Option<ReadDir>, known: &'a mut KnownContents) -> Search<'a> {
        Search { open, known, found: FoundRepositories::default(), left: MOST_FOLDERS, is_whole: true }
    }

    /// What is in these places. However much there is, those that were there before are looked at.
    fn found(mut self, places: &RepositoryPlaces, before: Option<&Repositories>) -> FoundRepositories {
        for repository in before.into_iter().flat_map(Repositories::keys).filter(|path| path.is_dir()) {
            self.add(repository);
        }
        for folder in &places.folders {
            (self.left, self.is_whole) = (MOST_FOLDERS, true);
            self.look_in(folder, DEEPEST);
            self.found.unseen.extend((!self.is_whole).then(|| folder.clone()));
        }
        let mut leads = Vec::new();
        for tree in &places.trees {
            (self.left, self.is_whole) = (MOST_FOLDERS, true);
            self.enter(tree, DEEPEST, before.is_none(), &mut leads);
            self.found.unseen.extend((!self.is_whole).then(|| tree.clone()));
        }
        for (repository, decides) in &self.found.repositories {
            leads.extend(lead(repository, decides, self.known));
        }
        for lead in leads {
            let content = lead_content(&lead, self.known).filter(|content| !matches!(content, Content::Opaque(_)));
            self.found.leads.extend(content.map(|content| (lead, content)));
        }
        self.found
    }

    /// Looks at the repositories that `git status` enters from a working tree. Only before a command, `.git` files may
    /// lead anywhere: the person made them.
    fn enter(&mut self, tree: &Path, depth: usize, leads_anywhere: bool, leads: &mut Vec<PathBuf>) {
        let Some(repository) = repository_of(tree, self.known) else { return };
        let Some(links) = gitlinks(&repository, &mut self.known.indexes) else {
            self.is_whole = false;
            return;
        };
        for link in links {
            let inner = tree.join(&link);
            let is_linked = |folder: &Path| folder.is_symlink();
            if !inner.join(".git").exists() || inner.ancestors().take(link.components().count()).any(is_linked) {
                continue;
            }
            if depth == 0 || self.left == 0 {
                self.is_whole = false;
                return;
            }
            self.left -= 1;
            let path = inner.join(".git");
            if path.is_dir() && !path.is_symlink() {
                self.add(&path);
                self.look_in(&path.join("modules"), depth - 1);
            } else {
                let named = repository_of(&inner, self.known).filter(|_| leads_anywhere);
                let is_known = |named: &PathBuf| {
                    self.found.repositories.keys().any(|known| known.canonicalize().is_ok_and(|known| known == *named))
                };
                if let Some(repository) = named.filter(|named| !is_known(named)) {
                    self.add(&repository);
                }
                leads.push(path);
            }
            self.enter(&inner, depth - 1, leads_anywhere, leads);
        }
    }

    fn look_in(&mut self, folder: &Path, depth: usize) {
        let Some(entries) = (self.open)(folder) else { return };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_symlink() && path.is_dir() {
                self.found.links.extend(fs::read_link(&path).map(|target| (path.clone(), Content::Link(target))));
            } else if !kind.is_dir() {
                continue;
            }
            if depth == 0 || self.left == 0 {
                self.is_whole = false;
                return;
            }
            self.left -= 1;
            let is_repository = self.add(&path);
            self.look_in(&if is_repository { path.join("modules") } else { path }, depth - 1);
        }
    }

    /// Notes what decides in a repository, and says whether it is one.
    fn add(&mut self, path: &Path) -> bool {
        if self.found.repositories.contains_key(path) {
            return true;
        }
        let is_repository = ["HEAD", "commondir"].iter().any(|name| path.join(name).symlink_metadata().is_ok());
        if is_repository {
            let decides = DECIDE.iter().filter_map(|name| {
                let file = path.join(name);
                let data = file.symlink_metadata().ok()?;
                Some((*name, content(&file, &data, &mut MOST.clone(), self.known)))
            });
            let decides = decides.collect();
            self.found.repositories.insert(path.to_owned(), decides);
        }
        is_repository
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene(tempfile::TempDir);

    impl Scene {
        fn new() -> Scene {
            let scene = Scene(tempfile::tempdir().unwrap());
            for (file, text) in [
                ("modules/libs/x/HEAD", "ref"),
                ("modules/libs/x/config", "[core]\n\tbare = false\n"),
                ("modules/libs/x/hooks/pre-commit.sample", "example"),
                ("modules/y/HEAD", "ref"),
                ("modules/y/hooks/pre-commit", "mine"),
                ("worktrees/w/HEAD", "ref"),
                ("worktrees/w/commondir", "../..\n"),
            ] {
                scene.write(file, text);
            }
            scene
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn read(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.0.path().join(name)).ok()
        }

        /// The notes after a change.
        fn notes(&self, change: impl FnOnce(&Scene)) -> Vec<String> {
            let folders = ["modules", "worktrees"].map(|name| self.0.path().join(name)).into();
            let places = RepositoryPlaces { folders, ..RepositoryPlaces::default() };
            let mut known = KnownContents::default();
            let inner = InnerRepositories::take(&places, &mut known);
            change(self);
            inner.restore(&places, &mut known, &UndoneChanges::default())
        }
    }

    #[test]
    fn what_has_git_run_something_in_a_submodule_or_another_working_tree_is_put_back() {
        let scene = Scene::new();
        let notes = scene.notes(|scene| {
            scene.write("modules/libs/x/hooks/pre-commit", "evil");
            scene.write("modules/libs/x/config", "[core]\n\tfsmonitor = ./evil\n");
            scene.write("modules/y/hooks/pre-commit", "evil");
            scene.write("worktrees/w/commondir", "/tmp/evil");
            scene.write("worktrees/w/config.worktree", "[core]\n\thooksPath = /tmp/evil\n");
        });
        assert_eq!(notes.len(), 5, "{notes:#?}");
        assert_eq!(scene.read("modules/libs/x/hooks/pre-commit"), None);
        assert_eq!(scene.read("modules/libs/x/hooks/pre-commit.sample").as_deref(), Some("example"));
        assert_eq!(scene.read("modules/libs/x/config").as_deref(), Some("[core]\n\tbare = false\n"));
        assert_eq!(scene.read("modules/y/hooks/pre-commit").as_deref(), Some("mine"));
        assert_eq!(scene.read("worktrees/w/commondir").as_deref(), Some("../..\n"));
        assert_eq!(scene.read("worktrees/w/config.worktree"), None);
    }

    #[test]
    fn what_is_made_anew_with_something_that_runs_loses_it() {
        let scene = Scene::new();
        let notes = scene.notes(|scene| {
            scene.write("modules/z/HEAD", "ref");
            scene.write("modules/z/hooks/post-checkout", "evil");
            scene.write("worktrees/v/HEAD", "ref");
            scene.write("worktrees/v/commondir", "/tmp/evil");
        });
        assert_eq!(notes.len(), 2, "{notes:#?}");
        assert_eq!((scene.read("modules/z/hooks/post-checkout"), scene.read("worktrees/v/commondir")), (None, None));
    }

    #[test]
    fn a_link_in_the_place_of_a_repository_is_moved_aside() {
        let scene = Scene::new();
        let notes = scene.notes(|scene| {
            let place = |name: &str| scene.0.path().join(name);
            for (name, elsewhere) in [("modules/y", "evil"), ("modules/libs", "more")] {
                fs::rename(place(name), place(elsewhere)).unwrap();
                std::os::unix::fs::symlink(place(elsewhere), place(name)).unwrap();
            }
            scene.write("evil/hooks/pre-commit", "evil");
            scene.write("more/x/hooks/pre-commit", "evil");
        });
        assert_eq!(notes.len(), 2, "{notes:#?}");
        assert_eq!((scene.read("modules/y/HEAD"), scene.read("modules/libs/x/HEAD")), (None, None));
    }

    #[test]
    fn however_many_repositories_a_command_makes_those_from_before_are_kept_and_it_is_told() {
        let scene = Scene::new();
        let notes = scene.notes(|scene| {
            for number in 0..=MOST_FOLDERS {
                scene.write(&format!("modules/{number}/HEAD"), "ref");
            }
            scene.write("modules/y/hooks/pre-commit", "evil");
        });
        assert_eq!(scene.read("modules/y/hooks/pre-commit").as_deref(), Some("mine"), "{notes:#?}");
        assert_eq!(notes.iter().filter(|note| note.contains("holds more than is compared")).count(), 1, "{notes:#?}");
    }

    #[test]
    fn the_file_of_a_working_tree_names_only_repositories_that_are_compared() {
        let scene = Scene::new();
        for (file, text) in [
            ("modules/y/config", "[core]\n\tworktree = ../../y\n"),
            ("y/.git", "gitdir: ../modules/y\n"),
            ("worktrees/w/gitdir", "../../w/.git\n"),
            ("w/.git", "gitdir: ../worktrees/w\n"),
            ("evil/HEAD", "ref"),
        ] {
            scene.write(file, text);
        }
        let evil = "gitdir: ../evil\n";
        let notes = scene.notes(|scene| {
            scene.write("y/.git", evil);
            scene.write("w/.git", evil);
            scene.write("modules/z/HEAD", "ref");
            scene.write("modules/z/config", "[core]\n\tworktree = ../../z\n");
            scene.write("z/.git", evil);
        });
        assert_eq!(notes.len(), 3, "{notes:#?}");
        assert_eq!(scene.read("y/.git").as_deref(), Some("gitdir: ../modules/y\n"));
        assert_eq!(scene.read("w/.git").as_deref(), Some("gitdir: ../worktrees/w\n"));
        assert_eq!(scene.read("z/.git"), None);
        let notes = scene.notes(|scene| {
            scene.write("z/.git", "gitdir: ../modules/z\n");
            fs::remove_file(scene.0.path().join("w/.git")).unwrap();
        });
        assert_eq!(notes, Vec::<String>::new());
    }

    #[test]
    fn a_pipe_or_an_endless_file_in_the_place_of_what_a_working_tree_names_is_not_read() {
        let scene = Scene::new();
        let notes = scene.notes(|scene| {
            for (name, place) in [("v", "/dev/zero"), ("u", "pipe")] {
                scene.write(&format!("worktrees/{name}/HEAD"), "ref");
                scene.write(&format!("worktrees/{name}/commondir"), "../..\n");
                let gitdir = scene.0.path().join(format!("worktrees/{name}/gitdir"));
                if place == "pipe" {
                    let kind = rustix::fs::FileType::Fifo;
                    rustix::fs::mknodat(rustix::fs::CWD, gitdir, kind, 0o600.into(), 0).unwrap();
                } else {
                    std::os::unix::fs::symlink(place, gitdir).unwrap();
                }
            }
            scene.write("modules/y/hooks/pre-commit", "evil");
        });
        assert_eq!(notes.len(), 1, "{notes:#?}");
        assert_eq!(scene.read("modules/y/hooks/pre-commit").as_deref(), Some("mine"));
    }

    #[test]
    fn what_ordinary_work_makes_and_removes_is_not_touched() {
        let scene = Scene::new();
        let notes = scene.notes(|scene| {
            fs::remove_dir_all(scene.0.path().join("modules/y")).unwrap();
            fs::remove_dir_all(scene.0.path().join("worktrees/w")).unwrap();
            scene.write("modules/z/HEAD", "ref");
            scene.write("modules/z/config", "[core]\n\tworktree = ../../../z\n[remote \"origin\"]\n\turl = /srv/z\n");
            scene.write("modules/z/hooks/pre-push.sample", "example");
            scene.write("worktrees/v/HEAD", "ref");
            scene.write("worktrees/v/commondir", "../..\n");
            scene.write("modules/libs/x/config", "[core]\n\tbare = false\n[branch \"main\"]\n\tremote = origin\n");
        });
        assert_eq!(notes, Vec::<String>::new());
        assert!(scene.read("modules/z/config").is_some());
    }
}
