//! Compares protected files that the kernel could not protect, after a command: moves changes aside and restores the
//! files.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ollm_guard::Lock;

use super::compared_path::ComparedPath;
use super::content::{Content, KnownContents, MOST, content, make_writable, may_change};
use super::modes::{DEEPEST, Modes, note_modes, restore_modes};
use super::path_tree::{FileState, FoundPaths, Look, NodeId, PathNode, PathTree, at, file_state};
use super::undone::UndoneChanges;

/// The state of protected paths before a command: one for each place in the tree.
#[derive(Debug)]
pub(super) struct Baseline {
    before: Vec<PathBefore>,
    /// Folders that we could not open, and that are therefore not compared.
    closed: Vec<(NodeId, FileState)>,
}

#[derive(Debug)]
enum PathBefore {
    /// Nothing was there.
    Absent,
    /// Something was there that is not compared.
    There,
    /// The kernel protects the path and everything in it.
    Held,
    /// The kernel protects the path, but not its modes.
    HeldContent(Modes),
    Kept(Content),
}

/// How much of a path the kernel protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Everything.
    Everything,
    /// The contents and names of files, but not their modes: Landlock does not control changes of modes.
    Content,
    /// Nothing.
    Nothing,
}

impl Baseline {
    /// Saves the paths that were found, except those that the kernel protects.
    pub(super) fn take(
        tree: &PathTree,
        found: &FoundPaths,
        held: &dyn Fn(&Path) -> Hold,
        known: &mut KnownContents,
    ) -> Baseline {
        // A command could change a file with a second name by that name.
        let is_lockable = |data: &fs::Metadata| !(data.is_symlink() || data.is_file() && data.nlink() > 1);
        let state = |id: &NodeId| Some((*id, file_state(at(found, *id)?)));
        let closed = known.folders.closed.iter().filter_map(state).collect();
        let (mut found, mut all) = (found.iter().peekable(), Vec::with_capacity(tree.nodes().len()));
        for (id, node) in tree.nodes().iter().enumerate() {
            let data = found.next_if(|(found, _)| *found == id).map(|(_, data)| data);
            let around = node.parent.and_then(|parent| all.get(parent).zip(tree.nodes().get(parent)));
            let is_inside = around.is_some_and(|(around, node)| match around {
                PathBefore::Held => true,
                PathBefore::HeldContent(_) => node.watched.is_some_and(|watched| watched.whole),
                _ => false,
            });
            let by_kernel = |data| {
                let locked = node.watched.is_some_and(|watched| watched.lock == Lock::Locked);
                if locked && is_lockable(data) { held(&node.path) } else { Hold::Nothing }
            };
            all.push(match data {
                _ if is_inside => PathBefore::Held,
                None => PathBefore::Absent,
                Some(data) if by_kernel(data) == Hold::Everything => PathBefore::Held,
                Some(data) if by_kernel(data) == Hold::Content => {
                    let depth = if node.watched.is_some_and(|watched| watched.whole) { DEEPEST } else { 0 };
                    let mut modes = Modes::new();
                    note_modes(&node.path, data, depth, &mut modes);
                    PathBefore::HeldContent(modes)
                }
                Some(data) if node.watched.is_some_and(|watched| watched.whole) || is_loose_lead(node, data) => {
                    PathBefore::Kept(content(&node.path, data, &mut MOST.clone(), known))
                }
                Some(_) => PathBefore::There,
            });
        }
        Baseline { before: all, closed }
    }

    /// The present state of all paths that the kernel does not protect.
    pub(super) fn look_again(&self, tree: &PathTree, known: &mut KnownContents) -> FoundPaths {
        // A command cannot replace paths that the kernel protects, nor the folders around them.
        let nodes = tree.nodes();
        let (mut pinned, mut asked) = (vec![false; nodes.len()], vec![false; nodes.len()]);
        for (id, (node, before)) in nodes.iter().zip(&self.before).enumerate().rev() {
            let holds = matches!(before, PathBefore::Held) || pinned.get(id) == Some(&true);
            let asks = node.is_compared || matches!(before, PathBefore::Kept(_)) || asked.get(id) == Some(&true);
            for (is_so, around) in [(holds, &mut pinned), (asks, &mut asked)] {
                if is_so {
                    [Some(id), node.parent].into_iter().flatten().for_each(|id| {
                        around.get_mut(id).into_iter().for_each(|around| *around = true);
                    });
                }
            }
        }
        let is_missing = |child: &NodeId| {
            asked.get(*child) == Some(&true) && matches!(self.before.get(*child), Some(PathBefore::Absent))
        };
        let wish = |id: NodeId| match (self.before.get(id), nodes.get(id)) {
            (Some(PathBefore::Held), _) => Look::Nowhere,
            _ if asked.get(id) != Some(&true) => Look::Nowhere,
            (Some(PathBefore::There), Some(node))
                if pinned.get(id) == Some(&true) && !node.children.iter().any(is_missing) =>
            {
                Look::Inside
            }
            _ => Look::Whole,
        };
        loop {
            let found = tree.look_beside(&mut known.folders, &wish);
            // The command closed these folders.
            let is_new = |id: &&NodeId| !self.closed.iter().any(|(before, _)| before == *id);
            let closed = known.folders.closed.iter().filter(is_new).filter_map(|id| nodes.get(*id));
            if closed.filter(|node| make_writable(&node.path)).count() == 0 {
                return found;
            }
        }
    }

