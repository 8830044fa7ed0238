//! Protected paths as a tree of folders. Most of them do not exist. A missing name is not looked up again while its
//! folder stays the same.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ollm_guard::Lock;

/// A file or folder that has not changed for this long shows every later change in its times. The coarsest file systems
/// count in steps of two seconds, and the kernel's clock ticks.
const SETTLED: Duration = Duration::from_millis(2_100);

/// The metadata by which a change of a file or folder is noticed.
pub(super) type FileState = [i64; 6];

/// A protected path.
#[derive(Clone, Debug)]
pub(super) struct WatchedPath {
    pub(super) path: PathBuf,
    pub(super) lock: Lock,
    /// Whether the whole path is compared; false for folders that we write to all the time.
    pub(super) whole: bool,
}

/// How to look at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Look up the path and its children.
    Whole,
    /// Look up the children: the path certainly exists.
    Inside,
    /// Look up nothing: nothing can have changed, or the caller does not need it.
    Nowhere,
}

/// The position of a path in the tree. A folder comes before its content.
pub(super) type NodeId = usize;

/// A path, or a folder around one.
#[derive(Debug)]
pub(super) struct PathNode {
    pub(super) path: PathBuf,
    pub(super) parent: Option<NodeId>,
    pub(super) children: Vec<NodeId>,
    /// The rule for its comparison.
    pub(super) watched: Option<WatchRule>,
    /// Whether the box is made for it, so that another file there needs another box.
    boxed: bool,
    /// Whether it, or something in it, is also used besides the box.
    pub(super) is_compared: bool,
}

impl PathNode {
    /// Whether it is on the way to others.
    pub(super) fn is_folder(&self) -> bool {
        !self.children.is_empty()
    }
}

/// The rule for comparing a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchRule {
    pub(super) lock: Lock,
    pub(super) whole: bool,
}

/// The tree of all paths that a box is made for or that are compared, with the folders around them.
#[derive(Debug)]
pub(super) struct PathTree {
    nodes: Vec<PathNode>,
}

/// The existing paths of a tree, in its order.
pub(super) type FoundPaths = Vec<(NodeId, Metadata)>;

/// Identifies the files that a box is made for.
pub(super) type BoxStamp = Vec<(NodeId, [u64; 4])>;

/// The children of settled folders; a folder with an unchanged state has no others.
#[derive(Debug, Default)]
pub(super) struct KnownFolders {
    settled: Vec<Option<(FileState, Vec<NodeId>)>>,
    /// Folders that could not be opened at the last look.
    pub(super) closed: Vec<NodeId>,
}

