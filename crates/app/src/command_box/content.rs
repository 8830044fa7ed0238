//! The content of protected files and folders: reads it, puts an earlier one back, and moves a changed one aside.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ollm_store::write_atomic;

use super::gitlinks::KnownIndexes;
use super::path_tree::{FileState, KnownFolders, file_state, is_settled};

/// The largest file whose content is saved.
const LARGEST_FILE: u64 = 1 << 20;
/// The limit for one protected path: bytes, files and folders, and nested folders.
pub(super) const MOST: Budget = Budget { bytes: 16 << 20, entries: 5_000, depth: 100 };
/// How many changed versions of one file get a number.
const MOST_ASIDE: usize = 1_000;
const TOO_LARGE: &str = "it is too large to be kept";

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
    /// Each content once: every repository has the same examples of hooks.
    distinct: HashSet<Arc<[u8]>>,
    bytes: u64,
    /// The same for folders on the way to protected paths.
    pub(super) folders: KnownFolders,
    /// The same for the folders that indexes of repositories name.
    pub(super) indexes: KnownIndexes,
}

impl KnownContents {
    fn get(&self, path: &Path, state: &FileState) -> Option<Arc<[u8]>> {
        let (before, bytes) = self.files.get(path)?;
        (before == state).then(|| Arc::clone(bytes))
    }

    /// Records the content of a file, within limits, and its state if the file is settled. Returns the one content that is
    /// kept for all files with the same.
    fn set(&mut self, path: &Path, settled: Option<FileState>, bytes: Arc<[u8]>) -> Arc<[u8]> {
        self.files.remove(path);
        let bytes = self.distinct_bytes(bytes);
        if let Some(state) = settled.filter(|_| self.distinct.contains(&bytes)) {
            self.files.insert(path.to_owned(), (state, Arc::clone(&bytes)));
        }
        bytes
    }

    fn distinct_bytes(&mut self, bytes: Arc<[u8]>) -> Arc<[u8]> {
        if let Some(known) = self.distinct.get(&bytes) {
            return Arc::clone(known);
        }
        let is_too_much = |kept: u64| kept + bytes.len() as u64 > MOST.bytes;
        if is_too_much(self.bytes) {
            // No file has these any more.
            self.distinct.retain(|bytes| Arc::strong_count(bytes) > 1);
            self.bytes = self.distinct.iter().map(|bytes| bytes.len() as u64).sum();
        }
        if !is_too_much(self.bytes) {
            self.bytes += bytes.len() as u64;
            self.distinct.insert(Arc::clone(&bytes));
        }
        bytes
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    bytes: u64,
    pub(super) entries: usize,
    depth: usize,
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
    Content::File { bytes: known.set(path, is_settled(found).then_some(state), bytes.into()), mode }
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

pub(super) fn may_change(folder: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(CWD, folder, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}
