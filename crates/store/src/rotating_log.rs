//! Append-only files of lines that many processes write at the same time: owner-only, bounded, and with whole lines.
//!
//! Every line is one `write` on a descriptor opened for appending, so lines of different processes never mix. There is
//! no `fsync`, because writing must cost little: a crash of the machine may lose the last lines. A file that has
//! reached its limit becomes `NAME.1`, the earlier one `NAME.2` and so on; the oldest is removed.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, lstat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::file::{FileError, failed, kind_of};
use crate::owner::current_uid;

mod follower;
mod lines;

pub use follower::Follower;
pub use lines::Lines;

/// The longest line that a reader returns whole; a single line may exceed the limit of its file.
const LONGEST_LINE: u64 = 128 << 10;

/// How much a log may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of one file; a line that would exceed it begins a new one.
    pub file: u64,
    /// The most files, the present one included.
    pub files: usize,
}

/// A file of lines and its predecessors.
///
/// ```
/// use ollm_store::{Bounds, RotatingLog};
/// # let home = tempfile::tempdir().unwrap();
/// let log = RotatingLog::new(home.path().join("trace"), "trace.jsonl", Bounds { file: 1 << 20, files: 2 });
/// log.append(r#"{"n":1}"#)?;
/// log.append(r#"{"n":2}"#)?;
/// let lines: Result<Vec<_>, _> = log.lines()?.collect();
/// assert_eq!(lines?, [br#"{"n":2}"#, br#"{"n":1}"#], "the newest comes first");
/// # Ok::<(), ollm_store::FileError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RotatingLog {
    folder: PathBuf,
    name: String,
    bounds: Bounds,
    /// The user who must own these files.
    owner: u32,
    /// The most bytes that this process may write into a file.
    most: Option<u64>,
    /// The file of the last line. While the name still leads to it, the next line goes there without another check of
    /// the folder.
    last: Arc<Mutex<Option<OpenLog>>>,
}

/// An open file that belongs to us alone.
#[derive(Debug)]
struct OpenLog {
    file: File,
    stat: Stat,
}

impl RotatingLog {
    /// A log in its own folder; creates nothing yet.
    pub fn new(folder: PathBuf, name: impl Into<String>, bounds: Bounds) -> RotatingLog {
        let most = getrlimit(Resource::Fsize).current;
        RotatingLog { folder, name: name.into(), bounds, owner: current_uid(), most, last: Arc::default() }
    }

    /// Where the newest lines are.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Adds one line.
    ///
    /// The folder (0700) and its parent are created when missing, no others. Neither the folder nor the file may be a
    /// symbolic link or belong to another user; in that case the line is refused. It is also refused when the disk is
    /// full.
    pub fn append(&self, line: &str) -> Result<(), FileError> {
        let bytes = terminated(line);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let again = last.take().and_then(|last| self.again(last));
        let mut opened = if let Some(opened) = again {
            opened
        } else {
            self.enter()?;
            self.open()?
        };
        let goes_over = |stat: &Stat, most: u64| stat.st_size > 0 && size(stat) + bytes.len() as u64 > most;
        if goes_over(&opened.stat, self.bounds.file) {
            self.rotate(opened.stat.st_ino)?;
            opened = self.open()?;
        }
        if goes_over(&opened.stat, self.bounds.file.saturating_mul(2)) {
            return Err(FileError::TooLarge { path: self.path(), size: size(&opened.stat), max: self.bounds.file });
        }
        self.write(&opened.file, size(&opened.stat), bytes)?;
        *last = Some(opened);
        Ok(())
    }

    /// The open file, if its name still leads to it and it is ours alone.
    fn again(&self, OpenLog { file, stat: before }: OpenLog) -> Option<OpenLog> {
        let stat = lstat(self.path()).ok()?;
        let key = |stat: &Stat| (stat.st_dev, stat.st_ino, stat.st_nlink, stat.st_uid, stat.st_mode);
        (key(&stat) == key(&before)).then_some(OpenLog { file, stat })
    }

    /// The lines, newest first, of this file and its predecessors.
    pub fn lines(&self) -> Result<Lines, FileError> {
        Lines::open((0..self.bounds.files).map(|age| self.aged(age)), self.longest_file())
    }

    /// The most bytes that a reader reads of one file; of a longer file it reads only the end.
    fn longest_file(&self) -> u64 {
        self.bounds.file.saturating_mul(2).saturating_add(LONGEST_LINE)
    }

    /// The lines that any process adds from now on.
    pub fn follow(&self) -> Result<Follower, FileError> {
        Follower::new(self.clone())
    }