impl PathTree {
    /// A tree of absolute paths: compared paths, paths that a box is made for, and other paths to look at.
    pub(super) fn new(
        watched: Vec<WatchedPath>,
        boxed: impl Iterator<Item = PathBuf>,
        others: impl Iterator<Item = PathBuf>,
    ) -> PathTree {
        let watched =
            watched.into_iter().map(|WatchedPath { path, lock, whole }| (path, Some(WatchRule { lock, whole })));
        let watched = watched.map(|(path, watched)| (path, watched, false));
        let others = others.map(|path| (path, None, false));
        let mut paths: Vec<(PathBuf, Option<WatchRule>, bool)> =
            watched.chain(boxed.map(|path| (path, None, true))).chain(others).collect();
        paths.sort_by(|one, other| one.0.cmp(&other.0));
        let mut tree = PathTree { nodes: Vec::with_capacity(2 * paths.len()) };
        let mut around: Vec<NodeId> = Vec::new();
        for (path, watched, boxed) in paths {
            while around.last().and_then(|id| tree.node(*id)).is_some_and(|node| !path.starts_with(&node.path)) {
                around.pop();
            }
            let known = around.last().and_then(|id| tree.node(*id)).map(|node| node.path.clone());
            let missing: Vec<&Path> = path.ancestors().take_while(|folder| Some(*folder) != known.as_deref()).collect();
            for folder in missing.into_iter().rev() {
                around.push(tree.add(folder, around.last().copied()));
            }
            if let Some(node) = around.last().and_then(|id| tree.nodes.get_mut(*id)) {
                node.boxed |= boxed;
                node.is_compared |= !boxed;
                node.watched = joined(node.watched, watched);
            }
        }
        // A folder comes before its content.
        for id in (0..tree.nodes.len()).rev() {
            let compared = tree.node(id).filter(|node| node.is_compared).and_then(|node| node.parent);
            if let Some(parent) = compared.and_then(|parent| tree.nodes.get_mut(parent)) {
                parent.is_compared = true;
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
        self.nodes.push(PathNode {
            path,
            parent,
            children: Vec::new(),
            watched: None,
            boxed: false,
            is_compared: false,
        });
        id
    }

    /// All paths; a folder comes before its content.
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

    /// The paths that exist now.
    pub(super) fn look(&self, known: &mut KnownFolders) -> FoundPaths {
        self.look_beside(known, &|_| Look::Whole)
    }

    /// The paths that exist now. `wish` tells how to look: it leaves out paths that certainly exist, and paths that are
    /// not needed.
    pub(super) fn look_beside(&self, known: &mut KnownFolders, wish: &dyn Fn(NodeId) -> Look) -> FoundPaths {
        known.settled.resize_with(self.nodes.len(), || None);
        known.closed.clear();
        let mut found = FoundPaths::with_capacity(64);
        let roots = self.nodes.iter().enumerate().filter(|(_, node)| node.parent.is_none());
        for (root, _) in roots {
            self.look_at(root, known, wish, &mut found);
        }
        found
    }

    /// Looks up a path and its children, and notes those that exist. Returns whether the path exists.
    fn look_at(
        &self,
        id: NodeId,
        known: &mut KnownFolders,
        wish: &dyn Fn(NodeId) -> Look,
        found: &mut FoundPaths,
    ) -> bool {
        let Some(node) = self.node(id) else { return false };
        match wish(id) {
            Look::Whole => {}
            Look::Inside => {
                for child in &node.children {
                    self.look_at(*child, known, wish, found);
                }
                return true;
            }
            Look::Nowhere => return true,
        }
        let data = match node.path.symlink_metadata() {
            Ok(data) => data,
            Err(error) => {
                let closed = node.parent.filter(|_| error.kind() == ErrorKind::PermissionDenied);
                known.closed.extend(closed.filter(|folder| !known.closed.contains(folder)));
                return false;
            }
        };
        // The times of a link say nothing about its target folder.
        let state = (node.is_folder() && data.is_dir() && is_settled(&data)).then(|| file_state(&data));
        let is_folder = data.is_dir() || data.is_symlink();
        found.push((id, data));
        if !node.is_folder() || !is_folder {
            return true;
        }
        let before = known.settled.get_mut(id).and_then(Option::take).filter(|(before, _)| Some(*before) == state);
        let mut there = before.map_or_else(|| node.children.clone(), |(_, children)| children);
        there.retain(|child| self.look_at(*child, known, wish, found));
        // The state was taken before the children were listed, so a change in between shows as another state.
        if let (Some(state), Some(slot)) = (state, known.settled.get_mut(id)) {
            *slot = Some((state, there));
        }
        true
    }

    /// Identifies the files of a box for these paths, including the targets of links.
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
        self.place(path).is_some_and(|id| stamp.binary_search_by_key(&id, |(id, _)| *id).is_ok())
    }

    /// The metadata of a path in the tree, if it was found.
    pub(super) fn found<'f>(&self, found: &'f FoundPaths, path: &Path) -> Option<&'f Metadata> {
        self.place(path).and_then(|id| at(found, id))
    }

    fn place(&self, path: &Path) -> Option<NodeId> {
        self.nodes.binary_search_by(|node| node.path.as_path().cmp(path)).ok()
    }
}

/// The links among the paths that were found: a changed link may lead elsewhere.
pub(super) fn links(found: &FoundPaths) -> Vec<(NodeId, FileState)> {
    found.iter().filter(|(_, data)| data.is_symlink()).map(|(id, data)| (*id, file_state(data))).collect()
}

/// The metadata at a position.
pub(super) fn at(found: &FoundPaths, id: NodeId) -> Option<&Metadata> {
    let index = found.binary_search_by_key(&id, |(id, _)| *id).ok()?;
    found.get(index).map(|(_, data)| data)
}

fn joined(one: Option<WatchRule>, other: Option<WatchRule>) -> Option<WatchRule> {
    let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
    let lock = if one.lock == Lock::Locked { one.lock } else { other.lock };
    Some(WatchRule { lock, whole: one.whole || other.whole })
}

/// The metadata by which a change of this file or folder is noticed.
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

/// Whether a file has not changed for a while.
pub(super) fn is_settled(found: &Metadata) -> bool {
    let changed = u64::try_from(found.ctime()).map(Duration::from_secs);
    let changed = changed.ok().and_then(|changed| SystemTime::UNIX_EPOCH.checked_add(changed));
    changed.is_some_and(|changed| changed.checked_add(SETTLED).is_some_and(|settled| settled < SystemTime::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> PathTree {
        PathTree::new(Vec::new(), paths.iter().map(PathBuf::from), std::iter::empty())
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
        let (state, children) = known.settled[usr].clone().unwrap();
        assert_eq!(children, [2]);
        known.settled[usr] = Some((state, Vec::new()));
        assert_eq!(found(&tree, &mut known), all[..2], "its names were asked for again");
        let mut other = state;
        other[5] += 1;
        known.settled[usr] = Some((other, Vec::new()));
        assert_eq!(found(&tree, &mut known), all);
    }

    #[test]
    fn another_file_at_the_same_place_needs_another_box() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("file"), folder.path().join("other"));
        fs::write(&file, "one").unwrap();
        let boxed = [file.clone(), folder.path().join("absent")].into_iter();
        let tree = PathTree::new(Vec::new(), boxed, std::iter::empty());
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
