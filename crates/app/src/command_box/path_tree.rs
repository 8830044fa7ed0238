//! Protected paths as a tree of folders. Most of them are not there: a name that a folder does not have is not asked for
//! again while that folder stays the same.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ollm_guard::Lock;

/// A file or folder that nobody touched for so long shows every later change in its times: the coarsest file systems count
/// two seconds, and the clock of a kernel ticks.
const SETTLED: Duration = Duration::from_millis(2_100);

/// By what a changed file or folder is known.
pub(super) type FileState = [i64; 6];

/// A protected path.
#[derive(Clone, Debug)]
pub(super) struct WatchedPath {
    pub(super) path: PathBuf,
    pub(super) lock: Lock,
    /// Whether it is compared as a whole: not where we write to it ourselves all the time.
    pub(super) whole: bool,
}

/// The place of a path in a tree. What is in a folder comes behind it.
pub(super) type NodeId = usize;

/// A path, or a folder around one.
#[derive(Debug)]
pub(super) struct PathNode {
    pub(super) path: PathBuf,
    pub(super) parent: Option<NodeId>,
    children: Vec<NodeId>,
    /// How it is compared.
    pub(super) watched: Option<Watched>,
    /// Whether the box is made for it: another file there needs another box.
    boxed: bool,
}

impl PathNode {
    /// Whether it is on the way to others.
    pub(super) fn is_folder(&self) -> bool {
        !self.children.is_empty()
    }
}

/// How a path is compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watched {
    pub(super) lock: Lock,
    pub(super) whole: bool,
}

/// All paths that a box is made for or that are compared, with the folders around them.
#[derive(Debug)]
pub(super) struct PathTree {
    nodes: Vec<PathNode>,
}

/// What is there of a tree, in its order.
pub(super) type FoundPaths = Vec<(NodeId, Metadata)>;

/// Which files a box is made for.
pub(super) type BoxStamp = Vec<(NodeId, [u64; 4])>;

/// The children that settled folders had; as long as the state of a folder is the same, it has no others.
#[derive(Debug, Default)]
pub(super) struct KnownFolders(Vec<Option<(FileState, Vec<NodeId>)>>);

impl PathTree {
    /// A tree of absolute paths: those that are compared, and those that a box is made for.
    pub(super) fn new(watched: Vec<WatchedPath>, boxed: impl Iterator<Item = PathBuf>) -> PathTree {
        let watched =
            watched.into_iter().map(|WatchedPath { path, lock, whole }| (path, Some(Watched { lock, whole })));
        let mut paths: Vec<(PathBuf, Option<Watched>)> = watched.chain(boxed.map(|path| (path, None))).collect();
        paths.sort_by(|one, other| one.0.cmp(&other.0));
        let mut tree = PathTree { nodes: Vec::with_capacity(2 * paths.len()) };
        let mut around: Vec<NodeId> = Vec::new();
        for (path, watched) in paths {
            while around.last().and_then(|id| tree.node(*id)).is_some_and(|node| !path.starts_with(&node.path)) {
                around.pop();
            }
            let known = around.last().and_then(|id| tree.node(*id)).map(|node| node.path.clone());
            let missing: Vec<&Path> = path.ancestors().take_while(|folder| Some(*folder) != known.as_deref()).collect();
            for folder in missing.into_iter().rev() {
                around.push(tree.add(folder, around.last().copied()));
            }
            if let Some(node) = around.last().and_then(|id| tree.nodes.get_mut(*id)) {
                node.boxed |= watched.is_none();
                node.watched = joined(node.watched, watched);
            }
        }
        tree
    }

