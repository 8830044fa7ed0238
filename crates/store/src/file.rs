//! Owner-only files: bounded reading, atomic writing, updates under a lock.
//!
//! Reading follows symbolic links (people link their configuration); writing refuses them, because a checked-out
//! repository can contain a link to any file of its user.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::hash::{BuildHasher, Hasher as _, RandomState};
use std::io::{self, Read, Write};
#[cfg(target_os = "linux")]
use std::num::NonZeroU64;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;
#[cfg(target_os = "linux")]
use rustix::fs::{Advice, fadvise};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system refused.
    #[error("cannot {doing} {}: {source}{}", path.display(), way_out(source))]
    Io {
        /// What was attempted, as a verb.
        doing: &'static str,
        /// The file or folder it was attempted on.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file is larger than its reader accepts.
    #[error("{} has {size} bytes, at most {max} are read; make it smaller or move it away", path.display())]
    TooLarge {
        /// The file or folder.
        path: PathBuf,
        /// Its size, or the bytes read so far when they exceeded the limit.
        size: u64,
        /// The limit.
        max: u64,
    },
    /// The folder has more entries than its reader accepts.
    #[error("{} has more than {max} entries; remove what does not belong there", path.display())]
    TooMany {
        /// The folder.
        path: PathBuf,
        /// The limit.
        max: usize,
    },
    /// A device, pipe, socket or folder where a file was expected.
    #[error("{} is a {kind}, not a regular file; replace it by a file", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// A symbolic link where none is allowed.
    #[error("{} is a symbolic link and would be replaced; put a regular file in its place", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A file with several names; replacing it would leave the old content under all but one.
    #[error("{} has {names} names, and replacing it would part them; leave it one name, or link the others symbolically",
        path.display())]
    HardLinks {
        /// The file.
        path: PathBuf,
        /// How many names it has.
        names: u64,
    },
    /// A symbolic link in a tree that leads out of the tree.
    #[error("{} links to {}, which may lead out of its folder; replace it by a file or a plain relative link",
        path.display(), target.display())]
    Leaves {
        /// The link.
        path: PathBuf,
        /// The text of the link.
        target: PathBuf,
    },
    /// Another process wrote to the file during every attempt to read it.
    #[error("{} changed while it was read; try again when nothing writes to it", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The path must be private to us and is not: it is a link, of another kind, or open to other users.
    #[error("{} {why}; move it away", path.display())]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another process kept the lock too long.
    #[error("{} stays locked by another process; end that process and try again", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
}

/// Reads a whole file of at most `max` bytes; `None` when it does not exist.
///
/// Only regular files are read: a pipe or device in its place is an error and never hangs.
pub fn read_bounded(path: &Path, max: u64) -> Result<Option<Vec<u8>>, FileError> {
    Ok(read_regular(path, max)?.map(|(bytes, _)| bytes))
}

/// Replaces the content of a file in one step: readers see the old bytes or the new ones, never a mixture.
///
/// The file is readable by its owner only (0600), missing parent folders are created (0700). On any error the old file
/// stays unchanged and no temporary file remains. It takes no lock: use [`update`] for content that depends on the old
/// content.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    make_parent(path)?;
    replace(path, bytes, &format!(".{}.tmp", random_name()), None)
}

/// Reads, transforms and replaces a file under an exclusive lock, so that two writers never lose an update.
///
/// `change` gets the present bytes (`None` when the file is missing) and returns the new ones, or `None` to leave the
/// file alone. The lock is a separate file beside it, and stays there.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("count");
/// ollm_store::update(&path, 1024, |old| {
///     let mut bytes = old.unwrap_or_default();
///     bytes.push(b'x');
///     Ok::<_, ollm_store::FileError>(Some(bytes))
/// })
/// .unwrap();
/// assert_eq!(ollm_store::read_bounded(&path, 1024).unwrap(), Some(b"x".to_vec()));
/// ```
pub fn update<E, F>(path: &Path, max: u64, change: F) -> Result<(), E>
where
    E: From<FileError>,
    F: FnOnce(Option<Vec<u8>>) -> Result<Option<Vec<u8>>, E>,
{
    let lock = Lock::acquire(path)?;
    if let Some(bytes) = change(read_bounded(path, max)?)? {
        lock.replace(&bytes)?;
    }
    Ok(())
}

