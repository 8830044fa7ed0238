//! Records the files that were read. While all of them are unchanged, reading them again gives the same result.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ollm_store::StatKey;
use serde::{Deserialize, Serialize};

/// How long a file must be unchanged: a change right after another one may have the same timestamp.
const QUIET: Duration = Duration::from_secs(2);

/// What the file system says of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Stamp {
    /// Nothing is there.
    Absent,
    /// This very thing and no link, with any content.
    Thing { dev: u64, ino: u64, mode: u32 },
    /// The path leads to this thing, with any content.
    Place { dev: u64, ino: u64 },
    /// The path leads to this thing, with what is in it.
    State { dev: u64, ino: u64, size: u64, mtime_ns: i64, ctime_ns: i64 },
}

impl Stamp {
    /// This very thing, of which the file system says so without following a link.
    pub(crate) fn of_thing(meta: &Metadata) -> Stamp {
        Stamp::Thing { dev: meta.dev(), ino: meta.ino(), mode: meta.mode() }
    }

    /// The state of what a path leads to.
    pub(crate) fn of_state(meta: &Metadata) -> Stamp {
        let StatKey { dev, ino, size, mtime_ns, ctime_ns } = StatKey::of(meta);
        Stamp::State { dev, ino, size, mtime_ns, ctime_ns }
    }

    fn of_place(meta: &Metadata) -> Stamp {
        Stamp::Place { dev: meta.dev(), ino: meta.ino() }
    }

    /// Whether the path still has it.
    fn holds(&self, path: &Path) -> bool {
        let now = match self {
            Stamp::Absent => return fs::symlink_metadata(path).is_err_and(|error| is_absent(&error)),
            Stamp::Thing { .. } => fs::symlink_metadata(path).map(|meta| Stamp::of_thing(&meta)),
            Stamp::Place { .. } => fs::metadata(path).map(|meta| Stamp::of_place(&meta)),
            Stamp::State { .. } => fs::metadata(path).map(|meta| Stamp::of_state(&meta)),
        };
        now.is_ok_and(|now| now == *self)
    }

    /// Whether it had been left alone for a while at this time; what is of the future has not.
    fn is_quiet(&self, now: SystemTime) -> bool {
        let Stamp::State { mtime_ns, ctime_ns, .. } = self else { return true };
        let latest = now.checked_sub(QUIET).and_then(|latest| latest.duration_since(UNIX_EPOCH).ok());
        let latest = latest.and_then(|latest| i64::try_from(latest.as_nanos()).ok());
        latest.is_some_and(|latest| *mtime_ns.max(ctime_ns) < latest)
    }
}

/// All paths that were checked, each with its state before reading.
#[derive(Debug, Default)]
pub(crate) struct StampSet {
    stamps: Vec<(PathBuf, Stamp)>,
    /// Whether any of them has an unknown state.
    unclear: bool,
}

impl StampSet {
    /// Looks at a file or folder that is about to be read.
    pub(crate) fn state(&mut self, path: &Path) {
        self.add(path, fs::metadata(path).map(|meta| Stamp::of_state(&meta)));
    }

    /// Looks at a folder of which only matters which one it is.
    pub(crate) fn place(&mut self, path: &Path) {
        self.add(path, fs::metadata(path).map(|meta| Stamp::of_place(&meta)));
    }

    /// Records the metadata of a path, taken without following links. If the path is a link, the state is unknown.
    pub(crate) fn saw(&mut self, path: &Path, seen: Result<&Metadata, &io::Error>) {
        match seen {
            Ok(meta) if !meta.is_symlink() => self.stamps.push((path.to_owned(), Stamp::of_state(meta))),
            Err(error) if is_absent(error) => self.stamps.push((path.to_owned(), Stamp::Absent)),
            _ => self.unclear = true,
        }
    }

    /// Records the state of an opened and read file. The path may have led to another file before or after.
    pub(crate) fn read(&mut self, path: &Path, state: Option<Stamp>) {
        let is_known = |stamp| self.stamps.iter().rev().any(|(known, before)| known == path && *before == stamp);
        if let Some(state) = state.filter(|state| !is_known(*state)) {
            self.stamps.push((path.to_owned(), state));
        }
    }

    /// Takes on what another reader has looked at.
    pub(crate) fn extend(&mut self, others: Option<Vec<(PathBuf, Stamp)>>) {
        self.unclear |= others.is_none();
        self.stamps.extend(others.into_iter().flatten());
    }

    fn add(&mut self, path: &Path, seen: io::Result<Stamp>) {
        match seen {
            Ok(stamp) => self.stamps.push((path.to_owned(), stamp)),
            // A link that leads nowhere is there, and may lead somewhere next time.
            Err(error) if is_absent(&error) && fs::symlink_metadata(path).is_err() => {
                self.stamps.push((path.to_owned(), Stamp::Absent));
            }
            Err(_) => self.unclear = true,
        }
    }

    /// The stamps, if they say it all.
    pub(crate) fn stamps(self) -> Option<Vec<(PathBuf, Stamp)>> {
        (!self.unclear).then_some(self.stamps)
    }

    /// The same, if something was read, and nothing of it changed just now.
    pub(crate) fn settled(self, now: SystemTime) -> Option<Vec<(PathBuf, Stamp)>> {
        let is_read =
            |stamps: &[(PathBuf, Stamp)]| stamps.iter().any(|(_, stamp)| matches!(stamp, Stamp::State { .. }));
        let is_quiet = |stamps: &[(PathBuf, Stamp)]| stamps.iter().all(|(_, stamp)| stamp.is_quiet(now));
        self.stamps().filter(|stamps| is_read(stamps) && is_quiet(stamps))
    }
}

/// Whether nothing has changed.
pub(crate) fn hold(stamps: &[(PathBuf, Stamp)]) -> bool {
    stamps.iter().all(|(path, stamp)| stamp.holds(path))
}

pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