    /// Restores everything that has changed, and reports it; `found` is the present state.
    pub(super) fn restore(
        &self,
        tree: &PathTree,
        mut found: FoundPaths,
        known: &mut KnownContents,
        undone: &UndoneChanges,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        // Links come first: a link that was changed leads to files of others.
        let is_link = |id: &NodeId| matches!(self.before.get(*id), Some(PathBefore::Kept(Content::Link(_))));
        let (links, others): (Vec<NodeId>, Vec<NodeId>) = (0..self.before.len()).partition(is_link);
        for id in links.into_iter().chain(others) {
            let note = self.restore_one(tree, id, &found, known, undone);
            if note.is_some() {
                // Something was moved, so the state is read again.
                found = self.look_again(tree, known);
            }
            notes.extend(note);
        }
        let is_other =
            |(id, state): &&(NodeId, FileState)| at(&found, *id).is_some_and(|data| file_state(data) != *state);
        let closed = self.closed.iter().filter(is_other).filter_map(|(id, _)| tree.nodes().get(*id));
        notes.extend(closed.map(|node| {
            let path = node.path.display();
            format!("`{path}` could not be read and was changed by the command; look at the protected files in it")
        }));
        notes
    }

    fn restore_one(
        &self,
        tree: &PathTree,
        id: NodeId,
        found: &FoundPaths,
        known: &mut KnownContents,
        undone: &UndoneChanges,
    ) -> Option<String> {
        let (node, before) = tree.nodes().get(id).zip(self.before.get(id))?;
        let lock = node.watched.map_or(Lock::Locked, |watched| watched.lock);
        let compared = ComparedPath { path: &node.path, lock };
        let now =
            |known: &mut KnownContents| at(found, id).map(|data| content(&node.path, data, &mut MOST.clone(), known));
        match before {
            PathBefore::Kept(before) => compared.restore(before, now(known), undone),
            PathBefore::Absent if node.watched.is_some_and(|watched| watched.whole) => {
                now(known).and_then(|now| compared.appeared(&now, self.new_link(tree, found, id), undone))
            }
            PathBefore::Absent | PathBefore::There
                if node.is_folder() && at(found, id).is_some_and(|data| is_git_file(node, data)) =>
            {
                now(known).and_then(|now| compared.appeared(&now, None, undone))
            }
            PathBefore::HeldContent(before) => at(found, id).and_then(|data| restore_modes(&node.path, data, before)),
            PathBefore::Absent | PathBefore::There | PathBefore::Held => None,
        }
    }

    /// The outermost new link on the way to a path that appeared.
    fn new_link<'t>(&self, tree: &'t PathTree, found: &FoundPaths, id: NodeId) -> Option<&'t Path> {
        let is_new = |id: &NodeId| matches!(self.before.get(*id), Some(PathBefore::Absent | PathBefore::There));
        let links =
            tree.way_to(id).into_iter().filter(is_new).filter_map(|id| Some((tree.nodes().get(id)?, at(found, id)?)));
        links.filter(|(node, data)| is_loose_lead(node, data)).map(|(node, _)| node.path.as_path()).next()
    }
}

/// Whether this leads to a protected path and could be made to lead elsewhere.
fn is_loose_lead(node: &PathNode, data: &fs::Metadata) -> bool {
    let leads = data.is_symlink() || is_git_file(node, data);
    node.is_folder() && leads && node.path.parent().is_some_and(may_change)
}