/// Like [`update`], for files that people edit themselves and may share. An existing file keeps its mode, the lock file
/// is removed afterwards, and a file that becomes empty is removed.
pub fn rewrite<E, F>(path: &Path, max: u64, change: F) -> Result<(), E>
where
    E: From<FileError>,
    F: FnOnce(Option<Vec<u8>>) -> Result<Option<Vec<u8>>, E>,
{
    let lock = Lock::acquire(path)?;
    let mode = fs::metadata(path).ok().map(|meta| meta.permissions());
    let done = read_bounded(path, max).map_err(E::from).and_then(change).and_then(|bytes| match bytes {
        Some(bytes) if bytes.is_empty() => Ok(lock.remove_file()?),
        Some(bytes) => Ok(lock.replace_as(&bytes, mode)?),
        None => Ok(()),
    });
    lock.remove_lock();
    done
}

/// Replaces in one step the target of a path, through links, for files that other programs own. An existing file keeps
/// its mode, a new one gets `mode`. No lock stays beside it. A file with several names is refused, because replacing it
/// would separate them.
pub fn replace_through_links(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        // A dangling link must not become a file.
        Err(_) if fs::symlink_metadata(path).is_ok() => return Err(FileError::Link { path: path.to_owned() }),
        Err(_) => path.to_owned(),
    };
    make_parent(&real)?;
    let found = fs::metadata(&real).ok();
    if let Some(names) = found.as_ref().map(MetadataExt::nlink).filter(|names| *names > 1) {
        return Err(FileError::HardLinks { path: real, names });
    }
    let mode = found.map_or_else(|| Permissions::from_mode(mode), |meta| meta.permissions());
    remove_leftovers(&real);
    replace(&real, bytes, &format!(".{}.tmp", random_name()), Some(mode))
}

