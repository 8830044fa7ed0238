//! Compares protected files that the kernel could not protect, after a command: moves changes aside and restores the
//! files.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_guard::{Lock, harmful_git_settings};
use ollm_store::write_atomic;

use super::path_tree::{
    FileState, FoundPaths, KnownFolders, Look, NodeId, PathNode, PathTree, at, file_state, is_settled,
};
use super::undone::{Undone, UndoneChanges};

/// The largest file whose content is saved.
const LARGEST_FILE: u64 = 1 << 20;
/// The limit for one protected path: bytes, files and folders, and nested folders.
pub(super) const MOST: Budget = Budget { bytes: 16 << 20, entries: 5_000, depth: 100 };
/// How deep the modes in a protected folder are recorded.
const DEEPEST: usize = 8;
/// How many changed versions of one file get a number.
const MOST_ASIDE: usize = 1_000;
const TOO_LARGE: &str = "it is too large to be kept";

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

/// The modes of files and folders.
type Modes = BTreeMap<PathBuf, u32>;

/// A compared path.
#[derive(Clone, Copy)]
struct ComparedPath<'a> {
    path: &'a Path,
    lock: Lock,
}

/// The content of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    File {
        bytes: Arc<[u8]>,
        mode: u32,
    },
    Link(PathBuf),
    Folder {
        mode: u32,
        entries: BTreeMap<OsString, Content>,
    },
    /// Too large to save, or neither file nor folder: only a change can be noticed.
    Opaque(FileState),
}

/// The content of settled files at the time of reading. It is valid until the state of the file changes.
#[derive(Debug, Default)]
pub(super) struct KnownContents {
    files: HashMap<PathBuf, (FileState, Arc<[u8]>)>,
    bytes: u64,
    /// The same for folders on the way to protected paths.
    pub(super) folders: KnownFolders,
}

impl KnownContents {
    fn get(&self, path: &Path, state: &FileState) -> Option<Arc<[u8]>> {
        let (before, bytes) = self.files.get(path)?;
        (before == state).then(|| Arc::clone(bytes))
    }