    fn add(&mut self, path: &Path, parent: Option<NodeId>) -> NodeId {
        let id = self.nodes.len();
        if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(parent)) {
            parent.children.push(id);
        }
        let path = path.to_owned();
        self.nodes.push(PathNode { path, parent, children: Vec::new(), watched: None, boxed: false });
        id
    }

    /// All paths; what is in a folder comes behind it.
    pub(super) fn nodes(&self) -> &[PathNode] {
        &self.nodes
    }

    fn node(&self, id: NodeId) -> Option<&PathNode> {
        self.nodes.get(id)
    }

    /// The folders around a path, the outermost first, and the path itself.
    pub(super) fn way_to(&self, id: NodeId) -> Vec<NodeId> {
        let mut way: Vec<NodeId> = std::iter::successors(Some(id), |id| self.node(*id)?.parent).collect();
        way.reverse();
        way
    }

    /// What is there now.
    pub(super) fn look(&self, known: &mut KnownFolders) -> FoundPaths {
        known.0.resize_with(self.nodes.len(), || None);
        let mut found = FoundPaths::with_capacity(64);
        let roots = self.nodes.iter().enumerate().filter(|(_, node)| node.parent.is_none());
        for (root, _) in roots {
            self.look_at(root, known, &mut found);
        }
        found
    }

    /// Whether something is at a place; it is noted with what is in it.
    fn look_at(&self, id: NodeId, known: &mut KnownFolders, found: &mut FoundPaths) -> bool {
        let Some(node) = self.node(id) else { return false };
        let Ok(data) = node.path.symlink_metadata() else { return false };
        // The times of a link say nothing of the folder that it leads to.
        let state = (node.is_folder() && data.is_dir() && is_settled(&data)).then(|| file_state(&data));
        let is_folder = data.is_dir() || data.is_symlink();
        found.push((id, data));
        if !node.is_folder() || !is_folder {
            return true;
        }
        let before = known.0.get_mut(id).and_then(Option::take).filter(|(before, _)| Some(*before) == state);
        let mut there = before.map_or_else(|| node.children.clone(), |(_, children)| children);
        there.retain(|child| self.look_at(*child, known, found));
        // The state is older than what it stands for: what changed meanwhile makes it another one.
        if let (Some(state), Some(slot)) = (state, known.0.get_mut(id)) {
            *slot = Some((state, there));
        }
        true
    }

    /// Which files a box for what was found is made for, and which ones they lead to if they are links.
    pub(super) fn stamp(&self, found: &FoundPaths) -> BoxStamp {
        let boxed = found.iter().filter(|(id, _)| self.node(*id).is_some_and(|node| node.boxed));
        let stamp = |(id, own): &(NodeId, Metadata)| {
            let path = self.node(*id).filter(|_| own.is_symlink()).map(|node| &node.path);
            let target = path.and_then(|path| fs::metadata(path).ok());
            let (device, inode) = target.map_or((0, 0), |target| (target.dev(), target.ino()));
            (*id, [own.dev(), own.ino(), device, inode])
        };
        boxed.map(stamp).collect()
    }

    /// Whether a path is among those of a stamp.
    pub(super) fn has(&self, stamp: &BoxStamp, path: &Path) -> bool {
        let found = self.nodes.binary_search_by(|node| node.path.as_path().cmp(path));
        found.is_ok_and(|id| stamp.binary_search_by_key(&id, |(id, _)| *id).is_ok())
    }
}

/// What was found at a place.
pub(super) fn at(found: &FoundPaths, id: NodeId) -> Option<&Metadata> {
    let index = found.binary_search_by_key(&id, |(id, _)| *id).ok()?;
    found.get(index).map(|(_, data)| data)
}

fn joined(one: Option<Watched>, other: Option<Watched>) -> Option<Watched> {
    let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
    let lock = if one.lock == Lock::Locked { one.lock } else { other.lock };
    Some(Watched { lock, whole: one.whole || other.whole })
}

/// By what a change of this file or folder is known.
pub(super) fn file_state(found: &Metadata) -> FileState {
    [
        found.dev().cast_signed(),
        found.ino().cast_signed(),
        found.size().cast_signed(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
    ]
}

/// Whether nobody has touched a file for a while.
pub(super) fn is_settled(found: &Metadata) -> bool {
    let changed = u64::try_from(found.ctime()).map(Duration::from_secs);
    let changed = changed.ok().and_then(|changed| SystemTime::UNIX_EPOCH.checked_add(changed));
    changed.is_some_and(|changed| changed.checked_add(SETTLED).is_some_and(|settled| settled < SystemTime::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> PathTree {
        PathTree::new(Vec::new(), paths.iter().map(PathBuf::from))
    }

    fn found(tree: &PathTree, known: &mut KnownFolders) -> Vec<PathBuf> {
        tree.look(known).into_iter().map(|(id, _)| tree.nodes[id].path.clone()).collect()
    }

    #[test]
    fn a_tree_has_every_path_and_the_folders_around_it_in_their_order() {
        let tree = tree(&["/a/b", "/a-b", "/a/b/c/d", "/a/b"]);
        let paths: Vec<&str> = tree.nodes.iter().map(|node| node.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["/", "/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a-b"]);
        assert_eq!(tree.way_to(4), [0, 1, 2, 3, 4]);
        assert_eq!(tree.nodes.iter().filter(|node| node.boxed).count(), 3);
    }

    #[test]
    fn the_names_in_a_folder_are_known_while_its_state_is_the_same() {
        let tree = tree(&["/usr/bin", "/usr/no such name"]);
        let usr = 1;
        let mut known = KnownFolders::default();
        let all = ["/", "/usr", "/usr/bin"].map(PathBuf::from);
        assert_eq!(found(&tree, &mut known), all);
        let (state, children) = known.0[usr].clone().unwrap();
        assert_eq!(children, [2]);
        known.0[usr] = Some((state, Vec::new()));
        assert_eq!(found(&tree, &mut known), all[..2], "its names were asked for again");
        let mut other = state;
        other[5] += 1;
        known.0[usr] = Some((other, Vec::new()));
        assert_eq!(found(&tree, &mut known), all);
    }

    #[test]
    fn another_file_at_the_same_place_needs_another_box() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("file"), folder.path().join("other"));
        fs::write(&file, "one").unwrap();
        let tree = PathTree::new(Vec::new(), [file.clone(), folder.path().join("absent")].into_iter());
        let stamp = || tree.stamp(&tree.look(&mut KnownFolders::default()));
        let before = stamp();
        fs::write(&file, "two").unwrap();
        assert_eq!(stamp(), before);
        fs::write(&other, "").unwrap();
        fs::rename(&other, &file).unwrap();
        assert_ne!(stamp(), before);
        let before = stamp();
        fs::write(folder.path().join("absent"), "").unwrap();
        assert_ne!(stamp(), before);
    }
}