/// Removes what killed writers of a file left beside it. A living writer needs milliseconds.
fn remove_leftovers(path: &Path) {
    const DEAD: Duration = Duration::from_mins(1);
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return };
    let is_temporary = |found: &OsStr| {
        let random = found.to_str()?.strip_prefix('.')?.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".tmp")?;
        Some(random.len() == 16 && random.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    for entry in fs::read_dir(parent(path)).into_iter().flatten().flatten() {
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if is_temporary(&entry.file_name()) == Some(true) && age().is_some_and(|age| age > DEAD) {
            // What cannot be removed does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Opens a file that serves only as a lock, readable by its owner only; creates it if needed.
///
/// For work that takes longer than an [`update`], and for callers that wait in their own way. A lock holder may remove
/// the file; [`is_file_at`] then says whether an open file is still the one that all others lock.
pub fn lock_file(path: &Path) -> Result<File, FileError> {
    let file = open_lock(path)?;
    let meta = file.metadata().map_err(|source| failed("inspect", path, source))?;
    if meta.is_file() {
        return Ok(file);
    }
    Err(FileError::NotRegular { path: path.to_owned(), kind: kind_of(&meta) })
}

/// Whether a path still leads to this open file, and not to a new one of the same name.
pub fn is_file_at(file: &File, path: &Path) -> bool {
    let key = |meta: Metadata| (meta.dev(), meta.ino());
    let (open, there) = (file.metadata().ok().map(key), fs::symlink_metadata(path).ok().map(key));
    open.is_some() && open == there
}

/// The lock for replacing one file, held until dropped.
#[derive(Debug)]
pub struct Lock<'a> {
    path: &'a Path,
    _held: File,
}

impl<'a> Lock<'a> {
    /// Waits for the lock.
    pub fn acquire(path: &'a Path) -> Result<Self, FileError> {
        // A living writer needs milliseconds; the system releases the lock of a dead one.
        const PATIENCE: Duration = Duration::from_secs(30);
        const TRIES: usize = 100;
        let beside = sibling(path, ".lock")?;
        for _ in 0..TRIES {
            let file = lock_file(&beside)?;
            wait_for(&file, &beside, PATIENCE)?;
            // The previous holder may have removed the lock file.
            if is_file_at(&file, &beside) {
                return Ok(Self { path, _held: file });
            }
        }
        Err(FileError::Changed { path: beside })
    }

    /// Removes the file and its lock file.
    pub fn remove(self) -> Result<(), FileError> {
        self.remove_file()?;
        self.remove_lock();
        Ok(())
    }

    /// Removes the file, and syncs the folder so that the removal survives a crash.
    fn remove_file(&self) -> Result<(), FileError> {
        if fs::symlink_metadata(self.path).is_ok_and(|meta| meta.is_symlink()) {
            return Err(FileError::Link { path: self.path.to_owned() });
        }
        match fs::remove_file(self.path) {
            Ok(()) => sync_folder(parent(self.path)),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(failed("remove", self.path, source)),
        }
    }

    /// Removes the lock file while the lock is held; a waiting process then creates a new one. If removing fails, the
    /// file does no harm.
    fn remove_lock(&self) {
        if let Ok(beside) = sibling(self.path, ".lock") {
            let _ = fs::remove_file(beside);
        }
    }

    /// Replaces the file. Under the lock there is only one writer, hence one temporary name; a file that a killed
    /// writer left there is removed first.
    pub(crate) fn replace(&self, bytes: &[u8]) -> Result<(), FileError> {
        self.replace_as(bytes, None)
    }

    /// The same with another mode than 0600.
    fn replace_as(&self, bytes: &[u8], mode: Option<Permissions>) -> Result<(), FileError> {
        let stale = sibling(self.path, ".tmp")?;
        match fs::remove_file(&stale) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(failed("remove", &stale, source)),
            _ => replace(self.path, bytes, ".tmp", mode),
        }
    }
}

/// Sixteen random characters that no other process picks at the same time.
pub fn random_name() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// Replaces a file in one step like [`write_atomic`], but does not sync it to the disk. It is for files that can be
/// made again, and whose form shows whether they are complete.
pub fn write_unsynced(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    make_parent(path)?;
    let temp = Temp::create(sibling(path, &format!(".{}.tmp", random_name()))?)?;
    temp.write(bytes).map_err(|source| failed("write", path, source))?;
    temp.rename(path)
}

/// Reads a regular file, with the metadata of the same descriptor. It reads again if the file changed meanwhile.
pub fn read_regular(path: &Path, max: u64) -> Result<Option<(Vec<u8>, Metadata)>, FileError> {
    read_unchanged(path, max, |_, _| {})
}

/// Reads like [`read_regular`]. Every later change gives the file other times, also one through memory that a program has
/// mapped.
pub fn read_stamped(path: &Path, max: u64) -> Result<Option<(Vec<u8>, Metadata)>, FileError> {
    read_unchanged(path, max, |file, meta| {
        if meta.len() <= max {
            start_writing_back(file, meta);
        }
    })
}

fn read_unchanged(
    path: &Path,
    max: u64,
    prepare: impl Fn(&File, &Metadata),
) -> Result<Option<(Vec<u8>, Metadata)>, FileError> {
    const TRIES: u32 = 3;
    for _ in 0..TRIES {
        let Some((mut file, meta)) = open_regular(path, OFlags::empty())? else {
            return Ok(None);
        };
        prepare(&file, &meta);
        let bytes = read_open(path, &mut file, &meta, max)?;
        let after = file.metadata().map_err(|source| failed("inspect", path, source))?;
        if content_key(&meta) == content_key(&after) {
            return Ok(Some((bytes, meta)));
        }
    }
    Err(FileError::Changed { path: path.to_owned() })
}

/// Makes the system write changed pages of a file. A store through mapped memory changes the times of a file only where
/// its page is clean, so no such store would show after the first. File systems in memory have no such pages.
#[cfg(target_os = "linux")]
fn start_writing_back(file: &File, meta: &Metadata) {
    /// The smallest page there is.
    const PAGE: usize = 4096;
    // What is written is also dropped from memory, but only if the range has a whole page: one byte of each has none.
    for start in (0..meta.len()).step_by(PAGE) {
        // A file system without such advice has other times, or none.
        let _ = fadvise(file, start.saturating_add(1), NonZeroU64::new(1), Advice::DontNeed);
    }
}

/// Elsewhere the system has no such call.
#[cfg(not(target_os = "linux"))]
fn start_writing_back(_: &File, _: &Metadata) {}

/// The metadata that a write to the file changes, but that its replacement by another file does not.
fn content_key(meta: &Metadata) -> (u64, i64, i64) {
    (meta.len(), meta.mtime(), meta.mtime_nsec())
}

fn read_open(path: &Path, file: &mut File, meta: &Metadata, max: u64) -> Result<Vec<u8>, FileError> {
    let too_large = |size| FileError::TooLarge { path: path.to_owned(), size, max };
    if meta.len() > max {
        return Err(too_large(meta.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0).saturating_add(1));
    let read = Read::by_ref(file).take(max.saturating_add(1)).read_to_end(&mut bytes);
    let read = read.map_err(|source| failed("read", path, source))?;
    if read as u64 > max {
        return Err(too_large(read as u64));
    }
    Ok(bytes)
}

/// Opens a regular file for reading; `None` when it does not exist.
pub fn open_regular(path: &Path, extra: OFlags) -> Result<Option<(File, Metadata)>, FileError> {
    // Without O_NONBLOCK, opening a pipe without a writer would wait for ever.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | extra;
    let file = match OpenOptions::new().read(true).custom_flags(bits(flags)).open(path) {
        Ok(file) => file,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(not_opened(path, source)),
    };
    let meta = file.metadata().map_err(|source| failed("inspect", path, source))?;
    if meta.is_file() {
        return Ok(Some((file, meta)));
    }
    Err(FileError::NotRegular { path: path.to_owned(), kind: kind_of(&meta) })
}

/// Opens a file that belongs to us and that no other user may read or write. `None` for a link and for any other file.
pub fn open_own(path: &Path) -> Option<(File, Metadata)> {
    let (file, meta) = open_regular(path, OFlags::NOFOLLOW).ok()??;
    let is_ours = meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o777 == 0o600;
    is_ours.then_some((file, meta))
}

/// The error for a failed system call.
pub fn failed(doing: &'static str, path: &Path, source: io::Error) -> FileError {
    FileError::Io { doing, path: path.to_owned(), source }
}

/// The word for a file that is not regular.
pub fn kind_of(meta: &Metadata) -> &'static str {
    let kind = meta.file_type();
    match () {
        () if kind.is_dir() => "folder",
        () if kind.is_fifo() => "named pipe",
        () if kind.is_socket() => "socket",
        () if kind.is_block_device() || kind.is_char_device() => "device",
        () if kind.is_symlink() => "symbolic link",
        () => "special file",
    }
}

/// A socket cannot be opened at all; name it instead of reporting "no such device".
fn not_opened(path: &Path, source: io::Error) -> FileError {
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() => FileError::NotRegular { path: path.to_owned(), kind: kind_of(&meta) },
        _ => failed("open", path, source),
    }
}

