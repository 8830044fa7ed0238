//! What a command did to protected files that the kernel could not hold: it is found afterwards, moved aside and put back.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ollm_guard::{Lock, harmful_git_settings};
use ollm_store::write_atomic;

/// The largest file whose content is kept.
const LARGEST_FILE: u64 = 1 << 20;
/// How much is kept of one protected path: bytes, and files and folders.
const MOST: Budget = Budget { bytes: 16 << 20, entries: 5_000 };
/// How many changed versions of one file are kept.
const MOST_ASIDE: usize = 1_000;

/// A file that nobody touched for so long shows every later change in its times, however coarse the clock of the kernel.
const SETTLED: Duration = Duration::from_millis(100);

/// A protected path.
#[derive(Clone, Debug)]
pub(super) struct WatchedPath {
    pub(super) path: PathBuf,
    pub(super) lock: Lock,
    /// Whether it is compared as a whole: not where we write to it ourselves all the time.
    pub(super) whole: bool,
}

/// Protected paths as they were before a command.
#[derive(Debug)]
pub(super) struct Baseline(Vec<Watched>);

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    lock: Lock,
    before: Before,
}

#[derive(Debug)]
enum Before {
    /// There was nothing; this folder around it was there.
    Absent(PathBuf),
    Kept(Content),
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
    Opaque(State),
}

/// By what a changed file is known.
type State = [i64; 6];

/// What files held that were settled when they were read: as long as their state is the same, so is their content.
#[derive(Debug, Default)]
pub(super) struct Known {
    files: HashMap<PathBuf, (State, Arc<[u8]>)>,
    bytes: u64,
}

impl Known {
    fn get(&self, path: &Path, state: &State) -> Option<Arc<[u8]>> {
        let (before, bytes) = self.files.get(path)?;
        (before == state).then(|| Arc::clone(bytes))
    }

    /// Remembers what a file holds, within bounds; nothing of one that is not settled.
    fn set(&mut self, path: &Path, state: State, bytes: Option<&Arc<[u8]>>) {
        if let Some((_, old)) = self.files.remove(path) {
            self.bytes -= old.len() as u64;
        }
        if let Some(bytes) = bytes.filter(|bytes| self.bytes + bytes.len() as u64 <= MOST.bytes) {
            self.bytes += bytes.len() as u64;
            self.files.insert(path.to_owned(), (state, Arc::clone(bytes)));
        }
    }
}

/// Paths that were looked at: most protected ones are not there, and neither are the folders around them.
#[derive(Default)]
struct Seen {
    entries: HashMap<PathBuf, Option<fs::Metadata>>,
    folders: HashMap<PathBuf, FolderNames>,
}

/// A folder that was asked about.
#[derive(Default)]
struct FolderNames {
    asked: usize,
    /// The names in it, in small letters: some file systems know no others. Nothing if it was not listed.
    names: Option<HashSet<OsString>>,
}

/// A folder is listed when it is asked about so often: that takes as many calls as asking.
const OFTEN: usize = 4;
/// A folder with more names is not listed.
const MOST_NAMES: usize = 4_096;

impl Seen {
    fn look(&mut self, path: &Path) -> Option<fs::Metadata> {
        if let Some(known) = self.entries.get(path) {
            return known.clone();
        }
        let around = path.parent().is_none_or(|parent| self.look(parent).is_some() && self.may_hold(parent, path));
        let found = around.then(|| path.symlink_metadata().ok()).flatten();
        self.entries.insert(path.to_owned(), found.clone());
        found
    }

    /// Whether a folder may have this in it.
    fn may_hold(&mut self, folder: &Path, path: &Path) -> bool {
        let known = self.folders.entry(folder.to_owned()).or_default();
        known.asked += 1;
        if known.asked == OFTEN {
            known.names = names_in(folder);
        }
        let has = |names: &HashSet<OsString>| path.file_name().is_none_or(|name| names.contains(&small(name)));
        known.names.as_ref().is_none_or(has)
    }

    /// What is at a path now; nothing if nothing is.
    fn content(&mut self, path: &Path, known: &mut Known) -> Option<Content> {
        self.look(path).map(|found| content(path, &found, &mut MOST.clone(), known))
    }

    /// The innermost folder around a path that is there.
    fn anchor(&mut self, path: &Path) -> PathBuf {
        let found = path.ancestors().skip(1).find(|folder| self.look(folder).is_some());
        found.unwrap_or(Path::new("/")).to_owned()
    }
}

/// The names in a folder, if it can be listed as a whole.
fn names_in(folder: &Path) -> Option<HashSet<OsString>> {
    let names = fs::read_dir(folder).ok()?.take(MOST_NAMES + 1).map(|entry| Some(small(&entry.ok()?.file_name())));
    names.collect::<Option<HashSet<_>>>().filter(|names| names.len() <= MOST_NAMES)
}

