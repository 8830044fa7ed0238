//! What a command did to protected files that the kernel could not hold: it is found afterwards, moved aside and put back.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_guard::{Lock, harmful_git_settings};
use ollm_store::write_atomic;

use super::path_tree::{FileState, FoundPaths, KnownFolders, NodeId, PathNode, PathTree, at, file_state, is_settled};

/// The largest file whose content is kept.
const LARGEST_FILE: u64 = 1 << 20;
/// How much is kept of one protected path: bytes, and files and folders.
const MOST: Budget = Budget { bytes: 16 << 20, entries: 5_000 };
/// How many changed versions of one file are kept.
const MOST_ASIDE: usize = 1_000;

/// Protected paths as they were before a command: one for each place in the tree.
#[derive(Debug)]
pub(super) struct Baseline(Vec<Before>);

#[derive(Debug)]
enum Before {
    /// There was nothing.
    Absent,
    /// There was something that is not compared.
    There,
    /// The kernel holds it, and all that is in it.
    Held,
    Kept(Content),
}

/// A path that is compared.
#[derive(Clone, Copy)]
struct Compared<'a> {
    path: &'a Path,
    lock: Lock,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    File {
        bytes: Arc<[u8]>,
        mode: u32,
    },
    Link(PathBuf),
    Folder {
        mode: u32,
        entries: BTreeMap<OsString, Content>,
    },
    /// Too large to be kept, or neither file nor folder: only whether it changed can be told.
    Opaque(FileState),
}

/// What files held that were settled when they were read: as long as their state is the same, so is their content.
#[derive(Debug, Default)]
pub(super) struct Known {
    files: HashMap<PathBuf, (FileState, Arc<[u8]>)>,
    bytes: u64,
    /// The same of folders on the way to protected paths.
    pub(super) folders: KnownFolders,
}

impl Known {
    fn get(&self, path: &Path, state: &FileState) -> Option<Arc<[u8]>> {
        let (before, bytes) = self.files.get(path)?;
        (before == state).then(|| Arc::clone(bytes))
    }

    /// Remembers what a file holds, within bounds; nothing of one that is not settled.
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
struct Budget {
    bytes: u64,
    entries: usize,
}

impl Baseline {
    /// Keeps what was found, but for what the kernel holds.
    pub(super) fn take(
        tree: &PathTree,
        found: &FoundPaths,
        held: &dyn Fn(&Path) -> bool,
        known: &mut Known,
    ) -> Baseline {
        // A file with a second name can be changed by that one.
        let is_lockable = |data: &fs::Metadata| !(data.is_symlink() || data.is_file() && data.nlink() > 1);
        let (mut found, mut all) = (found.iter().peekable(), Vec::with_capacity(tree.nodes().len()));
        for (id, node) in tree.nodes().iter().enumerate() {
            let data = found.next_if(|(found, _)| *found == id).map(|(_, data)| data);
            let is_inside = node.parent.is_some_and(|parent| matches!(all.get(parent), Some(Before::Held)));
            let is_locked = |data| {
                let locked = node.watched.is_some_and(|watched| watched.lock == Lock::Locked);
                locked && held(&node.path) && is_lockable(data)
            };
            all.push(match data {
                _ if is_inside => Before::Held,
                None => Before::Absent,
                Some(data) if is_locked(data) => Before::Held,
                Some(data) if node.watched.is_some_and(|watched| watched.whole) || is_loose_link(node, data) => {
                    Before::Kept(content(&node.path, data, &mut MOST.clone(), known))
                }
                Some(_) => Before::There,
            });
        }
        Baseline(all)
    }

    /// Puts everything back that was changed since, and says so.
    pub(super) fn restore(&self, tree: &PathTree, known: &mut Known) -> Vec<String> {
        let mut found = tree.look(&mut known.folders);
        let mut notes = Vec::new();
        for (id, (node, before)) in tree.nodes().iter().zip(&self.0).enumerate() {
            let lock = node.watched.map_or(Lock::Locked, |watched| watched.lock);
            let compared = Compared { path: &node.path, lock };
            let now =
                |known: &mut Known| at(&found, id).map(|data| content(&node.path, data, &mut MOST.clone(), known));
            let note = match before {
                Before::Kept(before) => compared.restore(before, now(known)),
                Before::Absent if node.watched.is_some_and(|watched| watched.whole) => {
                    now(known).and_then(|now| compared.appeared(&now, self.new_link(tree, &found, id)))
                }
                Before::Absent | Before::There | Before::Held => None,
            };
            if note.is_some() {
                // Something was moved.
                found = tree.look(&mut known.folders);
            }
            notes.extend(note);
        }
        notes
    }

    /// The outermost link on the way to what appeared that was not there before.
    fn new_link<'t>(&self, tree: &'t PathTree, found: &FoundPaths, id: NodeId) -> Option<&'t Path> {
        let is_new = |id: &NodeId| matches!(self.0.get(*id), Some(Before::Absent | Before::There));
        let links =
            tree.way_to(id).into_iter().filter(is_new).filter_map(|id| Some((tree.nodes().get(id)?, at(found, id)?)));
        links.filter(|(node, data)| is_loose_link(node, data)).map(|(node, _)| node.path.as_path()).next()
    }
}