fn replace(path: &Path, bytes: &[u8], suffix: &str, mode: Option<Permissions>) -> Result<(), FileError> {
    if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) {
        return Err(FileError::Link { path: path.to_owned() });
    }
    let temp = Temp::create(sibling(path, suffix)?)?;
    temp.fill(bytes).map_err(|source| failed("write", path, source))?;
    if let Some(mode) = mode {
        temp.file.set_permissions(mode).map_err(|source| failed("set the mode of", path, source))?;
    }
    temp.rename(path)?;
    sync_folder(parent(path))
}

/// A new file that is removed unless it is renamed.
struct Temp {
    path: PathBuf,
    file: File,
    kept: bool,
}

impl Temp {
    fn create(path: PathBuf) -> Result<Self, FileError> {
        // `create_new` is O_EXCL, which never follows a link.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|source| failed("create", &path, source))?;
        Ok(Self { path, file, kept: false })
    }

    fn fill(&self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes)?;
        self.file.sync_all()
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        // A write over the size limit would end this process by a signal.
        if getrlimit(Resource::Fsize).current.is_some_and(|most| bytes.len() as u64 > most) {
            return Err(Errno::FBIG.into());
        }
        // The umask may have taken bits away from the mode above.
        self.file.set_permissions(Permissions::from_mode(0o600))?;
        (&self.file).write_all(bytes)
    }

    fn rename(mut self, to: &Path) -> Result<(), FileError> {
        fs::rename(&self.path, to).map_err(|source| failed("replace", to, source))?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.kept {
            // If even removing the file fails, nothing more can be done; the original error explains it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Opens or creates a lock file; the caller must check whether it is a regular file.
pub(crate) fn open_lock(path: &Path) -> Result<File, FileError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(bits(flags));
    let opened = match options.open(path) {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
            make_parent(path)?;
            options.open(path)
        }
        opened => opened,
    };
    opened.map_err(|source| match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => FileError::Link { path: path.to_owned() },
        _ => failed("lock", path, source),
    })
}