fn small(name: &OsStr) -> OsString {
    name.to_ascii_lowercase()
}

#[derive(Clone, Copy, Debug)]
struct Budget {
    bytes: u64,
    entries: usize,
}

impl Baseline {
    /// Looks at all paths but those that the kernel holds. They come sorted, so that what is in a folder is behind it.
    pub(super) fn take(watched: &[WatchedPath], held: &dyn Fn(&Path) -> bool, known: &mut Known) -> Baseline {
        let mut seen = Seen::default();
        let is_locked = |one: &WatchedPath, seen: &mut Seen| {
            // A file with a second name can be changed by that one.
            let is_lockable = |found: fs::Metadata| !(found.is_symlink() || found.is_file() && found.nlink() > 1);
            one.lock == Lock::Locked && held(&one.path) && seen.look(&one.path).is_some_and(is_lockable)
        };
        let mut paths: Vec<WatchedPath> = Vec::new();
        let (mut locked, mut folders): (Option<&Path>, HashSet<&Path>) = (None, HashSet::new());
        for one in watched {
            // A link on the way could be made to lead elsewhere. Who has seen a folder has seen those around it.
            for folder in one.path.ancestors().skip(1).take_while(|folder| folders.insert(folder)) {
                if seen.look(folder).is_some_and(|found| found.is_symlink()) && folder.parent().is_some_and(may_change)
                {
                    paths.push(WatchedPath { path: folder.to_owned(), lock: Lock::Locked, whole: true });
                }
            }
            // What lies in a locked folder is locked with it, also if it is not there.
            if locked.is_none_or(|locked| !one.path.starts_with(locked)) {
                locked = is_locked(one, &mut seen).then_some(one.path.as_path());
                if one.whole && locked.is_none() {
                    paths.push(one.clone());
                }
            }
        }
        paths.sort_by(|one, other| one.path.cmp(&other.path));
        paths.dedup_by(|one, other| one.path == other.path);
        let look = |WatchedPath { path, lock, .. }: WatchedPath| {
            let before = match seen.content(&path, known) {
                Some(content) => Before::Kept(content),
                None => Before::Absent(seen.anchor(&path)),
            };
            Watched { path, lock, before }
        };
        Baseline(paths.into_iter().map(look).collect())
    }

    /// Puts everything back that was changed since, and says so.
    pub(super) fn restore(self, known: &mut Known) -> Vec<String> {
        let mut seen = Seen::default();
        let restore = |watched: Watched| {
            let now = seen.content(&watched.path, known);
            let note = watched.restore(now);
            if note.is_some() {
                // Something was moved.
                seen = Seen::default();
            }
            note
        };
        self.0.into_iter().filter_map(restore).collect()
    }
}

impl Watched {
    fn restore(self, now: Option<Content>) -> Option<String> {
        let path = self.path.as_path();
        match &self.before {
            Before::Absent(anchor) => {
                let now = now?;
                if self.is_new_repository(&now) {
                    return self.new_hosts(None, &now);
                }
                // What appeared may be a link on the way there.
                let appeared = appeared(anchor, path);
                Some(match set_aside(&appeared) {
                    Ok(aside) => format!(
                        "`{}` is protected and was made by the command; it is now `{}`, where nothing reads it",
                        path.display(),
                        aside.display()
                    ),
                    Err(error) => format!(
                        "`{}` is protected and was made by the command; it cannot be moved aside: {error}",
                        path.display()
                    ),
                })
            }
            Before::Kept(before) => {
                if now.as_ref() == Some(before) {
                    return None;
                }
                if self.is_ordinary(before, now.as_ref()) {
                    return now.and_then(|now| self.new_hosts(Some(before), &now));
                }
                Some(match put_back(path, before, now.is_some()) {
                    Ok(Some(aside)) => format!(
                        "`{}` is protected and was changed by the command; it is restored, and the changed one is `{}`",
                        path.display(),
                        aside.display()
                    ),
                    Ok(None) => {
                        format!("`{}` is protected and was removed by the command; it is restored", path.display())
                    }
                    Err(error) => format!(
                        "`{}` is protected and was changed by the command; it cannot be restored: {error}",
                        path.display()
                    ),
                })
            }
        }
    }

