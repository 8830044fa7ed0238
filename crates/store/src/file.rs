//! Owner-only files: bounded reading, atomic writing, updates under a lock.
//!
//! Reading follows symbolic links (people link their configuration); writing refuses them, because a checked-out
//! repository can contain a link to any file of its user.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::hash::{BuildHasher, Hasher as _, RandomState};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::OFlags;
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
        /// The answer of the operating system.
        source: io::Error,
    },
    /// The file is larger than its reader accepts.
    #[error("{} has {size} bytes, at most {max} are read; make it smaller or move it away", path.display())]
    TooLarge {
        /// The file or folder.
        path: PathBuf,
        /// Its size, or what had been read when the bound was passed.
        size: u64,
        /// The bound.
        max: u64,
    },
    /// The folder has more entries than its reader accepts.
    #[error("{} has more than {max} entries; remove what does not belong there", path.display())]
    TooMany {
        /// The folder.
        path: PathBuf,
        /// The bound.
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
    /// A symbolic link where one must not be.
    #[error("{} is a symbolic link and would be replaced; put a regular file in its place", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A file of several names, of which all but one would keep the old content.
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
    /// Somebody wrote to the file during every attempt to read it.
    #[error("{} changed while it was read; try again when nothing writes to it", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Something stands where only what is ours alone may be.
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
/// The file belongs to its owner only (0600), missing parent folders are created (0700). On any error the old file
/// stays as it was and no temporary file remains. It takes no lock: what depends on the old content belongs into
/// [`update`].
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    make_parent(path)?;
    replace(path, bytes, &format!(".{}.tmp", random_name()), None)
}

/// Reads, transforms and replaces a file under an exclusive lock, so that two writers never lose an update.
///
/// `change` gets the present bytes (`None` when the file is missing) and returns the new ones, or `None` to leave the
/// file alone. The lock is a file beside it and stays there.
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

/// Like [`update`], for files that people keep themselves and may share: an existing file keeps its mode.
pub fn rewrite<E, F>(path: &Path, max: u64, change: F) -> Result<(), E>
where
    E: From<FileError>,
    F: FnOnce(Option<Vec<u8>>) -> Result<Option<Vec<u8>>, E>,
{
    let lock = Lock::acquire(path)?;
    let mode = fs::metadata(path).ok().map(|meta| meta.permissions());
    if let Some(bytes) = change(read_bounded(path, max)?)? {
        lock.replace_as(&bytes, mode)?;
    }
    Ok(())
}

/// Replaces in one step what a path leads to, through links, for files that other programs own: what is there keeps its
/// mode, what is not gets this one. Nothing is left beside it. A file of several names is refused: it would lose them.
pub fn replace_through_links(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        // A link that leads nowhere must not become a file.
        Err(_) if fs::symlink_metadata(path).is_ok() => return Err(FileError::Link { path: path.to_owned() }),
        Err(_) => path.to_owned(),
    };
    make_parent(&real)?;
    let found = fs::metadata(&real).ok();
    if let Some(names) = found.as_ref().map(MetadataExt::nlink).filter(|names| *names > 1) {
        return Err(FileError::HardLinks { path: real, names });
    }
    let mode = found.map_or_else(|| Permissions::from_mode(mode), |meta| meta.permissions());
    replace(&real, bytes, &format!(".{}.tmp", random_name()), Some(mode))
}

/// Opens a file of its owner alone that is there to be locked and for nothing else; it is made if need be.
///
/// For what takes longer than an [`update`], and for those who wait in a way of their own. Where somebody removes it who holds
/// it, [`is_file_at`] says whether it is still the one that everybody takes.
pub fn lock_file(path: &Path) -> Result<File, FileError> {
    let file = open_lock(path)?;
    let meta = file.metadata().map_err(|source| failed("inspect", path, source))?;
    if meta.is_file() {
        return Ok(file);
    }
    Err(FileError::NotRegular { path: path.to_owned(), kind: kind_of(&meta) })
}

/// Whether a path still leads to this open file, and to no other of its name.
pub fn is_file_at(file: &File, path: &Path) -> bool {
    let key = |meta: Metadata| (meta.dev(), meta.ino());
    let (open, there) = (file.metadata().ok().map(key), fs::symlink_metadata(path).ok().map(key));
    open.is_some() && open == there
}