/// Whether this is a `.git` file in place of a folder, which names another repository.
fn is_git_file(node: &PathNode, data: &fs::Metadata) -> bool {
    data.is_file() && node.path.ends_with(".git")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::super::path_tree::WatchedPath;
    use super::*;

    struct Scene(tempfile::TempDir);

    impl Scene {
        fn new() -> Scene {
            Scene(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
            fs::write(self.path(name), text).unwrap();
        }

        fn read(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.path(name)).ok()
        }

        fn baseline(&self, names: &[(&str, Lock)]) -> TakenBaseline {
            let watched = |(name, lock): &(&str, Lock)| WatchedPath { path: self.path(name), lock: *lock, whole: true };
            let tree = PathTree::new(names.iter().map(watched).collect(), std::iter::empty(), std::iter::empty());
            let mut known = KnownContents::default();
            let found = tree.look(&mut known.folders);
            TakenBaseline { baseline: Baseline::take(&tree, &found, &|_| Hold::Nothing, &mut known), tree, known }
        }
    }

    struct TakenBaseline {
        baseline: Baseline,
        tree: PathTree,
        known: KnownContents,
    }

    impl TakenBaseline {
        fn restore(mut self) -> Vec<String> {
            let found = self.baseline.look_again(&self.tree, &mut self.known);
            self.baseline.restore(&self.tree, found, &mut self.known, &UndoneChanges::default())
        }
    }

    #[test]
    fn what_appeared_is_moved_aside() {
        let scene = Scene::new();
        let baseline = scene.baseline(&[(".claude/settings.json", Lock::Locked), (".ollm/hooks", Lock::Locked)]);
        scene.write(".claude/settings.json", "evil");
        scene.write(".claude/notes", "kept");
        let notes = baseline.restore();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(!scene.path(".claude/settings.json").exists());
        assert_eq!(scene.read(".claude/settings.json.set-aside-1").as_deref(), Some("evil"));
        assert_eq!(scene.read(".claude/notes").as_deref(), Some("kept"));
    }

    #[test]
    fn a_link_that_leads_to_what_appeared_is_moved_aside_and_not_what_it_leads_to() {
        let scene = Scene::new();
        scene.write("elsewhere/settings.json", "someone's");
        let baseline = scene.baseline(&[(".claude/settings.json", Lock::Locked)]);
        symlink(scene.path("elsewhere"), scene.path(".claude")).unwrap();
        assert_eq!(baseline.restore().len(), 1);
        assert!(!scene.path(".claude").is_symlink());
        assert_eq!(scene.read("elsewhere/settings.json").as_deref(), Some("someone's"));
    }

    #[test]
    fn what_was_changed_or_removed_is_restored() {
        let scene = Scene::new();
        scene.write("rc", "mine");
        scene.write("hooks/a", "one");
        scene.write("hooks/b", "two");
        symlink("rc", scene.path("link")).unwrap();
        let baseline = scene.baseline(&[("rc", Lock::Locked), ("hooks", Lock::Locked), ("link", Lock::Locked)]);
        scene.write("rc", "evil");
        fs::remove_file(scene.path("hooks/b")).unwrap();
        scene.write("hooks/c", "evil");
        fs::remove_file(scene.path("link")).unwrap();
        assert_eq!(baseline.restore().len(), 3);
        assert_eq!(scene.read("rc").as_deref(), Some("mine"));
        assert_eq!(scene.read("rc.set-aside-1").as_deref(), Some("evil"));
        assert_eq!((scene.read("hooks/b").as_deref(), scene.read("hooks/c")), (Some("two"), None));
        assert_eq!(fs::read_link(scene.path("link")).unwrap(), Path::new("rc"));
    }

    #[test]
    fn settings_of_git_may_change_unless_they_have_it_run_something() {
        let scene = Scene::new();
        let (plain, lock) = ("[core]\n\tbare = false\n", Lock::Compared);
        scene.write(".git/config", plain);
        let baseline = scene.baseline(&[(".git/config", lock)]);
        let remote = format!("{plain}[remote \"origin\"]\n\turl = /srv/x.git\n");
        scene.write(".git/config", &remote);
        assert_eq!(baseline.restore(), Vec::<String>::new());
        for evil in ["[core]\n\thooksPath = /tmp/evil\n", "[alias]\n\tst = rebase -x ./evil\n"] {
            let baseline = scene.baseline(&[(".git/config", lock)]);
            scene.write(".git/config", &format!("{remote}{evil}"));
            assert_eq!(baseline.restore().len(), 1, "{evil}");
            assert_eq!(scene.read(".git/config").as_ref(), Some(&remote), "{evil}");
        }
    }

    #[test]
    fn a_new_repository_stays_unless_it_runs_something() {
        let scene = Scene::new();
        let names = [(".git/config", Lock::Compared), (".git/hooks", Lock::Locked)];
        let baseline = scene.baseline(&names);
        scene.write(".git/config", "[core]\n\tbare = false\n");
        scene.write(".git/hooks/pre-commit.sample", "");
        assert_eq!(baseline.restore(), Vec::<String>::new());
        fs::remove_dir_all(scene.path(".git")).unwrap();
        let baseline = scene.baseline(&names);
        scene.write(".git/config", "[core]\n\tpager = ./evil\n");
        scene.write(".git/hooks/pre-commit", "");
        assert_eq!(baseline.restore().len(), 2);
    }

    #[test]
    fn a_link_in_place_of_a_folder_is_moved_aside_and_not_what_it_leads_to() {
        let scene = Scene::new();
        scene.write("elsewhere/settings.json", "someone's");
        scene.write(".claude/notes", "mine");
        let baseline = scene.baseline(&[(".claude/settings.json", Lock::Locked)]);
        fs::rename(scene.path(".claude"), scene.path("moved")).unwrap();
        symlink(scene.path("elsewhere"), scene.path(".claude")).unwrap();
        assert_eq!(baseline.restore().len(), 1);
        assert!(!scene.path(".claude").is_symlink());
        assert_eq!(scene.read("elsewhere/settings.json").as_deref(), Some("someone's"));
    }

    #[test]
    fn folders_within_folders_without_end_are_moved_aside() {
        let scene = Scene::new();
        let baseline = scene.baseline(&[(".claude/settings.json", Lock::Locked), (".mcp.json", Lock::Locked)]);
        scene.write(".mcp.json", "evil");
        // The deepest nesting that one path allows.
        let deepest = std::iter::repeat_n("d", 1_900).collect::<Vec<_>>().join("/");
        fs::create_dir_all(scene.path(".claude/settings.json").join(deepest)).unwrap();
        assert_eq!(baseline.restore().len(), 2);
        assert!(!scene.path(".claude/settings.json").exists() && !scene.path(".mcp.json").exists());
    }

    #[test]
    fn a_file_in_place_of_a_folder_is_moved_aside() {
        let scene = Scene::new();
        scene.write(".claude/hooks/a", "mine");
        let baseline = scene.baseline(&[(".claude/hooks", Lock::Locked)]);
        fs::rename(scene.path(".claude"), scene.path("moved")).unwrap();
        scene.write(".claude", "evil");
        assert_eq!(baseline.restore().len(), 1);
        assert_eq!(scene.read(".claude/hooks/a").as_deref(), Some("mine"));
        assert_eq!(scene.read(".claude.set-aside-1").as_deref(), Some("evil"));
    }

    #[test]
    fn a_file_that_names_another_repository_stays_as_it_was() {
        let names = [(".git/config", Lock::Compared), (".git/hooks", Lock::Locked)];
        let scene = Scene::new();
        let baseline = scene.baseline(&names);
        scene.write(".git", "gitdir: evil");
        assert_eq!(baseline.restore().len(), 1);
        assert_eq!((scene.read(".git"), scene.read(".git.set-aside-1").as_deref()), (None, Some("gitdir: evil")));
        scene.write(".git/hooks/pre-commit", "mine");
        let baseline = scene.baseline(&names);
        fs::rename(scene.path(".git"), scene.path("moved")).unwrap();
        scene.write(".git", "gitdir: evil");
        assert_eq!(baseline.restore().len(), 2);
        assert_eq!(scene.read(".git/hooks/pre-commit").as_deref(), Some("mine"));
        fs::remove_dir_all(scene.path(".git")).unwrap();
        scene.write(".git", "gitdir: elsewhere");
        let baseline = scene.baseline(&names);
        scene.write(".git", "gitdir: evil");
        assert_eq!(baseline.restore().len(), 1);
        assert_eq!(scene.read(".git").as_deref(), Some("gitdir: elsewhere"));
    }

    #[test]
    fn what_appears_beside_what_is_there_is_found() {
        let scene = Scene::new();
        scene.write("b", "mine");
        let names = ["a", "b", "c/d"].map(|name| (name, Lock::Locked));
        let taken = scene.baseline(&names);
        scene.write("a", "evil");
        scene.write("b", "evil");
        scene.write("c/d", "evil");
        assert_eq!(taken.restore().len(), 3);
        assert_eq!((scene.read("a"), scene.read("b").as_deref(), scene.read("c/d")), (None, Some("mine"), None));
    }

    #[test]
    fn nothing_is_told_where_nothing_changed() {
        let scene = Scene::new();
        scene.write("hooks/a", "one");
        let baseline = scene.baseline(&[("hooks", Lock::Locked), ("absent", Lock::Locked)]);
        assert_eq!(baseline.restore(), Vec::<String>::new());
    }
}