    /// Whether this is what `git init` makes: settings that run nothing, and hooks that are only examples.
    fn is_new_repository(&self, now: &Content) -> bool {
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
    fn is_ordinary(&self, before: &Content, now: Option<&Content>) -> bool {
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
    fn new_hosts(&self, before: Option<&Content>, now: &Content) -> Option<String> {
        let lines = |content: &Content| match content {
            Content::File { bytes, .. } => String::from_utf8_lossy(bytes).lines().count(),
            _ => 0,
        };
        let added = lines(now).saturating_sub(before.map_or(0, lines));
        let told = || format!("`{}` has {added} new lines: `ssh` trusts further hosts", self.path.display());
        (self.is_known_hosts() && added > 0).then(told)
    }

    fn is_known_hosts(&self) -> bool {
        self.path.file_name().is_some_and(|name| name == "known_hosts")
    }
}

fn may_change(folder: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(CWD, folder, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// The first link between a folder and what appeared in it, or that itself.
fn appeared(anchor: &Path, path: &Path) -> PathBuf {
    let Ok(rest) = path.strip_prefix(anchor) else { return path.to_owned() };
    let mut place = anchor.to_owned();
    for part in rest {
        place.push(part);
        if place.is_symlink() {
            return place;
        }
    }
    path.to_owned()
}

/// What this file, link or folder holds.
fn content(path: &Path, found: &fs::Metadata, budget: &mut Budget, known: &mut Known) -> Content {
    let state = [
        found.dev().cast_signed(),
        found.ino().cast_signed(),
        found.size().cast_signed(),
        found.mtime_nsec(),
        found.ctime(),
        found.ctime_nsec(),
    ];
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

/// Whether nobody has touched a file for a while.
fn is_settled(found: &fs::Metadata) -> bool {
    let changed = u64::try_from(found.ctime()).map(Duration::from_secs);
    let changed = changed.ok().and_then(|changed| SystemTime::UNIX_EPOCH.checked_add(changed + Duration::from_secs(1)));
    changed.is_some_and(|changed| changed.checked_add(SETTLED).is_some_and(|settled| settled < SystemTime::now()))
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

        fn baseline(&self, names: &[(&str, Lock)]) -> Baseline {
            let watched: Vec<_> = names
                .iter()
                .map(|(name, lock)| WatchedPath { path: self.path(name), lock: *lock, whole: true })
                .collect();
            Baseline::take(&watched, &|_| false, &mut Known::default())
        }
    }

    #[test]
    fn what_appeared_is_moved_aside() {
        let scene = Scene::new();
        let baseline = scene.baseline(&[(".claude/settings.json", Lock::Locked), (".ollm/hooks", Lock::Locked)]);
        scene.write(".claude/settings.json", "evil");
        scene.write(".claude/notes", "kept");
        let notes = baseline.restore(&mut Known::default());
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
        assert_eq!(baseline.restore(&mut Known::default()).len(), 1);
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
        assert_eq!(baseline.restore(&mut Known::default()).len(), 3);
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
        assert_eq!(baseline.restore(&mut Known::default()), Vec::<String>::new());
        let baseline = scene.baseline(&[(".git/config", lock)]);
        scene.write(".git/config", &format!("{remote}[core]\n\thooksPath = /tmp/evil\n"));
        assert_eq!(baseline.restore(&mut Known::default()).len(), 1);
        assert_eq!(scene.read(".git/config"), Some(remote));
    }

    #[test]
    fn a_new_repository_stays_unless_it_runs_something() {
        let scene = Scene::new();
        let names = [(".git/config", Lock::Compared), (".git/hooks", Lock::Locked)];
        let baseline = scene.baseline(&names);
        scene.write(".git/config", "[core]\n\tbare = false\n");
        scene.write(".git/hooks/pre-commit.sample", "");
        assert_eq!(baseline.restore(&mut Known::default()), Vec::<String>::new());
        fs::remove_dir_all(scene.path(".git")).unwrap();
        let baseline = scene.baseline(&names);
        scene.write(".git/config", "[core]\n\tpager = ./evil\n");
        scene.write(".git/hooks/pre-commit", "");
        assert_eq!(baseline.restore(&mut Known::default()).len(), 2);
    }

    #[test]
    fn what_appears_in_a_folder_that_is_listed_is_found() {
        let scene = Scene::new();
        let names = ["a", "b", "c", "d", "e", "f"].map(|name| (name, Lock::Locked));
        scene.write("b", "mine");
        let baseline = scene.baseline(&names);
        scene.write("b", "evil");
        scene.write("f", "evil");
        assert_eq!(baseline.restore(&mut Known::default()).len(), 2);
        assert_eq!((scene.read("b").as_deref(), scene.read("f")), (Some("mine"), None));
    }

    #[test]
    fn nothing_is_told_where_nothing_changed() {
        let scene = Scene::new();
        scene.write("hooks/a", "one");
        let baseline = scene.baseline(&[("hooks", Lock::Locked), ("absent", Lock::Locked)]);
        assert_eq!(baseline.restore(&mut Known::default()), Vec::<String>::new());
    }
}