    /// Makes sure that the folder is ours alone.
    ///
    /// Checking it by name is enough: a process that could replace it afterwards owns the folder above. The file itself
    /// is checked once it is open.
    fn enter(&self) -> Result<(), FileError> {
        let look = || lstat(&self.folder);
        let stat = match look() {
            Err(Errno::NOENT) => {
                self.make_folder()?;
                look()
            }
            seen => seen,
        };
        let stat = stat.map_err(|errno| failed("inspect", &self.folder, errno.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => check_owned(&stat, self.owner, &self.folder)?,
            FileType::Symlink => return Err(refused(&self.folder, "is a symbolic link")),
            _ => return Err(failed("open", &self.folder, Errno::NOTDIR.into())),
        }
        if stat.st_mode & 0o077 != 0 {
            let tightened = fs::set_permissions(&self.folder, Permissions::from_mode(0o700));
            tightened.map_err(|error| failed("change the mode of", &self.folder, error))?;
        }
        Ok(())
    }

    fn make_folder(&self) -> Result<(), FileError> {
        // Folders further up are not created: a home that does not exist is not ours to make.
        for folder in [self.folder.parent(), Some(self.folder.as_path())].into_iter().flatten() {
            match DirBuilder::new().mode(0o700).create(folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed("create the folder", folder, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Opens the present file, with its metadata.
    fn open(&self) -> Result<OpenLog, FileError> {
        let path = self.path();
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | guarded();
        let file = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600));
        let file = File::from(file.map_err(|errno| not_opened(&path, errno))?);
        let stat = fstat(&file).map_err(|errno| failed("inspect", &path, errno.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            let kind = file.metadata().map_or("special file", |meta| kind_of(&meta));
            return Err(FileError::NotRegular { path, kind });
        }
        check_owned(&stat, self.owner, &path)?;
        if stat.st_nlink > 1 {
            return Err(refused(&path, "has a second name elsewhere"));
        }
        Ok(OpenLog { file, stat })
    }

    /// Writes a line with one write, so that it does not mix with the lines of other processes.
    fn write(&self, file: &File, size: u64, mut bytes: Vec<u8>) -> Result<(), FileError> {
        let fail = |error: io::Error| failed("write to", &self.path(), error);
        if is_torn(file, size) {
            // A write of another process hit a full disk in the middle of a line; our line must not become part of it.
            bytes.insert(0, b'\n');
        }
        if self.most.is_some_and(|limit| size.saturating_add(bytes.len() as u64) > limit) {
            // The write would end this process by a signal.
            return Err(fail(Errno::FBIG.into()));
        }
        match rustix::io::retry_on_intr(|| rustix::io::write(file, &bytes)) {
            Ok(written) if written == bytes.len() => Ok(()),
            Ok(_) => Err(fail(io::ErrorKind::StorageFull.into())),
            Err(errno) => Err(fail(errno.into())),
        }
    }

    /// Rotates the files, unless another process is doing so; then the present file grows a little longer.
    fn rotate(&self, full: u64) -> Result<(), FileError> {
        let path = self.folder.join(format!("{}.lock", self.name));
        let lock = rustix::fs::open(&path, OFlags::RDWR | OFlags::CREATE | guarded(), Mode::from_raw_mode(0o600));
        let lock = File::from(lock.map_err(|errno| not_opened(&path, errno))?);
        if lock.try_lock().is_err() {
            return Ok(());
        }
        if lstat(self.path()).is_ok_and(|stat| stat.st_ino != full) {
            // The previous holder of the lock has already rotated.
            return Ok(());
        }
        for age in (0..self.bounds.files.max(1)).rev() {
            let from = self.aged(age);
            let is_oldest = age + 1 >= self.bounds.files;
            let moved = if is_oldest { fs::remove_file(&from) } else { fs::rename(&from, self.aged(age + 1)) };
            match moved {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed("rotate", &from, error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// The path of the file from this many rotations ago.
    fn aged(&self, age: usize) -> PathBuf {
        if age == 0 { self.path() } else { self.folder.join(format!("{}.{age}", self.name)) }
    }
}

/// The bytes of one line, for any text.
fn terminated(line: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(line.len() + 2);
    bytes.extend_from_slice(line.as_bytes());
    bytes.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
    bytes.push(b'\n');
    bytes
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Whether the last line is incomplete. A full disk stops a write at the end of a block, so other sizes need no check.
fn is_torn(file: &File, size: u64) -> bool {
    const SMALLEST_BLOCK: u64 = 512;
    let mut last = [b'\n'];
    size > 0 && size.is_multiple_of(SMALLEST_BLOCK) && file.read_at(&mut last, size - 1).is_ok() && last != [b'\n']
}

/// Opening with these flags never follows a link and never waits for a pipe.
fn guarded() -> OFlags {
    OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

fn check_owned(stat: &Stat, owner: u32, path: &Path) -> Result<(), FileError> {
    if stat.st_uid == owner { Ok(()) } else { Err(refused(path, "belongs to another user")) }
}

fn refused(path: &Path, why: &'static str) -> FileError {
    FileError::Refused { path: path.to_owned(), why }
}

fn not_opened(path: &Path, errno: Errno) -> FileError {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => refused(path, "is a symbolic link"),
        _ => failed("open", path, errno.into()),
    }
}

#[cfg(test)]
mod tests;