    /// Records the content of a settled file, within limits.
    fn set(&mut self, path: &Path, state: FileState, bytes: Option<&Arc<[u8]>>) {
        if let Some((_, old)) = self.files.remove(path) {
            self.bytes -= old.len() as u64;
        }
        if let Some(bytes) = bytes.filter(|bytes| self.bytes + bytes.len() as u64 <= MOST.bytes) {
            self.bytes += bytes.len() as u64;
            self.files.insert(path.to_owned(), (state, Arc::clone(bytes)));
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    bytes: u64,
    entries: usize,
    depth: usize,
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

/// Records the modes of a path and below it, within limits.
fn note_modes(path: &Path, found: &fs::Metadata, depth: usize, modes: &mut Modes) {
    if found.is_symlink() || modes.len() >= MOST.entries {
        return;
    }
    modes.insert(path.to_owned(), found.mode() & 0o7777);
    let entries = fs::read_dir(path).ok().filter(|_| found.is_dir() && depth > 0);
    for entry in entries.into_iter().flatten().flatten() {
        if let Ok(found) = entry.metadata() {
            note_modes(&entry.path(), &found, depth - 1, modes);
        }
    }
}

/// Restores the modes of files and folders.
fn restore_modes(path: &Path, found: &fs::Metadata, before: &Modes) -> Option<String> {
    let changed = |path: &Path, found: &fs::Metadata| {
        let before = before.get(path).filter(|_| !found.is_symlink())?;
        (*before != found.mode() & 0o7777).then_some(*before)
    };
    let mut failed = None;
    let mut any = false;
    // A folder comes before its content, because a closed folder must be opened first.
    for place in before.keys() {
        let found = if place == path { Ok(found.clone()) } else { place.symlink_metadata() };
        if let Some(mode) = found.ok().and_then(|found| changed(place, &found)) {
            any = true;
            failed = fs::set_permissions(place, Permissions::from_mode(mode)).err().or(failed);
        }
    }
    let path = path.display();
    any.then(|| match failed {
        None => format!("the mode of `{path}` is protected and was changed by the command; it is restored"),
        Some(error) => {
            format!("the mode of `{path}` is protected and was changed by the command; it cannot be restored: {error}")
        }
    })
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

impl ComparedPath<'_> {
    /// Moves aside a path that appeared; if a new link leads to it, moves the link.
    fn appeared(self, now: &Content, link: Option<&Path>, undone: &UndoneChanges) -> Option<String> {
        if self.is_new_repository(now) {
            return self.new_hosts(None, now);
        }
        let path = self.path.display();
        Some(match undone.undo(link.unwrap_or(self.path), None, Some(now)) {
            Ok(Undone::Aside(aside)) => format!(
                "`{path}` is protected and was made by the command; it is now `{}`, where nothing reads it",
                aside.display()
            ),
            Ok(_) => return None,
            Err(error) => {
                format!("`{path}` is protected and was made by the command; it cannot be moved aside: {error}")
            }
        })
    }

    /// Restores the earlier content.
    fn restore(self, before: &Content, now: Option<Content>, undone: &UndoneChanges) -> Option<String> {
        if now.as_ref() == Some(before) {
            return None;
        }
        if self.is_ordinary(before, now.as_ref()) {
            return now.and_then(|now| self.new_hosts(Some(before), &now));
        }
        let path = self.path.display();
        Some(match undone.undo(self.path, Some(before), now.as_ref()) {
            Ok(Undone::Restored(Some(aside))) => format!(
                "`{path}` is protected and was changed by the command; it is restored, and the changed one is `{}`",
                aside.display()
            ),
            Ok(Undone::Restored(None)) => {
                format!("`{path}` is protected and was removed by the command; it is restored")
            }
            Ok(Undone::Aside(aside)) => format!(
                "`{path}` is protected and was changed by two commands at the same time; it is now `{}`, where nothing reads it",
                aside.display()
            ),
            Ok(Undone::Already) => return None,
            Err(error) => {
                format!("`{path}` is protected and was changed by the command; it cannot be restored: {error}")
            }
        })
    }

    /// Whether `git init` made this: settings that run nothing, and hooks that are only examples.
    fn is_new_repository(self, now: &Content) -> bool {
        let empty = Content::File { bytes: Arc::default(), mode: 0 };
        match now {
            Content::Folder { .. } => self.path.ends_with(".git/hooks") && now.has_examples_only(),
            now => self.is_ordinary(&empty, Some(now)),
        }
    }

    /// Whether a file that ordinary work must change was changed in an ordinary way.
    fn is_ordinary(self, before: &Content, now: Option<&Content>) -> bool {
        let (Lock::Compared, Content::File { bytes: before, .. }, Some(Content::File { bytes: now, .. })) =
            (self.lock, before, now)
        else {
            return false;
        };
        let (before, now) = (String::from_utf8_lossy(before), String::from_utf8_lossy(now));
        if self.is_known_hosts() {
            // A new host may be added; the key of a known host must not change.
            return before.lines().all(|line| now.lines().any(|other| other == line));
        }
        harmful_git_settings(&before, &now).is_empty()
    }

    /// Reports that `ssh` trusts more hosts than before.
    fn new_hosts(self, before: Option<&Content>, now: &Content) -> Option<String> {
        let lines = |content: &Content| match content {
            Content::File { bytes, .. } => String::from_utf8_lossy(bytes).lines().count(),
            _ => 0,
        };
        let added = lines(now).saturating_sub(before.map_or(0, lines));
        let told = || format!("`{}` has {added} new lines: `ssh` trusts further hosts", self.path.display());
        (self.is_known_hosts() && added > 0).then(told)
    }

    fn is_known_hosts(self) -> bool {
        self.path.file_name().is_some_and(|name| name == "known_hosts")
    }
}

pub(super) fn may_change(folder: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(CWD, folder, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// The content of this file, link or folder.
pub(super) fn content(path: &Path, found: &fs::Metadata, budget: &mut Budget, known: &mut KnownContents) -> Content {
    let state = file_state(found);
    let opaque = Content::Opaque(state);
    if budget.entries == 0 {
        return opaque;
    }
    budget.entries -= 1;
    let mode = found.mode() & 0o7777;
    if found.is_symlink() {
        return fs::read_link(path).map_or(opaque, Content::Link);
    }
    if found.is_dir() {
        let Some(list) = fs::read_dir(path).ok().filter(|_| budget.depth > 0) else { return opaque };
        budget.depth -= 1;
        let entry = |entry: fs::DirEntry| {
            let found = entry.metadata().ok()?;
            Some((entry.file_name(), content(&entry.path(), &found, budget, known)))
        };
        let entries = list.flatten().filter_map(entry).collect();
        budget.depth += 1;
        return Content::Folder { mode, entries };
    }
    if !found.is_file() || found.len() > LARGEST_FILE.min(budget.bytes) {
        return opaque;
    }
    budget.bytes -= found.len();
    if let Some(bytes) = known.get(path, &state) {
        return Content::File { bytes, mode };
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut bytes));
    let Ok(_) = read else { return opaque };
    let bytes: Arc<[u8]> = bytes.into();
    known.set(path, state, is_settled(found).then_some(&bytes));
    Content::File { bytes, mode }
}

/// Restores the earlier content of a path, and moves its present content aside. In a folder that held too much, it does
/// so for each entry.
pub(super) fn put_back(path: &Path, before: &Content, now: Option<&Content>) -> io::Result<Option<PathBuf>> {
    if before.is_whole() {
        let aside = now.map(|_| set_aside(path)).transpose()?;
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        write(path, before)?;
        return Ok(aside);
    }
    let Content::Folder { entries: before, mode } = before else { return Err(io::Error::other(TOO_LARGE)) };
    let now = match now {
        Some(Content::Folder { entries, .. }) => entries,
        Some(_) => {
            set_aside(path)?;
            &BTreeMap::new()
        }
        None => &BTreeMap::new(),
    };
    make_folder(path)?;
    let (mut aside, mut failed) = (None, None);
    for (name, before) in before.iter().filter(|(name, before)| now.get(*name) != Some(before)) {
        match put_back(&path.join(name), before, now.get(name)) {
            Ok(moved) => aside = moved.or(aside),
            Err(error) => failed = Some(io::Error::other(format!("`{}` in it: {error}", Path::new(name).display()))),
        }
    }
    for name in now.keys().filter(|name| !before.contains_key(*name)) {
        aside = Some(set_aside(&path.join(name))?);
    }
    fs::set_permissions(path, Permissions::from_mode(*mode))?;
    failed.map_or(Ok(aside), Err)
}

/// Makes a writable folder. Moves a file aside that is in its place, or in the place of a folder around it.
fn make_folder(folder: &Path) -> io::Result<()> {
    let there = folder.ancestors().find(|place| place.symlink_metadata().is_ok());
    if let Some(file) = there.filter(|place| !place.is_dir()) {
        set_aside(file)?;
    }
    fs::create_dir_all(folder)?;
    make_writable(folder);
    Ok(())
}

/// Makes a folder of ours writable that a command closed; returns whether that was needed.
pub(super) fn make_writable(folder: &Path) -> bool {
    const OWN: u32 = 0o700;
    let mode = fs::metadata(folder).ok().filter(fs::Metadata::is_dir).map(|data| data.mode() & 0o7777);
    let closed = mode.filter(|mode| mode & OWN != OWN);
    closed.is_some_and(|mode| fs::set_permissions(folder, Permissions::from_mode(mode | OWN)).is_ok())
}

impl Content {
    /// Whether it is a folder of hooks as `git` makes it: with examples only, which do not run.
    pub(super) fn has_examples_only(&self) -> bool {
        let is_example = |(name, content): (&OsString, &Content)| {
            Path::new(name).extension().is_some_and(|last| last == "sample") && matches!(content, Content::File { .. })
        };
        matches!(self, Content::Folder { entries, .. } if entries.iter().all(is_example))
    }

    fn is_whole(&self) -> bool {
        match self {
            Content::File { .. } | Content::Link(_) => true,
            Content::Folder { entries, .. } => entries.values().all(Content::is_whole),
            Content::Opaque(_) => false,
        }
    }
}

fn write(path: &Path, content: &Content) -> io::Result<()> {
    match content {
        Content::File { bytes, mode } => {
            write_atomic(path, bytes).map_err(io::Error::other)?;
            fs::set_permissions(path, Permissions::from_mode(*mode))
        }
        Content::Link(target) => symlink(target, path),
        Content::Folder { mode, entries } => {
            fs::create_dir(path)?;
            for (name, content) in entries {
                write(&path.join(name), content)?;
            }
            fs::set_permissions(path, Permissions::from_mode(*mode))
        }
        Content::Opaque(_) => Err(io::Error::other("its content was not kept")),
    }
}

/// Renames a path to a name that no program reads.
pub(super) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let (name, folder) = path.file_name().zip(path.parent()).ok_or(io::ErrorKind::InvalidInput)?;
    make_writable(folder);
    // A command can take all names that it can guess, so the name is random.
    let unknown =
        std::iter::repeat_with(|| RandomState::new().build_hasher().finish()).map(|number| format!("{number:016x}"));
    for suffix in (1..=MOST_ASIDE).map(|number| number.to_string()).chain(unknown.take(MOST_ASIDE)) {
        let mut aside = name.to_owned();
        aside.push(format!(".set-aside-{suffix}"));
        let aside = folder.join(aside);
        if aside.symlink_metadata().is_err() {
            fs::rename(path, &aside)?;
            return Ok(aside);
        }
    }
    Err(io::Error::other("too many changed versions of it are there; remove them"))
}

#[cfg(test)]
mod tests {
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
        let baseline = scene.baseline(&[(".git/config", lock)]);
        scene.write(".git/config", &format!("{remote}[core]\n\thooksPath = /tmp/evil\n"));
        assert_eq!(baseline.restore().len(), 1);
        assert_eq!(scene.read(".git/config"), Some(remote));
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
