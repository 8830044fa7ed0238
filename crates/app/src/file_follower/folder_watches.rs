//! What the system tells of folders.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ollm_catalog::StampedPaths;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// File systems on which other machines write, of which nobody tells.
const REMOTE: [u32; 7] = [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997, 0x6573_5546, 0x0BD0_0BD0];

/// Folders that the system tells of, and the paths in them that count.
pub(super) struct FolderWatches {
    inotify: OwnedFd,
    /// Each folder by what the system calls it; one folder may have several names.
    folders: BTreeMap<PathBuf, i32>,
    roots: BTreeSet<PathBuf>,
}

/// What happened since the last time.
pub(super) struct Touched {
    /// The paths that count.
    paths: Vec<PathBuf>,
    /// Whether the system lost track.
    is_incomplete: bool,
}

impl Touched {
    pub(super) fn counts(&self) -> bool {
        self.is_incomplete || !self.paths.is_empty()
    }

    pub(super) fn is_below(&self, folder: &Path) -> bool {
        self.is_incomplete || self.paths.iter().any(|path| path.starts_with(folder))
    }
}

impl FolderWatches {
    /// None where the system has no more of them.
    pub(super) fn new() -> Option<FolderWatches> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(FolderWatches { inotify, folders: BTreeMap::new(), roots: BTreeSet::new() })
    }

    /// Readable when something happened.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Watches what is needed to hear of these paths, and nothing else; whether that is more than before. None where the
    /// system cannot tell of all of them.
    pub(super) fn set(&mut self, paths: StampedPaths) -> Option<bool> {
        let StampedPaths { roots, mut folders } = paths;
        let linked = roots.iter().filter_map(|root| root.canonicalize().ok()).collect::<Vec<_>>();
        self.roots = roots.into_iter().chain(linked).collect();
        folders.extend(
            self.roots
                .iter()
                .filter_map(|root| root.ancestors().skip(1).find(|path| path.is_dir()))
                .map(Path::to_owned),
        );
        self.keep(&folders);
        let mut is_more = false;
        for folder in folders {
            if self.folders.contains_key(&folder) {
                continue;
            }
            match self.watch(&folder) {
                Ok(watch) => {
                    self.folders.insert(folder, watch);
                    is_more = true;
                }
                // It has gone meanwhile, which another look sees.
                Err(Errno::NOENT | Errno::NOTDIR) => is_more = true,
                // What cannot be entered cannot be read either.
                Err(Errno::ACCESS) => {}
                Err(_) => return None,
            }
        }
        Some(is_more)
    }

    fn watch(&self, folder: &Path) -> Result<i32, Errno> {
        let kind = rustix::fs::statfs(folder)?.f_type;
        if u32::try_from(kind).is_ok_and(|kind| REMOTE.contains(&kind)) {
            return Err(Errno::NOTSUP);
        }
        let events = WatchFlags::ATTRIB
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        inotify::add_watch(&self.inotify, folder, events | WatchFlags::ONLYDIR)
    }

    /// Forgets the other folders.
    fn keep(&mut self, folders: &BTreeSet<PathBuf>) {
        let gone: Vec<i32> =
            self.folders.extract_if(.., |folder, _| !folders.contains(folder)).map(|(_, watch)| watch).collect();
        for watch in gone {
            if !self.folders.values().any(|other| *other == watch) {
                // The folder may be gone, and its watch with it.
                let _ = inotify::remove_watch(&self.inotify, watch);
            }
        }
    }

    /// What happened since the last time.
    pub(super) fn take(&mut self) -> Touched {
        let mut touched = Touched { paths: Vec::new(), is_incomplete: false };
        let mut room = [MaybeUninit::uninit(); 8 << 10];
        let mut gone = Vec::new();
        let mut reader = inotify::Reader::new(&self.inotify, &mut room);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    touched.is_incomplete = true;
                    break;
                }
            };
            touched.is_incomplete |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            if event.events().contains(ReadFlags::IGNORED) {
                gone.push(event.wd());
            }
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            let folders = self.folders.iter().filter(|(_, watch)| **watch == event.wd()).map(|(folder, _)| folder);
            let paths = folders.map(|folder| name.map_or_else(|| folder.clone(), |name| folder.join(name)));
            let counts =
                |path: &PathBuf| self.roots.iter().any(|root| path.starts_with(root) || root.starts_with(path));
            touched.paths.extend(paths.filter(counts));
        }
        self.folders.retain(|_, watch| !gone.contains(watch));
        touched
    }
}