/// Whether this is a link on the way to a protected path that could be made to lead elsewhere.
fn is_loose_link(node: &PathNode, data: &fs::Metadata) -> bool {
    node.is_folder() && data.is_symlink() && node.path.parent().is_some_and(may_change)
}

impl Compared<'_> {
    /// Moves aside what was not there before, by the link that leads to it if there is one.
    fn appeared(self, now: &Content, link: Option<&Path>) -> Option<String> {
        if self.is_new_repository(now) {
            return self.new_hosts(None, now);
        }
        let path = self.path.display();
        Some(match set_aside(link.unwrap_or(self.path)) {
            Ok(aside) => format!(
                "`{path}` is protected and was made by the command; it is now `{}`, where nothing reads it",
                aside.display()
            ),
            Err(error) => {
                format!("`{path}` is protected and was made by the command; it cannot be moved aside: {error}")
            }
        })
    }

    /// Puts back what was there before.
    fn restore(self, before: &Content, now: Option<Content>) -> Option<String> {
        if now.as_ref() == Some(before) {
            return None;
        }
        if self.is_ordinary(before, now.as_ref()) {
            return now.and_then(|now| self.new_hosts(Some(before), &now));
        }
        let path = self.path.display();
        Some(match put_back(self.path, before, now.is_some()) {
            Ok(Some(aside)) => format!(
                "`{path}` is protected and was changed by the command; it is restored, and the changed one is `{}`",
                aside.display()
            ),
            Ok(None) => format!("`{path}` is protected and was removed by the command; it is restored"),
            Err(error) => {
                format!("`{path}` is protected and was changed by the command; it cannot be restored: {error}")
            }
        })
    }

    /// Whether this is what `git init` makes: settings that run nothing, and hooks that are only examples.
    fn is_new_repository(self, now: &Content) -> bool {
        let empty = Content::File { bytes: Arc::default(), mode: 0 };
        let is_example = |(name, content): (&OsString, &Content)| {
            Path::new(name).extension().is_some_and(|last| last == "sample") && matches!(content, Content::File { .. })
        };
        match now {
            Content::Folder { entries, .. } => self.path.ends_with(".git/hooks") && entries.iter().all(is_example),
            now => self.is_ordinary(&empty, Some(now)),
        }
    }

    /// Whether a file that ordinary work has to change was changed in an ordinary way.
    fn is_ordinary(self, before: &Content, now: Option<&Content>) -> bool {
        let (Lock::Compared, Content::File { bytes: before, .. }, Some(Content::File { bytes: now, .. })) =
            (self.lock, before, now)
        else {
            return false;
        };
        let (before, now) = (String::from_utf8_lossy(before), String::from_utf8_lossy(now));
        if self.is_known_hosts() {
            // A host may be added; the key of one that is known may not become another.
            return before.lines().all(|line| now.lines().any(|other| other == line));
        }
        harmful_git_settings(&before, &now).is_empty()
    }

    /// Says that `ssh` trusts more hosts than before.
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

fn may_change(folder: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(CWD, folder, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// What this file, link or folder holds.
fn content(path: &Path, found: &fs::Metadata, budget: &mut Budget, known: &mut Known) -> Content {
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
        let Ok(list) = fs::read_dir(path) else { return opaque };
        let entry = |entry: fs::DirEntry| {
            let found = entry.metadata().ok()?;
            Some((entry.file_name(), content(&entry.path(), &found, budget, known)))
        };
        return Content::Folder { mode, entries: list.flatten().filter_map(entry).collect() };
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

/// Restores what was at a path; what is there now is moved aside.
fn put_back(path: &Path, before: &Content, is_there: bool) -> io::Result<Option<PathBuf>> {
    if !before.is_whole() {
        return Err(io::Error::other("it is too large to be kept"));
    }
    let aside = is_there.then(|| set_aside(path)).transpose()?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    write(path, before)?;
    Ok(aside)
}

impl Content {
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

/// Gives a path a name that nothing reads.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    for number in 1..=MOST_ASIDE {
        let mut aside = name.to_owned();
        aside.push(format!(".set-aside-{number}"));
        let aside = path.with_file_name(aside);
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
            let tree = PathTree::new(names.iter().map(watched).collect(), std::iter::empty());
            let mut known = Known::default();
            let found = tree.look(&mut known.folders);
            TakenBaseline { baseline: Baseline::take(&tree, &found, &|_| false, &mut known), tree, known }
        }
    }

    struct TakenBaseline {
        baseline: Baseline,
        tree: PathTree,
        known: Known,
    }

    impl TakenBaseline {
        fn restore(mut self) -> Vec<String> {
            self.baseline.restore(&self.tree, &mut self.known)
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