/// Waits for a lock, at most about this long.
pub(crate) fn wait_for(file: &File, path: &Path, patience: Duration) -> Result<(), FileError> {
    const LONGEST: Duration = Duration::from_millis(16);
    let mut waited = Duration::ZERO;
    let mut nap = Duration::from_millis(1);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(source)) => return Err(failed("lock", path, source)),
            Err(TryLockError::WouldBlock) if waited >= patience => {
                return Err(FileError::Locked { path: path.to_owned() });
            }
            Err(TryLockError::WouldBlock) => thread::sleep(nap),
        }
        waited += nap;
        nap = (nap * 2).min(LONGEST);
    }
}

fn make_parent(path: &Path) -> Result<(), FileError> {
    let folder = parent(path);
    if folder.is_dir() {
        return Ok(());
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| failed("create the folder", folder, source))
}

/// Syncs the names in a folder to the disk.
pub fn sync_folder(folder: &Path) -> Result<(), FileError> {
    let synced = File::open(folder).and_then(|open| open.sync_all());
    match synced {
        // Some file systems cannot sync a folder; the rename is then as durable as the file system makes it.
        Err(source) if !matches!(source.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Err(failed("sync the folder", folder, source))
        }
        _ => Ok(()),
    }
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// The path `.NAME.SUFFIX` beside a file.
fn sibling(path: &Path, suffix: &str) -> Result<PathBuf, FileError> {
    let Some(name) = path.file_name() else {
        return Err(failed("write", path, io::ErrorKind::InvalidInput.into()));
    };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(OsStr::new(suffix));
    Ok(path.with_file_name(hidden))
}

pub(crate) fn bits(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

fn way_out(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "; check its owner and mode with ls -l",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space and try again",
        io::ErrorKind::ReadOnlyFilesystem => "; its file system is read-only: mount it writable or use another place",
        io::ErrorKind::NotADirectory => "; a file stands where a folder is needed",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