/// The right to replace one file, held until dropped.
#[derive(Debug)]
pub struct Lock<'a> {
    path: &'a Path,
    _held: File,
}

impl<'a> Lock<'a> {
    /// Waits for the right.
    pub fn acquire(path: &'a Path) -> Result<Self, FileError> {
        // A living writer needs milliseconds, a dead one has lost its lock already.
        const PATIENCE: Duration = Duration::from_secs(30);
        const TRIES: usize = 100;
        let beside = sibling(path, ".lock")?;
        for _ in 0..TRIES {
            let file = lock_file(&beside)?;
            wait_for(&file, &beside, PATIENCE)?;
            // Whoever had it before may have removed it.
            if is_file_at(&file, &beside) {
                return Ok(Self { path, _held: file });
            }
        }
        Err(FileError::Changed { path: beside })
    }

    /// Removes the file, and the lock with it.
    pub(crate) fn remove(self) -> Result<(), FileError> {
        for path in [self.path.to_owned(), sibling(self.path, ".lock")?] {
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(failed("remove", &path, source)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Under the lock there is one writer, hence one temporary name: what a killed writer left is cleared away here.
    pub(crate) fn replace(&self, bytes: &[u8]) -> Result<(), FileError> {
        self.replace_as(bytes, None)
    }

    /// The same with another mode than the owner's alone.
    fn replace_as(&self, bytes: &[u8], mode: Option<Permissions>) -> Result<(), FileError> {
        let stale = sibling(self.path, ".tmp")?;
        match fs::remove_file(&stale) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(failed("remove", &stale, source)),
            _ => replace(self.path, bytes, ".tmp", mode),
        }
    }
}

/// Sixteen characters that no other process picks at the same time.
pub fn random_name() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// Replaces a file in one step like [`write_atomic`] but leaves it to the system when the bytes reach the disk: for what
/// can be made again and shows by its form whether it is whole.
pub fn write_unsynced(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    make_parent(path)?;
    let temp = Temp::create(sibling(path, &format!(".{}.tmp", random_name()))?)?;
    temp.write(bytes).map_err(|source| failed("write", path, source))?;
    temp.rename(path)
}

/// Reads a regular file and what `fstat` said about the very descriptor that was read; again if somebody wrote to it
/// meanwhile.
pub fn read_regular(path: &Path, max: u64) -> Result<Option<(Vec<u8>, Metadata)>, FileError> {
    const TRIES: u32 = 3;
    for _ in 0..TRIES {
        let Some((mut file, meta)) = open_regular(path, OFlags::empty())? else {
            return Ok(None);
        };
        let bytes = read_open(path, &mut file, &meta, max)?;
        let after = file.metadata().map_err(|source| failed("inspect", path, source))?;
        if content_key(&meta) == content_key(&after) {
            return Ok(Some((bytes, meta)));
        }
    }
    Err(FileError::Changed { path: path.to_owned() })
}

/// What changes when somebody writes to a file, but not when it is replaced by another one.
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
    // Without O_NONBLOCK, opening a pipe nobody writes to would wait for ever.
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

/// Opens a file of our own that nobody else may read or write, and that is no link; nothing when it is none.
pub fn open_own(path: &Path) -> Option<(File, Metadata)> {
    let (file, meta) = open_regular(path, OFlags::NOFOLLOW).ok()??;
    let is_ours = meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o777 == 0o600;
    is_ours.then_some((file, meta))
}

/// The error of a step that the system refused.
pub fn failed(doing: &'static str, path: &Path, source: io::Error) -> FileError {
    FileError::Io { doing, path: path.to_owned(), source }
}

/// The word for what is not a regular file.
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

/// A socket cannot be opened at all; say what it is rather than "no such device".
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

/// A new file that disappears unless it is renamed.
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
        // Going over the limit would end us by a signal.
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
            // Nothing more can be done for a file that cannot even be removed; the error under way says why.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Opens what is there to be locked, or makes it; whether it is a regular file is for the caller to find out.
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

/// Waits for a lock, for about so long.
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

/// Brings the names in a folder to the disk.
pub fn sync_folder(folder: &Path) -> Result<(), FileError> {
    let synced = File::open(folder).and_then(|open| open.sync_all());
    match synced {
        // Some file systems cannot sync a folder; the rename is then as durable as they make it.
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

/// The hidden neighbour `.NAME.SUFFIX` of a file.
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
